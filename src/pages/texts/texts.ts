/** The texts of an error page. */
export interface Explanation {
  readonly title: string
  readonly happened: string
  readonly next: string
}

/**
 * All texts of the pages in one language. A text is plain text. It may contain placeholders such as `{{host}}`, which
 * `PLACEHOLDERS` lists.
 */
export interface Texts {
  readonly actions: { readonly signIn: string; readonly signInAgain: string; readonly home: string }
  readonly details: {
    readonly intro: string
    readonly error: string
    readonly errorCode: string
    readonly request: string
  }
  readonly notSignedIn: Explanation
  readonly accountNotAllowed: Explanation
  readonly sessionTooLarge: Explanation
  readonly loginNotCompleted: Explanation
  readonly accessNotGranted: Explanation
  readonly otherSite: Explanation
  readonly notFound: Explanation
  readonly methodNotAllowed: Explanation
  readonly requestTooLarge: Explanation
  readonly invalidRequest: Explanation
  readonly serverError: Explanation
  readonly providerError: Explanation
  readonly providerUnavailable: Explanation
  readonly providerSlow: Explanation
  readonly providerUnreachable: Explanation
  readonly busy: Explanation
  readonly loginLoop: {
    readonly title: string
    readonly happened: string
    readonly reason: string
    readonly reasons: string
    readonly secureCookieOnHttp: string
    readonly otherHost: string
    readonly otherName: string
    readonly cookiesBlocked: string
    readonly cookieTooLarge: string
  }
}

/** The placeholders that each text may contain, by its key. The other texts have none. */
export const PLACEHOLDERS: Readonly<Record<string, readonly string[] | undefined>> = {
  'details.error': ['code', 'description'],
  'details.errorCode': ['code'],
  'details.request': ['id'],
  'busy.next': ['when'],
  'loginLoop.secureCookieOnHttp': ['address'],
  'loginLoop.otherHost': ['host', 'address'],
  'loginLoop.otherName': ['startedAt', 'host', 'address']
}
