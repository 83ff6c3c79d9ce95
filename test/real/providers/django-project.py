"""The smallest Django project in which Django OAuth Toolkit is an OpenID provider. Started by django.ts."""

import json
import os
import sys

import django
from django.conf import settings
from jwcrypto import jwk

CLIENT = json.loads(os.environ["TEST_CLIENT"])
PERSON = json.loads(os.environ["TEST_PERSON"])
PORT = os.environ["TEST_PORT"]


def new_key():
    return jwk.JWK.generate(kty="RSA", size=2048).export_to_pem(private_key=True, password=None).decode()


settings.configure(
    DEBUG=False,
    SECRET_KEY="a-secret-of-these-tests-alone-0123456789",
    ALLOWED_HOSTS=["127.0.0.1"],
    ROOT_URLCONF="__main__",
    INSTALLED_APPS=[
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "django.contrib.sessions",
        "oauth2_provider",
    ],
    MIDDLEWARE=[
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.middleware.csrf.CsrfViewMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
    ],
    TEMPLATES=[
        {
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            "APP_DIRS": True,
            "OPTIONS": {
                "context_processors": ["django.template.context_processors.request"],
                "loaders": [
                    (
                        "django.template.loaders.locmem.Loader",
                        {
                            "registration/login.html": '<form method="post">{% csrf_token %}{{ form.as_p }}'
                            '<button type="submit">Sign in</button></form>'
                        },
                    ),
                    "django.template.loaders.app_directories.Loader",
                ],
            },
        }
    ],
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": os.environ["TEST_DATABASE"],
            "OPTIONS": {"timeout": 30, "transaction_mode": "IMMEDIATE"},
        }
    },
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    # Clients' secrets are hashed at every request too. The usual hasher needs seconds for this on a busy
    # machine.
    PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
    LOGIN_URL="/accounts/login/",
    OAUTH2_PROVIDER={
        "ACCESS_TOKEN_EXPIRE_SECONDS": 3600,
        "OIDC_ENABLED": True,
        "OIDC_ISS_ENDPOINT": f"http://127.0.0.1:{PORT}/o",
        "OIDC_RSA_PRIVATE_KEY": new_key(),
        "OIDC_RP_INITIATED_LOGOUT_ENABLED": True,
        "OIDC_RP_INITIATED_LOGOUT_ALWAYS_PROMPT": False,
        "OAUTH2_VALIDATOR_CLASS": "__main__.Validator",
        "SCOPES": {"openid": "Who you are", "data:read": "Read data", "viewables:read": "See models"},
    },
)
# APP_DIRS must be removed, because Django allows it only without explicit loaders.
settings.TEMPLATES[0].pop("APP_DIRS")
django.setup()

from django.contrib.auth.models import User  # noqa: E402
from django.contrib.auth.views import LoginView  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.http import HttpResponse  # noqa: E402
from django.urls import include, path  # noqa: E402
from django.views.decorators.csrf import csrf_exempt  # noqa: E402
from oauth2_provider.models import Application, RefreshToken  # noqa: E402
from oauth2_provider.oauth2_validators import OAuth2Validator  # noqa: E402
from oauth2_provider.settings import oauth2_settings  # noqa: E402


class Validator(OAuth2Validator):
    oidc_claim_scope = None

    def get_additional_claims(self, request):
        return {"name": request.user.get_full_name()}


@csrf_exempt
def end_logins(request):
    for token in RefreshToken.objects.filter(revoked=None):
        token.revoke()
    return HttpResponse("{}")


@csrf_exempt
def rotate_keys(request):
    oauth2_settings.OIDC_RSA_PRIVATE_KEY = new_key()
    return HttpResponse("{}")


urlpatterns = [
    path("o/", include("oauth2_provider.urls", namespace="oauth2_provider")),
    path("accounts/login/", LoginView.as_view()),
    path("test/end-logins", end_logins),
    path("test/rotate-keys", rotate_keys),
]

if __name__ == "__main__":
    call_command("migrate", verbosity=0)
    user = User.objects.create_user(PERSON["userName"], PERSON["email"], PERSON["password"])
    user.first_name, user.last_name = "Ada", "Lovelace"
    user.save()
    Application.objects.create(
        name="Platform Auth Server",
        client_id=CLIENT["id"],
        client_secret=CLIENT["secret"],
        client_type=Application.CLIENT_CONFIDENTIAL,
        authorization_grant_type=Application.GRANT_AUTHORIZATION_CODE,
        redirect_uris=CLIENT["callbackUrl"],
        post_logout_redirect_uris=CLIENT["homeUrl"],
        algorithm="RS256",
        skip_authorization=True,
    )
    sys.argv = ["manage.py", "runserver"]
    call_command("runserver", f"127.0.0.1:{PORT}", use_reloader=False)
