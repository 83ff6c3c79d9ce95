/**
 * Functions for the pages of this site. Without a bundler, a page imports them from `/api/auth/client.js`. With a
 * bundler, it imports them from `platform-auth-server/client`, and `/api/auth/` must be at the root of the site.
 */

declare global {
  interface WindowEventMap {
    /**
     * The session of a user who was signed in has ended, in this tab or in another tab. The page should discard the
     * user's tokens and data. The next call to one of the functions below opens the sign-in page. If the page calls
     * `event.preventDefault()`, the next call rejects instead, so that the user can save unsaved work.
     */
    sessionended: Event
  }
}

/**
 * Works like `fetch()`. If nobody is signed in (401), the browser opens the sign-in page once for all calls, and then
 * returns to the same page. If the session cannot be refreshed at the moment (503), the call waits as long as
 * `Retry-After` says, and sends the request again. To limit this time, pass `signal: AbortSignal.timeout(60_000)`.
 */
export function apiFetch(input: RequestInfo | URL, init?: RequestInit): Promise<Response>

/**
 * Returns the name of the user, or undefined if nobody is signed in. This function does not open the sign-in page.
 * @throws Error if the server cannot get the name at the moment
 */
export function getProfile(): Promise<{ readonly name: string } | undefined>

/**
 * Passes the public access token and its remaining lifetime to `callback`, as the viewer of Autodesk Platform Services
 * expects from its option `getAccessToken`. If nobody is signed in, the browser opens the sign-in page. While the
 * network or the identity provider is down, the function keeps trying, because the viewer asks only once when a token
 * expires.
 * @throws Error in single mode, which has no public token
 */
export function getAccessToken(callback: (accessToken: string, expiresInSeconds: number) => void): Promise<void>

/**
 * Opens the sign-in page. After the sign-in, the browser opens `returnTo`, by default the current page.
 * @param returnTo path, query and fragment of a page of this site
 */
export function signIn(returnTo?: string): Promise<never>

/**
 * Ends the session. The browser then opens `returnTo`, by default the start page. The other tabs get the event
 * `sessionended`.
 * @param returnTo path, query and fragment of a page of this site
 */
export function signOut(returnTo?: string): Promise<never>
