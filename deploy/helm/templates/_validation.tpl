{{- /*
Rejects values that cannot work, with a sentence that says what to do. The schema of the values checks only their types, because its messages
name a path and a pattern.
*/ -}}
{{- define "platform-auth-server.validate" -}}
{{- $values := .Values -}}

{{- if not $values.clientId -}}
{{- fail "Set clientId to the client id at the identity provider." -}}
{{- end -}}
{{- if not $values.callbackUrl -}}
{{- fail "Set callbackUrl to the public URL of /api/auth/callback, exactly as it is registered at the identity provider." -}}
{{- end -}}
{{- if not (regexMatch "^https?://[^/?#]+/([^?#]*/)?api/auth/callback$" $values.callbackUrl) -}}
{{- fail (printf "callbackUrl is %s. It must begin with https:// or http:// and end with /api/auth/callback." $values.callbackUrl) -}}
{{- end -}}
{{- if not $values.existingSecret -}}
{{- fail "Set existingSecret to the name of a Secret that contains the client secret and the session secret." -}}
{{- end -}}

{{- if and (not (or $values.externalRedis.url $values.externalRedis.secretKey)) (or $values.autoscaling.enabled (gt (int $values.replicaCount) 1)) -}}
{{- fail "Several replicas need Redis, because two of them could use the same refresh token. Set externalRedis.url or externalRedis.secretKey, or set replicaCount to 1 and autoscaling.enabled to false." -}}
{{- end -}}
{{- if regexMatch "@|sentinelPassword=" $values.externalRedis.url -}}
{{- fail "externalRedis.url contains a password, and anyone who can read the Deployment can read it. Leave externalRedis.url empty, and put the URL into the key of existingSecret that externalRedis.secretKey names." -}}
{{- end -}}
{{- if and $values.externalRedis.url (not (regexMatch "^rediss?://" $values.externalRedis.url)) -}}
{{- fail "externalRedis.url must begin with redis:// or rediss://." -}}
{{- end -}}

{{- if and $values.autoscaling.enabled (gt (int $values.autoscaling.minReplicas) (int $values.autoscaling.maxReplicas)) -}}
{{- fail (printf "autoscaling.minReplicas is %d, which is more than autoscaling.maxReplicas (%d)." (int $values.autoscaling.minReplicas) (int $values.autoscaling.maxReplicas)) -}}
{{- end -}}
{{- $shutdown := add $values.shutdown.delay $values.shutdown.grace 3 -}}
{{- if lt (int $values.terminationGracePeriodSeconds) (int $shutdown) -}}
{{- fail (printf "terminationGracePeriodSeconds is %d. It must be at least %d, which is 3 seconds longer than shutdown.delay and shutdown.grace together, because Kubernetes would otherwise kill the server during a refresh." (int $values.terminationGracePeriodSeconds) (int $shutdown)) -}}
{{- end -}}
{{- if and $values.wwwroot.configMap $values.wwwroot.image -}}
{{- fail "wwwroot.configMap and wwwroot.image exclude each other. Set only one of them." -}}
{{- end -}}

{{- if and $values.ingress.enabled (hasPrefix "https://" $values.callbackUrl) (not $values.ingress.tls) (not $values.ingress.externalTls) -}}
{{- fail "callbackUrl begins with https://, but the Ingress has no TLS, so no browser would send the session cookies. Set ingress.tls, for example to [{secretName: app-example-com-tls}]. If a load balancer in front of the ingress controller terminates TLS, set ingress.externalTls to true." -}}
{{- end -}}
{{- $basePath := include "platform-auth-server.basePath" . -}}
{{- if and $values.ingress.enabled (ne $basePath "/") (not $values.ingress.stripsBasePath) -}}
{{- fail (printf "callbackUrl has the base path %s, which the server does not expect in the paths of requests, and an Ingress cannot remove it without an annotation or middleware of its controller. Use httpRoute, which removes it, or add the annotation to ingress.annotations and set ingress.stripsBasePath to true." $basePath) -}}
{{- end -}}
{{- if and $values.httpRoute.enabled (not $values.httpRoute.parentRefs) -}}
{{- fail "Set httpRoute.parentRefs to the gateways of the route." -}}
{{- end -}}
{{- if and $values.service.nodePort (eq $values.service.type "ClusterIP") -}}
{{- fail "service.nodePort has no effect with service.type ClusterIP. Set service.type to NodePort or LoadBalancer, or remove service.nodePort." -}}
{{- end -}}
{{- if has (int $values.forwardAuth.port) (list 8080 9090) -}}
{{- fail (printf "forwardAuth.port is %d, which is the port of the login or of the metrics in the pod. Use another port." (int $values.forwardAuth.port)) -}}
{{- end -}}
{{- if and $values.serviceAccount.annotations (not $values.serviceAccount.create) -}}
{{- fail "serviceAccount.annotations has no effect if serviceAccount.create is false." -}}
{{- end -}}

