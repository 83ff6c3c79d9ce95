/**
 * The texts of the pages in English. The other languages must have the same keys. A text is plain text. It may contain
 * placeholders such as `{{host}}`, which `PLACEHOLDERS` lists.
 */
export const en = {
  actions: {
    signIn: 'Sign in',
    signInAgain: 'Sign in again',
    home: 'Go to the start page'
  },
  details: {
    intro: 'If you ask for help, quote this:',
    error: 'Error {{code}}: {{description}}',
    errorCode: 'Error {{code}}',
    request: 'Request {{id}}'
  },
  notSignedIn: {
    title: 'You are not signed in',
    happened: 'This page is for people who are signed in. You have no session, or it has ended.',
    next: 'Sign in to continue.'
  },
  accountNotAllowed: {
    title: 'Your account is not allowed to sign in here',
    happened:
      'Signing in worked, but this application admits only the accounts on its list. Your account is not on the list, or its e-mail address has not been verified.',
    next: 'If you have another account, sign in with that one. Otherwise ask the people who run this application for access.'
  },
  sessionTooLarge: {
    title: 'Your session is too large',
    happened:
      'Signing in worked, but the data of your account is larger than a session may be, so this application cannot keep your session.',
    next: 'Trying again will not help. Tell the people who run this application that it must request less access.'
  },
  loginNotCompleted: {
    title: 'This sign-in could not be completed',
    happened:
      'The link that leads back from the sign-in page is too old, was used before, or belongs to another browser or a private window.',
    next: 'Sign in again. If you come back here every time, allow cookies for this site and close its older tabs.'
  },
  accessNotGranted: {
    title: 'Access was not granted',
    happened: 'The sign-in page reported that access was refused, or that signing in was cancelled.',
    next: 'If you did not intend this, sign in again and allow access. If you were not asked for permission, your account may have no access to this application. Then ask the people who run this application.'
  },
  otherSite: {
    title: 'This request came from another site',
    happened: 'Another website tried to use your session here. The request was refused and nothing was changed.',
    next: 'If you wanted to do this, open the application itself and try again there.'
  },
  notFound: {
    title: 'There is no page here',
    happened: 'Nothing was found at this address.',
    next: 'Check the address for a typing mistake, or go to the start page.'
  },
  methodNotAllowed: {
    title: 'This address cannot be used that way',
    happened: 'A form or a program sent data to this address, which does not accept data.',
    next: 'Start again from the start page.'
  },
  requestTooLarge: {
    title: 'The request is too large',
    happened: 'The request was larger than this server accepts.',
    next: 'Start again from the start page. If this error appears again, clear the cookies of this site.'
  },
  invalidRequest: {
    title: 'That did not work',
    happened: 'The server could not understand this request.',
    next: 'Check the address for a typing mistake, or start again from the start page.'
  },
  serverError: {
    title: 'Something went wrong on our side',
    happened: 'The server had an unexpected error. You did not cause it.',
    next: 'Try again. If it keeps happening, tell the people who run this application.'
  },
  providerError: {
    title: 'The sign-in service has a problem',
    happened: 'The service that manages your account answered with an error, or with data that this server cannot use.',
    next: 'Sign in again. If it fails again, tell the people who run this application.'
  },
  providerUnavailable: {
    title: 'Please try again in a moment',
    happened: 'The sign-in service is not available at the moment. If you were signed in, you still are.',
    next: 'Wait a few seconds, then try again.'
  },
  providerSlow: {
    title: 'The sign-in service is taking too long',
    happened: 'The service that manages your account did not answer in time. If you were signed in, you still are.',
    next: 'Wait a moment, then sign in again.'
  },
  providerUnreachable: {
    title: 'The sign-in service cannot be reached',
    happened:
      'This server could not connect to the service that manages your account. If you were signed in, you still are.',
    next: 'Wait a moment, then sign in again. If it keeps happening, tell the people who run this application.'
  },
  busy: {
    title: 'The service is busy',
    happened: 'The sign-in service cannot answer at the moment. If you were signed in, you still are.',
    next: 'This page tries again by itself {{when}}. You do not have to do anything.'
  },
  loginLoop: {
    title: 'You signed in, but the browser did not stay signed in',
    happened:
      'Signing in worked, but your browser did not send back a cookie that this site needs to keep you signed in. The next page would therefore ask you to sign in again.',
    reason: 'The likely reason',
    reasons: 'The likely reasons',
    secureCookieOnHttp:
      'You may have opened this site over plain http, but browsers keep this cookie over https only. Open {{address}} instead.',
    otherHost:
      'You may have opened this site under a host name other than {{host}}, to which sign-in returns. Browsers keep separate cookies for each host name. Open {{address}} instead.',
    otherName:
      'You opened {{startedAt}}, but sign-in returns to {{host}}. Both names mean this machine, but browsers keep separate cookies for each name. Open {{address}} instead.',
    cookiesBlocked:
      'The browser blocks cookies for this site. Allow them in its settings, and check your privacy extensions. If this page is shown inside another site, the browser often blocks its cookies.',
    cookieTooLarge:
      'The data of your account is larger than the cookies that the browser, or a proxy in front of this server, accepts. Tell the people who run this application that it must request less access.'
  }
}
