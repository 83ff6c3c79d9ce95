/**
 * Functions for the pages of this site. Without a bundler, a page imports them from `/api/auth/client.js`. With a
 * bundler, it imports them from `platform-auth-server/client`, and `/api/auth/` must be at the root of the site.
 *
 * Web workers may import the module, too. In a worker, a call returns the 401 instead of opening the sign-in page.
 */

declare global {
  interface WindowEventMap {
    /**
     * The session of a user who was signed in has ended, in this tab or in another tab. The page should discard the
     * user's tokens and data. The next call to one of the functions below opens the sign-in page. If the page calls
     * `event.preventDefault()`, the next call rejects instead, so that the user can save unsaved work.
     */
    sessionended: Event
    /**
     * Another user has signed in, in this tab or in another tab. The page should discard the data of the previous user, for
     * example with `location.reload()`. The event precedes the first response that belongs to the new user.
     */
    sessionchanged: Event
    /** A call has rejected with `SignInLoopError`. */
    signinloop: Event
  }
}

/**
 * Two sign-ins in this tab have not helped within five minutes, so the sign-in page is not opened again. The message says which
 * URL still has no session. A user who clicks can sign in at any time.
 */
export class SignInLoopError extends Error {
  readonly name: 'SignInLoopError'
}

/**
 * Works like `fetch()`. If this server says that nobody is signed in, the browser opens the sign-in page once for all calls, and
 * then returns to the same page. If the session cannot be refreshed at the moment, the call waits as long as `Retry-After` says
 * (0.5 to 60 seconds, longer each time), and sends the request again, unless its body is a stream. To limit this time, pass
 * `signal: AbortSignal.timeout(60_000)`.
 *
 * Every other response is returned, including a 401 or 503 of an API, of a custom route or of another origin. A request that an
 * API may have executed is never sent again.
 * @throws SignInLoopError
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
 * @throws SignInLoopError
 */
export function getAccessToken(
  callback?: (accessToken: string, expiresInSeconds: number) => void
): Promise<{ readonly access_token: string; readonly expires_in: number }>

/**
 * Opens the sign-in page. After the sign-in, the browser opens `returnTo`, by default the current page. As an event handler
 * (`button.onclick = signIn`), it returns to the current page.
 * @param returnTo a URL of this site, absolute or relative to the current page. Any other URL means the start page.
 * @throws SignInLoopError
 */
export function signIn(returnTo?: string | URL | object | null): Promise<never>

/**
 * Ends the session. The browser then opens `returnTo`, by default the start page. The other tabs get the event
 * `sessionended`. It can be an event handler, like `signIn`.
 * @param returnTo a URL of this site, absolute or relative to the current page. Any other URL means the start page.
 */
export function signOut(returnTo?: string | URL | object | null): Promise<never>