{{- range $name, $value := $values.env -}}
{{- include "platform-auth-server.validateVariable" (dict "where" "env" "name" $name "value" $value) -}}
{{- end -}}
{{- range $values.extraEnv -}}
{{- if hasKey $values.env .name -}}
{{- fail (printf "%s is in env and in extraEnv. Remove one of them." .name) -}}
{{- end -}}
{{- include "platform-auth-server.validateVariable" (dict "where" "extraEnv" "name" .name "value" (.value | default "")) -}}
{{- end -}}
{{- end -}}

{{- /* Rejects a variable that the chart sets, and a secret whose value anyone who can read the Deployment could read. */ -}}
{{- define "platform-auth-server.validateVariable" -}}
{{- with get (include "platform-auth-server.reservedVariables" . | fromYaml) .name -}}
{{- fail (printf "%s: %s is set by the chart; use %s." $.where $.name .) -}}
{{- end -}}
{{- if and (hasKey . "value") (not (kindIs "string" .value)) -}}
{{- fail (printf "%s: %s must be a string. Write its value with quotes." .where .name) -}}
{{- end -}}
{{- $isSecret := regexMatch "(SECRETS?|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|TOKEN|API_?KEY|CLIENT_KEY|PRIVATE_KEY)$|OTLP(_[A-Z]+)?_HEADERS$" .name -}}
{{- $hasPassword := and (regexMatch "(?i)^(https?|all)_proxy$" .name) (contains "@" .value) -}}
{{- if and .value (or $isSecret $hasPassword) -}}
{{- fail (printf "%s: %s can be a secret, and anyone who can read the Deployment can read it. Use extraEnv with valueFrom and secretKeyRef." .where .name) -}}
{{- end -}}
{{- end -}}

{{- /* The variables that the chart sets, and what to use instead. */ -}}
{{- define "platform-auth-server.reservedVariables" -}}
PORT: service.port, because the container always listens on port 8080
PLATFORM_AUTH_HOST: networkPolicy.httpFrom, because the server listens on all addresses of the pod
PLATFORM_AUTH_MODE: mode
PLATFORM_CLIENT_ID: clientId
PLATFORM_CALLBACK_URL: callbackUrl
PLATFORM_CLIENT_AUTH_METHOD: clientAuthMethod
LOG_TRUST_FORWARDED_FOR: trustForwardedFor
PLATFORM_AUTH_REFRESH_BEFORE_EXPIRY: refresh.beforeExpiry
PLATFORM_AUTH_REFRESH_JITTER: refresh.jitter
PLATFORM_AUTH_SHUTDOWN_DELAY: shutdown.delay
PLATFORM_AUTH_SHUTDOWN_GRACE: shutdown.grace
PLATFORM_AUTH_METRICS_ADDRESS: networkPolicy.metricsFrom, because the metrics are always on port 9090
PLATFORM_AUTH_FORWARD_AUTH_ADDRESS: forwardAuth.port
{{- $secrets := dict "PLATFORM_CLIENT_SECRET" "client-secret" "PLATFORM_CLIENT_KEY" "client-key" "SERVER_SESSION_SECRET" "session-secret" "SERVER_SESSION_PREVIOUS_SECRETS" "previous-secrets" "APS_CLIENT_SECRET" "client-secret" }}
{{- range $name, $key := $secrets }}
{{ $name }}: the key {{ $key }} of existingSecret
{{ $name }}_FILE: the key {{ $key }} of existingSecret
{{- end }}
REDIS_URL: externalRedis.url or externalRedis.secretKey
REDIS_URL_FILE: externalRedis.url or externalRedis.secretKey
APS_CLIENT_ID: clientId
APS_CALLBACK_URL: callbackUrl
{{- end -}}
