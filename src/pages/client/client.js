/**
 * Functions for the pages of this site. The server serves this file as `/api/auth/client.js`, and a bundler can import
 * it as `platform-auth-server/client`. client.d.ts documents the functions.
 */
const DEFAULT_RETRY_SECONDS = 5
// With a `beforeunload` handler, the user may stay on the page. So after this time, the next call opens the sign-in
// page again.
const LEAVE_MS = 10_000
const never = new Promise(() => {})

/** True from a response with status 200 until the session ends. */
let isSignedIn = false
/** True if the page has called `preventDefault()` on `sessionended`, so no call may open the sign-in page. */
let staysOpen = false
let leavesUntil = 0
let pause

// A server that renders pages may import this file, too. On a server, an open channel would keep the process running,
// so no channel is opened.
const otherTabs = globalThis.document && new BroadcastChannel(urlOf('client.js'))
otherTabs?.addEventListener('message', endSession)

export async function apiFetch(input, init) {
  return orSignIn(await send(input, init))
}

export async function getProfile() {
  const response = await send(urlOf('profile'))
  return response.status === 401 ? undefined : bodyOf(response)
}

export async function getAccessToken(callback) {
  const response = await orSignIn(await send(urlOf('token'), {}, { triesOffline: true }))
  const { access_token, expires_in } = await bodyOf(response)
  callback(access_token, expires_in)
}

export function signIn(returnTo = location.pathname + location.search + location.hash) {
  return leaveFor('login', returnTo)
}

export function signOut(returnTo = '/') {
  isSignedIn = false
  // The other tabs are notified when the next page replaces this page, because by then the server has ended the
  // session.
  addEventListener('pagehide', () => otherTabs?.postMessage('sessionended'), { once: true })
  return leaveFor('logout', returnTo)
}

/** Repeats a request until the response is not a temporary failure of this server. */
async function send(input, init, { triesOffline = false } = {}) {
  const signal = init?.signal ?? input.signal
  for (;;) {
    const response = await fetch(input instanceof Request ? input.clone() : input, init).catch(error => {
      if (!triesOffline) throw error
    })
    if (response && !(await isTemporary(response, signal))) return noted(response)
    await Promise.race([pauseAfter(response), abortOf(signal)])
  }
}

/**
 * Returns true for a 503 of this server itself. Returns false for a 503 of an API behind the proxy, because the API may
 * have executed the request, so the page must decide whether to send it again.
 */
async function isTemporary(response, signal) {
  if (response.status !== 503) return false
  const { error } = await jsonOf(response.clone())
  // The body is incomplete if the page has aborted the request meanwhile.
  signal?.throwIfAborted()
  return error === 'temporarily_unavailable'
}

/** Returns the same promise to all waiting calls, so that they send their requests again at the same time. */
function pauseAfter(response) {
  const seconds = Number(response?.headers.get('retry-after')) || DEFAULT_RETRY_SECONDS
  pause ??= new Promise(resolve => setTimeout(resolve, seconds * 1000)).finally(() => {
    pause = undefined
  })
  return pause
}

function abortOf(signal) {
  return new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason), { once: true }))
}

function noted(response) {
  if (response.ok) [isSignedIn, staysOpen] = [true, false]
  if (response.status !== 401) return response
  endSession()
  otherTabs?.postMessage('sessionended')
  return response
}

function endSession() {
  if (!isSignedIn) return
  isSignedIn = false
  staysOpen = !dispatchEvent(new Event('sessionended', { cancelable: true }))
}

function orSignIn(response) {
  if (response.status !== 401 || staysOpen) return response
  return Date.now() < leavesUntil ? never : signIn()
}

/** Returns a promise that never settles, because the page must not continue while the browser leaves it. */
function leaveFor(route, returnTo) {
  leavesUntil = Date.now() + LEAVE_MS
  location.replace(`${urlOf(route)}?${new URLSearchParams({ return_to: returnTo })}`)
  return never
}

async function bodyOf(response) {
  const body = await jsonOf(response)
  if (response.ok) return body
  throw new Error(body.error_description ?? `The server responded with status ${response.status}.`)
}

function jsonOf(response) {
  return response.json().catch(() => ({}))
}

/**
 * If this module is part of a bundle, it does not know the base path, so it expects the routes at the root of the site.
 */
function urlOf(route) {
  const isServed = new URL(import.meta.url).pathname.endsWith('/api/auth/client.js')
  return isServed ? new URL(route, import.meta.url).href : new URL(`/api/auth/${route}`, location.href).href
}
