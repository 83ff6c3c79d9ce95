import type { Texts } from './texts.js'

/** The texts of the pages in French. A colon has a no-break space in front (U+00A0), as French typography requires. */
export const fr: Texts = {
  actions: {
    signIn: 'Se connecter',
    signInAgain: 'Se reconnecter',
    home: 'Aller à la page d’accueil'
  },
  details: {
    intro: 'Si vous demandez de l’aide, indiquez ceci\u00a0:',
    error: 'Erreur {{code}}\u00a0: {{description}}',
    errorCode: 'Erreur {{code}}',
    request: 'Requête {{id}}'
  },
  notSignedIn: {
    title: 'Vous n’êtes pas connecté',
    happened:
      'Cette page est réservée aux personnes connectées. Vous n’avez pas de session, ou votre session est terminée.',
    next: 'Connectez-vous pour continuer.'
  },
  accountNotAllowed: {
    title: 'Votre compte n’est pas autorisé ici',
    happened:
      'La connexion a réussi, mais cette application n’admet que les comptes de sa liste. Votre compte n’y figure pas, ou son adresse e-mail n’a pas été vérifiée.',
    next: 'Si vous avez un autre compte, connectez-vous avec celui-ci. Sinon, demandez un accès aux responsables de cette application.'
  },
  sessionTooLarge: {
    title: 'Votre session est trop volumineuse',
    happened:
      'La connexion a réussi, mais les données de votre compte dépassent la taille autorisée pour une session. Cette application ne peut donc pas conserver votre session.',
    next: 'Il est inutile de réessayer. Signalez aux responsables de cette application qu’elle doit demander moins de droits d’accès.'
  },
  loginNotCompleted: {
    title: 'Cette connexion n’a pas pu aboutir',
    happened:
      'Le lien de retour depuis la page de connexion est trop ancien, a déjà été utilisé, ou appartient à un autre navigateur ou à une fenêtre privée.',
    next: 'Connectez-vous à nouveau. Si vous revenez ici à chaque fois, autorisez les cookies pour ce site et fermez ses anciens onglets.'
  },
  accessNotGranted: {
    title: 'L’accès n’a pas été accordé',
    happened: 'La page de connexion a signalé que l’accès a été refusé ou que la connexion a été annulée.',
    next: 'Si ce n’était pas votre intention, connectez-vous à nouveau et autorisez l’accès. Si aucune autorisation ne vous a été demandée, votre compte n’a peut-être pas accès à cette application. Adressez-vous alors à ses responsables.'
  },
  otherSite: {
    title: 'Cette requête provient d’un autre site',
    happened:
      'Un autre site web a tenté d’utiliser votre session ici. La requête a été refusée et rien n’a été modifié.',
    next: 'Si cette action venait de vous, ouvrez directement l’application et réessayez.'
  },
  notFound: {
    title: 'Il n’y a pas de page ici',
    happened: 'Rien n’a été trouvé à cette adresse.',
    next: 'Vérifiez que l’adresse ne contient pas de faute de frappe, ou allez à la page d’accueil.'
  },
  methodNotAllowed: {
    title: 'Cette adresse ne peut pas être utilisée ainsi',
    happened: 'Un formulaire ou un programme a envoyé des données à cette adresse, qui n’en accepte pas.',
    next: 'Recommencez depuis la page d’accueil.'
  },
  requestTooLarge: {
    title: 'La requête est trop volumineuse',
    happened: 'La requête dépasse la taille que ce serveur accepte.',
    next: 'Recommencez depuis la page d’accueil. Si cette erreur réapparaît, effacez les cookies de ce site.'
  },
  invalidRequest: {
    title: 'Cela n’a pas fonctionné',
    happened: 'Le serveur n’a pas pu comprendre cette requête.',
    next: 'Vérifiez que l’adresse ne contient pas de faute de frappe, ou recommencez depuis la page d’accueil.'
  },
  serverError: {
    title: 'Une erreur s’est produite de notre côté',
    happened: 'Le serveur a rencontré une erreur inattendue. Vous n’en êtes pas la cause.',
    next: 'Réessayez. Si l’erreur persiste, prévenez les responsables de cette application.'
  },
  providerError: {
    title: 'Le service de connexion rencontre un problème',
    happened:
      'Le service qui gère votre compte a répondu par une erreur, ou par des données que ce serveur ne peut pas utiliser.',
    next: 'Connectez-vous à nouveau. En cas de nouvel échec, prévenez les responsables de cette application.'
  },
  providerUnavailable: {
    title: 'Veuillez réessayer dans un instant',
    happened:
      'Le service de connexion n’est pas disponible pour le moment. Si vous étiez connecté, vous l’êtes toujours.',
    next: 'Attendez quelques secondes, puis réessayez.'
  },
  providerSlow: {
    title: 'Le service de connexion met trop de temps à répondre',
    happened: 'Le service qui gère votre compte n’a pas répondu à temps. Si vous étiez connecté, vous l’êtes toujours.',
    next: 'Attendez un instant, puis connectez-vous à nouveau.'
  },
  providerUnreachable: {
    title: 'Le service de connexion est injoignable',
    happened:
      'Ce serveur n’a pas pu joindre le service qui gère votre compte. Si vous étiez connecté, vous l’êtes toujours.',
    next: 'Attendez un instant, puis connectez-vous à nouveau. Si l’erreur persiste, prévenez les responsables de cette application.'
  },
  busy: {
    title: 'Le service est très sollicité',
    happened:
      'Le service de connexion ne peut pas répondre pour le moment. Si vous étiez connecté, vous l’êtes toujours.',
    next: 'Cette page réessaiera d’elle-même {{when}}. Vous n’avez rien à faire.'
  },
  loginLoop: {
    title: 'La connexion a réussi, mais le navigateur ne l’a pas conservée',
    happened:
      'La connexion a réussi, mais votre navigateur n’a pas renvoyé un cookie dont ce site a besoin pour que vous restiez connecté. La page suivante vous demanderait donc de vous connecter à nouveau.',
    reason: 'La cause probable',
    reasons: 'Les causes probables',
    secureCookieOnHttp:
      'Vous avez peut-être ouvert ce site en http, sans chiffrement, alors que les navigateurs ne conservent ce cookie qu’en https. Ouvrez plutôt {{address}}.',
    otherHost:
      'Vous avez peut-être ouvert ce site sous un autre nom d’hôte que {{host}}, vers lequel la connexion revient. Les navigateurs conservent des cookies distincts pour chaque nom d’hôte. Ouvrez plutôt {{address}}.',
    otherName:
      'Vous avez ouvert {{startedAt}}, mais la connexion revient vers {{host}}. Les deux noms désignent cette machine, mais les navigateurs conservent des cookies distincts pour chaque nom. Ouvrez plutôt {{address}}.',
    cookiesBlocked:
      'Le navigateur bloque les cookies de ce site. Autorisez-les dans ses paramètres et vérifiez vos extensions de protection de la vie privée. Si cette page est affichée à l’intérieur d’un autre site, le navigateur bloque souvent ses cookies.',
    cookieTooLarge:
      'Les données de votre compte dépassent la taille des cookies que le navigateur, ou un proxy placé devant ce serveur, accepte. Signalez aux responsables de cette application qu’elle doit demander moins de droits d’accès.'
  }
}
