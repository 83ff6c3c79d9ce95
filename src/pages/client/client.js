/**
 * Functions for the pages of this site. The server serves this file as `/api/auth/client.js`, and a bundler can import
 * it as `platform-auth-server/client`. client.d.ts documents the functions.
 *
 * Only the header `Session-Status` of this origin shows that a request was not executed, so nothing else makes this
 * module sign in or send a request again.
 */
// With a `beforeunload` handler, the user may stay on the page. So after this time, the next call opens the sign-in
// page again.
const LEAVE_MS = 10_000
const LOOP_MS = 300_000
const STORAGE_KEY = 'platform-auth-server sign-ins'
const never = new Promise(() => {})

/** True after a response with a session, false after one without, undefined before. */
let isSignedIn
/** The hashes of the user in the latest response. */
let user
/** True if the page has called `preventDefault()` on `sessionended`, so no call may open the sign-in page. */
let staysOpen = false
let leavesUntil = 0

// On a server that renders pages, and in tests with jsdom, an open channel would keep the process running.
const otherTabs = globalThis.document && globalThis.BroadcastChannel && new BroadcastChannel(urlOf('client.js'))
otherTabs?.unref?.()
otherTabs?.addEventListener('message', askServer)

export class SignInLoopError extends Error {
  name = 'SignInLoopError'
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
  return openSignIn(pathOf(returnTo, location.href))
}

export async function signOut(returnTo) {
  // When the next page replaces this page, the server has ended the session. If the user stays on this page and leaves it
  // later, the server tells the other tabs that the session still exists.
  addEventListener('pagehide', () => otherTabs?.postMessage(''), { once: true })
  return leaveFor('logout', pathOf(returnTo, '/'))
}

/** Repeats a request until the server does not say `retry`. A stream as the body can be sent only once. */
async function send(input, init, { triesOffline = false } = {}) {
  for (let attempt = 0; ; attempt += 1) {
    const response = await fetch(input?.clone?.() ?? input, init).catch(error => {
      if (!triesOffline) throw error
    })
    if (response && (statusOf(response) !== 'retry' || init?.duplex)) return noted(response)
    response?.body?.cancel().catch(() => {})
    await pause(attempt, response?.headers.get('retry-after'), init?.signal ?? input?.signal)
  }
}

function pause(attempt, retryAfter, signal) {
  const asked = Number(retryAfter) || (Date.parse(retryAfter) - Date.now()) / 1000 || 0
  const seconds = Math.min(60, Math.max(asked, 0.5 * 2 ** attempt) * (1 + Math.random() / 4))
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted()
    signal?.addEventListener('abort', () => reject(signal.reason), { once: true })
    setTimeout(resolve, seconds * 1000)
  })
}

/** Only a mock in a test has no URL. */
function isOurs({ url }) {
  return url === '' || url.startsWith(`${siteOrigin()}/`)
}

function statusOf(response) {
  return isOurs(response) && !response.ok ? response.headers.get('session-status') : null
}

/** Learns from a response who is signed in. The page gets the events before the response. */
function noted(response, tellsOtherTabs = true) {
  if (!isOurs(response)) return response
  const wasSignedIn = isSignedIn
  const isSignedOut = statusOf(response) === 'signed-out'
  const users = response.headers.get('session-user')?.split(' ')
  const isOtherUser = users && user && !users.some(hash => user.includes(hash))
  if (users) [isSignedIn, staysOpen, user] = [true, false, users]
  if (isSignedOut) isSignedIn = false
  else signInHelped(response, users)
  if (tellsOtherTabs && (isOtherUser || (isSignedOut && wasSignedIn !== false))) otherTabs?.postMessage('')
  if (isOtherUser) dispatchEvent(new Event('sessionchanged'))
  const hasEnded = isSignedOut && wasSignedIn && Date.now() > leavesUntil
  if (hasEnded) staysOpen = !dispatchEvent(new Event('sessionended', { cancelable: true }))
  return response
}

/** Another tab has news about the session. Only the server knows whether they are still true. */
function askServer() {
  const learn = response => noted(response, false)
  if (isSignedIn) fetch(urlOf('profile')).then(learn, () => {})
}

/** A worker has no page to leave, so it gets the response. */
function orSignIn(response) {
  if (statusOf(response) !== 'signed-out' || staysOpen || !globalThis.location?.replace) return response
  return Date.now() < leavesUntil ? never : openSignIn(pathOf(null, location.href), causeOf(response))
}

function causeOf({ url }) {
  return new URL(url, location.href).pathname
}

/** @param cause the path that needs a session, if a response is the reason */
function openSignIn(returnTo, cause) {
  // A user who clicks a button wants to sign in, however often.
  const { event } = globalThis
  const recent = event?.isTrusted && /^(click|keydown|submit)$/.test(event.type) ? [] : recentSignIns()
  if (recent.filter(signIn => !signIn.helped || (cause && signIn.cause === cause)).length < 2) {
    keepSignIns([...recent, { time: Date.now(), cause }])
    return leaveFor('login', returnTo)
  }
  dispatchEvent(new Event('signinloop'))
  const problem = cause ? `${cause} still says that nobody is signed in` : 'this page asks for another one'
  const reasons = `The browser may block cookies, or a service worker may respond to ${urlOf('login')}.`
  throw new SignInLoopError(`Two sign-ins have not helped: ${problem}. ${reasons}`)
}

function signInHelped(response, users) {
  const recent = recentSignIns()
  if (recent.length === 0) return
  const others = recent.filter(({ cause }) => cause !== causeOf(response))
  keepSignIns(others.map(signIn => ({ ...signIn, helped: signIn.helped || users !== undefined })))
}

/** Returns the sign-ins of this tab in the last minutes. A browser that blocks cookies stores none. */
function recentSignIns() {
  try {
    return JSON.parse(sessionStorage.getItem(STORAGE_KEY)).filter(({ time }) => Date.now() - time < LOOP_MS)
  } catch {
    return []
  }
}

function keepSignIns(signIns) {
  try {
    sessionStorage.setItem(STORAGE_KEY, JSON.stringify(signIns))
  } catch {}
}

/** Returns a promise that never settles, because the page must not continue while the browser leaves it. */
function leaveFor(route, returnTo) {
  leavesUntil = Date.now() + LEAVE_MS
  location.replace(`${urlOf(route)}?${new URLSearchParams({ return_to: returnTo })}`)
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
