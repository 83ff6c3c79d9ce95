/**
 * The server serves this file as `/api/auth/client.js`, and a bundler can import it as `platform-auth-server/client`. client.d.ts
 * documents the functions.
 *
 * Only the header `Session-Status` of this origin shows that a request was not executed. Nothing else makes this module
 * sign in or repeat a request.
 */
// With a `beforeunload` handler, the user may stay on the page, so the next call after this time opens the sign-in again.
const LEAVE_MS = 10_000
const MINUTE_MS = 60_000
const STORAGE_KEY = 'platform-auth-server sign-ins'
const never = new Promise(() => {})

/** True after a response with a session, false after one without, undefined before. */
let isSignedIn
/** The hashes of the user in the latest response. */
let user
let leavesUntil = 0

// On a server that renders pages, and in tests with jsdom, an open channel would keep the process running.
const otherTabs = globalThis.document && globalThis.BroadcastChannel && new BroadcastChannel(urlOf('client.js'))
otherTabs?.unref?.()
otherTabs?.addEventListener('message', () => isSignedIn && askServer())
if (globalThis.document) addEventListener('pageshow', ({ persisted }) => persisted && askAgain())

export class SignInLoopError extends Error {
  name = 'SignInLoopError'
}

export class SignInPreventedError extends Error {
  name = 'SignInPreventedError'
}

export async function apiFetch(input, init) {
  return orSignIn(await send(input, init))
}

export async function getProfile() {
  const response = await send(urlOf('profile'))
  return statusOf(response) === 'signed-out' ? undefined : read(response, 'name')
}

export async function getAccessToken(callback) {
  const response = await orSignIn(await send(urlOf('token'), {}, { triesOffline: true }))
  const token = await read(response, 'access_token')
  callback?.(token.access_token, token.expires_in)
  return token
}

export async function signIn(returnTo) {
  const path = pathOf(returnTo, location.href)
  // A user may sign in however often, and go back to the page with the button.
  return isByUser() ? leaveFor('login', path, 'assign') : openSignIn(path)
}

export async function signOut(returnTo) {
  // If the user stays on this page and leaves it later, the server tells the other tabs that the session still exists.
  addEventListener('pagehide', () => otherTabs?.postMessage(''), { once: true })
  return leaveFor('logout', pathOf(returnTo, '/'))
}

/** Repeats a request until the server does not say `retry`. A stream as the body can be sent only once. */
async function send(input, init, { triesOffline = false } = {}) {
  const start = Date.now()
  for (let attempt = 0; ; attempt += 1) {
    const response = await fetch(input?.clone?.() ?? input, init).catch(error => {
      if (!triesOffline) throw error
    })
    if (response && (statusOf(response) !== 'retry' || init?.duplex)) return noted(response)
    response?.body?.cancel().catch(() => {})
    tell('sessionwaiting', { seconds: Math.round((Date.now() - start) / 1000) })
    await pause(attempt, response?.headers.get('retry-after'), init?.signal ?? input?.signal)
  }
}

function pause(attempt, retryAfter, signal) {
  const asked = Number(retryAfter) || (Date.parse(retryAfter) - Date.now()) / 1000 || 0
  const seconds = Math.min(60, Math.max(asked, 0.5 * 2 ** attempt) * (1 + Math.random() / 4))
  return new Promise((resolve, reject) => {
    // Safari before 15.4 has no reasons.
    const stop = () => reject(signal.reason ?? new DOMException('', 'AbortError'))
    if (signal?.aborted) return stop()
    signal?.addEventListener('abort', stop, { once: true })
    setTimeout(resolve, seconds * 1000)
  })
}

/** A mock in a test has no URL. */
function isOurs({ url }) {
  return url === '' || url.startsWith(`${siteOrigin()}/`)
}

function statusOf(response) {
  return isOurs(response) && !response.ok ? response.headers.get('session-status') : null
}

/** Returns false if the page has prevented what follows. A server that renders pages has no events. */
function tell(type, detail) {
  return globalThis.dispatchEvent?.(new CustomEvent(type, { detail, cancelable: type === 'beforesignin' })) ?? true
}

