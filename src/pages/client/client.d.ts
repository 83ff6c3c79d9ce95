/**
 * Functions for the pages of this site. Without a bundler, a page imports them from `/api/auth/client.js`. With a
 * bundler, it imports them from `platform-auth-server/client`, and `/api/auth/` must be at the root of the site.
 *
 * Web workers may import the module, too. In a worker, a call returns the 401 instead of opening the sign-in page.
 */

declare global {
  interface WindowEventMap {
    /**
     * A call is about to leave the page for the sign-in. If the page calls `event.preventDefault()`, it stays open, and the
     * call rejects with `SignInPreventedError`, so that the user can keep what was typed. Each such call dispatches the event.
     */
    beforesignin: CustomEvent<null>
    /**
     * The session of a user who was signed in has ended, in this tab or in another tab. The page should discard the
     * user's tokens and data. The next call to `apiFetch` or `getAccessToken` opens the sign-in page.
     */
    sessionended: CustomEvent<null>
    /**
     * Another user has signed in, in this tab or in another tab, or a page that showed nobody comes from the back/forward cache while
     * somebody is signed in. The page should discard what it shows, for example with `location.reload()`. The event precedes the
     * first response that belongs to the new user.
     */
    sessionchanged: CustomEvent<null>
    /** A call waits, because the session cannot be refreshed at the moment. `detail.seconds` is how long it has waited so far. */
    sessionwaiting: CustomEvent<{ readonly seconds: number }>
    /** A call has rejected with `SignInLoopError`. */
    signinloop: CustomEvent<null>
  }
}

/**
 * Two sign-ins that this tab began by itself within five minutes have not helped, or five within a minute did not last, so the
 * sign-in page is not opened again. The message says which URL needs a session, and the likely cause. A user who clicks a button
 * that calls `signIn` can sign in at any time.
 */
export class SignInLoopError extends Error {
  readonly name: 'SignInLoopError'
}

/** The page has prevented the event `beforesignin`. The request was not executed. */
export class SignInPreventedError extends Error {
  readonly name: 'SignInPreventedError'
}

/**
 * Works like `fetch()`. If this server says that nobody is signed in, the browser opens the sign-in page once for all calls, and
 * then returns to the same page. If the session cannot be refreshed at the moment, the call waits as long as `Retry-After` says
 * (0.5 to 60 seconds, longer each time), and sends the request again, unless its body is a stream. To limit this time, pass
 * `signal: AbortSignal.timeout(60_000)`.
 *
 * Every other response is returned, including a 401 or 503 of an API, of a custom route or of another origin. A request that an
 * API may have executed is never sent again.
 * @throws SignInLoopError, SignInPreventedError
 */
export function apiFetch(input: RequestInfo | URL, init?: RequestInit): Promise<Response>

/**
 * Returns the name of the user, or undefined if nobody is signed in. This function does not open the sign-in page.
 * @throws Error if the server cannot get the name at the moment, or if the response does not come from the login server
 */
export function getProfile(): Promise<{ readonly name: string } | undefined>

/**
 * Returns the public access token and its remaining lifetime in seconds. Also passes both to `callback`, as the viewer of Autodesk Platform Services
 * expects from its option `getAccessToken`. If nobody is signed in, the browser opens the sign-in page. While the
 * network or the identity provider is down, the function keeps trying, because the viewer asks only once when a token
 * expires.
 * @throws Error in single mode, which has no public token, or if the response does not come from the login server
 * @throws SignInLoopError, SignInPreventedError
 */
export function getAccessToken(
  callback?: (accessToken: string, expiresInSeconds: number) => void
): Promise<{ readonly access_token: string; readonly expires_in: number }>

/**
 * Opens the sign-in page. After the sign-in, the browser opens `returnTo`, by default the current page. As an event handler
 * (`button.onclick = signIn`), it returns to the current page. After a click, the current page stays in the history; otherwise the
 * sign-in replaces it.
 * @param returnTo a URL of this site, absolute or relative to the current page. Any other URL means the start page.
 * @throws SignInLoopError unless the user has clicked
 */
export function signIn(returnTo?: string | URL | object | null): Promise<never>

/**
 * Ends the session. The browser then opens `returnTo`, by default the start page. The other tabs get the event
 * `sessionended`. It can be an event handler, like `signIn`.
 * @param returnTo a URL of this site, absolute or relative to the current page. Any other URL means the start page.
 */
export function signOut(returnTo?: string | URL | object | null): Promise<never>