/** Learns who is signed in. The page gets the events before the response. */
function noted(response, tellsOtherTabs = true) {
  if (!isOurs(response)) return response
  const wasSignedIn = isSignedIn
  const isSignedOut = statusOf(response) === 'signed-out'
  const users = response.headers.get('session-user')?.split(' ')
  const isOtherUser = users && user && !users.some(hash => user.includes(hash))
  if (users) [isSignedIn, user] = [true, users]
  if (isSignedOut) isSignedIn = false
  else keepSignIns(recentSignIns().map(({ time }) => ({ time, helped: true })))
  if (tellsOtherTabs && (isOtherUser || (isSignedOut && wasSignedIn !== false))) otherTabs?.postMessage('')
  if (isOtherUser) tell('sessionchanged')
  if (isSignedOut && wasSignedIn && Date.now() > leavesUntil) tell('sessionended')
  return response
}

/** Another tab has news about the session. Only the server knows whether they are still true. */
async function askServer() {
  const response = await fetch(urlOf('profile')).catch(() => undefined)
  if (response) noted(response, false)
}

/** The back/forward cache keeps a page as it was left: with a user who has signed out, or without one who has signed in. */
async function askAgain() {
  leavesUntil = 0
  const wasSignedIn = isSignedIn
  if (wasSignedIn !== undefined) await askServer()
  if (wasSignedIn === false && isSignedIn) tell('sessionchanged')
}

/** A worker has no page to leave, so it gets the response. */
function orSignIn(response) {
  if (statusOf(response) !== 'signed-out' || !globalThis.location?.replace) return response
  if (Date.now() < leavesUntil) return never
  return openSignIn(pathOf(null, location.href), new URL(response.url, location.href).pathname)
}

/** @param cause the path that needs a session, if a response is the reason */
function openSignIn(returnTo, cause) {
  const recent = recentSignIns()
  const isUseless = recent.filter(({ helped }) => !helped).length >= 2
  if (isUseless || recent.filter(({ time }) => Date.now() - time < MINUTE_MS).length >= 5) {
    tell('signinloop')
    const problem = isUseless
      ? `have not helped. The browser may block cookies, or a service worker may respond to ${urlOf('login')}`
      : 'did not last. Another server on this host may use the same cookie (session.cookieName)'
    throw new SignInLoopError(`${cause ?? 'This page'} needs a sign-in again, but the latest ones ${problem}.`)
  }
  if (cause && !tell('beforesignin')) {
    throw new SignInPreventedError(`${cause} needs a sign-in, which this page has prevented. Nothing was saved.`)
  }
  keepSignIns([...recent, { time: Date.now() }])
  return leaveFor('login', returnTo)
}

function isByUser() {
  const { event, navigator } = globalThis
  return (event?.isTrusted && /^(click|keydown|submit)$/.test(event.type)) || navigator?.userActivation?.isActive
}

/** A browser that blocks cookies stores nothing. */
function recentSignIns() {
  try {
    return JSON.parse(sessionStorage.getItem(STORAGE_KEY)).filter(({ time }) => Date.now() - time < 5 * MINUTE_MS)
  } catch {
    return []
  }
}

function keepSignIns(signIns) {
  if (signIns.length === 0) return
  try {
    sessionStorage.setItem(STORAGE_KEY, JSON.stringify(signIns))
  } catch {}
}

/** Returns a promise that never settles, because the page must not continue while the browser leaves it. */
function leaveFor(route, returnTo, how = 'replace') {
  leavesUntil = Date.now() + LEAVE_MS
  location[how](`${urlOf(route)}?${new URLSearchParams({ return_to: returnTo })}`)
  return never
}

/** @param returnTo a string, a URL, or the event of a click, which means the default */
function pathOf(returnTo, byDefault) {
  const target = typeof returnTo === 'string' ? returnTo : (returnTo?.href ?? byDefault)
  const { origin, pathname, search, hash } = new URL(target, location.href)
  return origin === siteOrigin() ? pathname + search + hash : '/'
}

async function read(response, member) {
  const body = await response.json().catch(() => undefined)
  if (response.ok && typeof body?.[member] === 'string') return body
  const expected = body ? `JSON with ${member}` : 'JSON'
  const problem = response.ok ? `did not return ${expected}` : `responded with status ${response.status}`
  const advice = response.ok || response.status === 404 ? '; is it forwarded to the login server?' : ''
  throw new Error(body?.error_description ?? `${response.url} ${problem}${advice}`)
}

/** A module in a bundle does not know the base path, so it expects the routes at the root of the site. */
function urlOf(route) {
  const [, served] = /^(.*\/api\/auth\/)client\.js(?:[?#]|$)/.exec(import.meta.url) ?? []
  return `${served ?? `${siteOrigin()}/api/auth/`}${route}`
}

/** A server that renders pages has no location. */
function siteOrigin() {
  return globalThis.location && new URL(location.href).origin
}
