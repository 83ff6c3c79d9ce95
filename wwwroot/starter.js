// Requests the profile of the user who is signed in, and shows it. The attribute data-state of <main> names the state of
// the page. The list of routes shows the last response of each route.
import { copyText } from './copy.js'

const main = document.querySelector('main')
const part = id => document.getElementById(id)

/** The parts that each state shows. The message and the routes are always visible. */
const shown = {
  asking: ['intro'],
  'signed-out': ['intro', 'sign-in', 'fifty', 'placeholder'],
  'signed-in': ['sign-out', 'next', 'fifty', 'single'],
  'signed-in-with-token': ['sign-out', 'next', 'fifty', 'token'],
  failure: ['next-try', 'try-again'],
  'failure-signed-in': ['next-try', 'try-again', 'sign-out']
}

/** The response of a private route contains data of the user. */
const routes = [
  {
    path: 'api/auth/login',
    text: 'Sends the browser to the identity provider. Press Try to open the provider, which then sends you back to this page.',
    try: () => part('sign-in').click()
  },
  {
    path: 'api/auth/callback',
    isOnlyShown: true,
    text: 'After the sign-in, the identity provider sends the browser back to this URL. '
  },
  { path: 'api/auth/profile', isPrivate: true, text: 'Returns the name of the user who is signed in.' },
  {
    path: 'api/auth/token',
    isPrivate: true,
    text: 'In dual mode, returns the public access token and its remaining lifetime in seconds.'
  },
  { path: 'api/auth/logout', text: 'Ends the session. Press Try to sign out.' },
  { path: 'healthz', text: 'Returns 200 while the process runs.' },
  { path: 'readyz', text: 'Returns 200 while the server accepts requests, and 503 while it stops.' }
]

const demoRoute = {
  path: 'api/hubs',
  isPrivate: true,
  text: 'In the demo, a proxy rule forwards this request to the platform and adds the token that stays on the server.'
}

/** The response headers that this page shows. */
const tellingHeaders = ['content-type', 'cache-control', 'retry-after', 'allow']

const notUnderstood = 'The server sent a response that this page does not understand.'

const texts = {
  403: 'The server rejected the request, because it seems to come from another site. Open this page directly, in a separate tab.',
  502: 'You are still signed in, but the sign-in service sent no usable response.',
  503: 'You are still signed in, but the sign-in service is not available just now.',
  504: 'You are still signed in, but the sign-in service is taking too long.'
}

let about = {}
let isAboutNew = false
let name
let token
let timer
let failures = 0
let asking

routes.forEach(showRoute)
part('routes').hidden = false
part('sign-in').href += `?return_to=${encodeURIComponent(location.pathname + location.search)}`
part('sign-in').addEventListener('click', noteSignIn)
part('try-again').addEventListener('click', askAll)
part('copy').addEventListener('click', copyToken)
addEventListener('online', askAll)
// The session may have ended while the page was in the background, or while it was in the browser's back/forward cache.
addEventListener('pageshow', event => event.persisted && askAll())
document.addEventListener('visibilitychange', () => document.visibilityState === 'visible' && askAll())

start()

async function start() {
  show('asking', 'Checking if you are signed in …')
  // The user can begin the next login before the page has the responses, so this must not be read later.
  const isReturn = sessionStorage.getItem('login') !== null
  sessionStorage.removeItem('login')
  await showAbout()
  await askAll()
  if (isReturn && name !== undefined) showReturn()
}

/** Shows the mode of the server, the folder for pages, and in a demo the parts of the page that exist only there. */
async function showAbout() {
  await readAbout()
  isAboutNew = true
  const tags = [about.mode && `${about.mode} mode`, about.demo && 'demo identity provider']
  part('about').replaceChildren(...tags.filter(Boolean).map(text => element('span', { className: 'tag' }, text)))
  if (about.folder) part('folder').firstChild.textContent = about.folder
  if (about.folder)
    part('how').firstChild.textContent = about.hasFolder ? 'Replace its ' : 'Create this folder, put an '
  if (about.hasFolder) part('how').lastChild.textContent = ' with your own. The next reload shows it.'
  if (!about.demo) return
  routes.push(demoRoute)
  showRoute(demoRoute)
  const { showFifty } = await import('./fifty.js')
  showFifty(part('fifty'), about.mode, askAll)
}

async function readAbout() {
  about = await fetch('starter-about.json')
    .then(response => response.json())
    .catch(() => ({}))
}

function askAll() {
  return ask(async () => {
    const found = await getName()
    // The profile that is shown is already that of the new user.
    if (name !== undefined && found !== name) forgetUser('api/auth/profile')
    name = found
    showSignedIn(about.mode === 'single' ? undefined : await getToken())
  })
}

/** Requests the token again when it has expired. The server then refreshes the session. */
function askToken() {
  return ask(async () => showSignedIn(await getToken()))
}

/** Does one work at a time. If one is in progress, waits for it instead, because events of the browser can come at any time. */
function ask(work) {
  // An event during the call of `work` must not begin another one.
  asking ??= Promise.resolve()
    .then(work)
    .then(() => {
      failures = 0
    }, showFailure)
    .finally(() => {
      asking = undefined
    })
  return asking
}

async function getName() {
  // A browser without a session would log the 401 as an error.
  if (name === undefined && !isAboutNew) await readAbout()
  isAboutNew = false
  if (name === undefined && about.hasSession === false) throw new Failure({ status: 401 })
  const profile = await get('api/auth/profile')
  if (typeof profile.name === 'string') return profile.name
  throw new Failure({ text: notUnderstood })
}

/** Returns the public token. In single mode there is none, so the route returns 404, and this function returns undefined. */
async function getToken() {
  const response = await get('api/auth/token').catch(failure => {
    if (failure.status === 404) return undefined
    throw failure
  })
  if (response === undefined || isToken(response)) return response
  throw new Failure({ text: notUnderstood })
}

function isToken(body) {
  return typeof body?.access_token === 'string' && Number.isFinite(body.expires_in)
}

async function get(path) {
  const { status, headers, body } = await request(path, 299)
  if (status < 200 || status > 299) throw new Failure({ status, retryAfter: headers.get('retry-after') })
  if (typeof body === 'object' && body) return body
  throw new Failure({ text: notUnderstood })
}

/**
 * Requests a route and shows the response next to it.
 * @param highest the highest status to show; for a higher one, the earlier response of this route is removed
 */
async function request(path, highest = 599) {
  const start = performance.now()
  const options = { cache: 'no-store', redirect: 'manual', signal: AbortSignal.timeout(30_000) }
  try {
    const response = await fetch(path, options)
    const { status, type, headers } = response
    const text = await response.text()
    const ms = performance.now() - start
    const body = parsed(text)
    if (status > highest) routes.find(route => route.path === path).response.replaceChildren()
    else if (type === 'opaqueredirect')
      showAnswer(path, { code: 'Redirect', ms, text: 'The browser does not tell this page where the redirect leads.' })
    else showAnswer(path, { code: status, ms, headers, text: text === '' ? '(empty body)' : readable(body) })
    return { status, headers, body }
  } catch {
    showAnswer(path, { code: 'No response', ms: performance.now() - start })
    throw new Failure({ text: 'The server cannot be reached. Check your network connection.' })
  }
}

function parsed(text) {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

function readable(body) {
  const shorten = (_key, value) =>
    typeof value === 'string' && value.length > 200 ? `${value.slice(0, 12)}…${value.slice(-6)}` : value
  return typeof body === 'string' ? body.slice(0, 200) : JSON.stringify(body, shorten, 2)
}

class Failure extends Error {
  constructor({ status, text = texts[status] ?? `The server returned error ${status}.`, retryAfter }) {
    super(text)
    this.status = status
    this.retryAfter = secondsUntil(retryAfter)
  }
}

/** Returns the seconds of `Retry-After`, which contains seconds or a date. */
function secondsUntil(retryAfter) {
  const seconds = /^\d+$/.test(retryAfter) ? Number(retryAfter) : (Date.parse(retryAfter) - Date.now()) / 1000
  return Number.isFinite(seconds) ? Math.min(Math.max(seconds, 1), 300) : undefined
}

function showRoute(route) {
  const { path, text, isOnlyShown } = route
  const button = element('button', { className: 'button second', type: 'button', ariaLabel: `Try ${path}` }, 'Try')
  button.addEventListener('click', () => (route.try ?? tryRoute)(path))
  route.response = element('div', { className: 'answer' })
  const heading = element('h3', {}, element('span', {}, 'GET '), `/${path}`)
  part('route-list').append(
    element(
      'li',
      { className: 'route' },
      element('div', {}, heading, element('p', {}, text)),
      isOnlyShown ? '' : button,
      route.response
    )
  )
}

async function tryRoute(path) {
  const { status, body } = await request(path).catch(() => ({}))
  const { isPrivate, response } = routes.find(route => route.path === path)
  say(part('said'), `${path} responded: ${response.firstChild.textContent}`)
  if (path === 'api/auth/token' && isToken(body) && name !== undefined) return showSignedIn(body)
  // The response may show that a session has begun or ended since the last request of this page, or that the user is another one.
  const isSignedIn = name !== undefined
  const isOtherUser = path === 'api/auth/profile' && body?.name !== name
  const tellsOfSession = isPrivate && [200, 401].includes(status)
  if (path === 'api/auth/logout' || (tellsOfSession && (isOtherUser || isSignedIn !== (status === 200)))) await askAll()
}

function noteSignIn() {
  sessionStorage.setItem('login', 'begun')
}

/** After a login, shows the redirect of the login route next to this route. */
function showReturn() {
  const text = 'The identity provider sent you back to api/auth/callback, and this route sent you to this page.'
  showAnswer('api/auth/login', { code: 302, text })
}

function showAnswer(path, { code, ms, headers = new Headers(), text = '' }) {
  // A status such as 401 is an expected response, so only failures of the server are red.
  const look = code === 'Redirect' || code < 400 ? 'good' : code < 500 ? '' : 'bad'
  const time = ms === undefined ? '' : `  ${Math.max(1, Math.round(ms))} ms`
  const lines = tellingHeaders
    .filter(header => headers.has(header))
    .map(header => `${header}: ${headers.get(header)}\n`)
  const status = element('p', {}, element('b', { className: look }, String(code)), time)
  const { response } = routes.find(route => route.path === path)
  response.replaceChildren(status, element('pre', {}, element('i', {}, lines.join('')), text))
}

function element(tag, properties, ...children) {
  const made = Object.assign(document.createElement(tag), properties)
  made.append(...children)
  return made
}

function showSignedIn(response) {
  show(response ? 'signed-in-with-token' : 'signed-in', `You are signed in as ${name}.`)
  if (response === undefined) return
  const isRefreshed = token !== undefined && token !== response.access_token
  if (isRefreshed) {
    part('by-hand').hidden = true
    say(part('token-note'), `Refreshed at ${new Date().toLocaleTimeString()}.`)
  }
  part('life').classList.toggle('refilled', isRefreshed)
  token = response.access_token
  // `expires_in` is 0 in the last half second of a token. With a minimum of 1, this page does not ask again immediately.
  const seconds = Math.max(response.expires_in, 1)
  const full = fullLife(seconds)
  countDown(part('token-life'), seconds, askToken, left =>
    part('life').firstChild.style.setProperty('--left', left / full)
  )
}

/**
 * Returns the number of seconds for which the bar is full: the remaining lifetime of the token when this tab first got
 * it.
 */
function fullLife(seconds) {
  const [seen, full] = JSON.parse(sessionStorage.getItem('life') ?? '[]')
  if (seen === token.slice(-8)) return Math.max(full, seconds)
  sessionStorage.setItem('life', JSON.stringify([token.slice(-8), seconds]))
  return seconds
}

function showFailure(failure) {
  token = undefined
  if (failure.status === 401) {
    show('signed-out', name === undefined ? 'You are not signed in.' : 'You are no longer signed in.')
    name = undefined
    failures = 0
    forgetUser()
    sessionStorage.removeItem('life')
    return
  }
  // The server calls the provider only for a session that it has decrypted. If the server responds with one of these
  // errors, the user is therefore still signed in.
  show([502, 503, 504].includes(failure.status) ? 'failure-signed-in' : 'failure', failure.message)
  countDown(part('next-try').querySelector('span'), failure.retryAfter ?? Math.min(60, 5 * 2 ** failures), askAll)
  failures += 1
}

/** The next user of this page must not find the data of the last one. */
function forgetUser(exceptPath) {
  token = undefined
  for (const { path, isPrivate, response } of routes) if (isPrivate && path !== exceptPath) response.replaceChildren()
  part('token-text').value = ''
  part('by-hand').hidden = true
  part('token-note').textContent = ''
}

function show(state, text) {
  clearTimeout(timer)
  main.dataset.state = state
  const focused = document.activeElement
  for (const id of new Set(Object.values(shown).flat())) part(id).hidden = !shown[state].includes(id)
  if (!about.demo) part('fifty').hidden = true
  if (focused?.closest('[hidden]')) document.querySelector('h1').focus()
  say(part('message'), text)
}

/** Sets the text only if it differs, because a screen reader reads every change aloud. */
function say(element, text) {
  if (element.textContent !== text) element.textContent = text
}

function countDown(element, seconds, then, each = () => {}) {
  clearTimeout(timer)
  const end = Date.now() + seconds * 1000
  tick()

  function tick() {
    const left = end - Date.now()
    element.textContent = inWords(Math.max(0, Math.ceil(left / 1000)))
    each(Math.max(0, left / 1000))
    if (left > 0) timer = setTimeout(tick, left % 1000 || 1000)
    else then()
  }
}

function inWords(seconds) {
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`
}

async function copyToken() {
  // The session may have ended in another tab. The page must not copy the token of that session.
  await askToken()
  if (token === undefined) return
  const note = part('token-note')
  say(note, '')
  const [field, byHand] = [part('token-text'), part('by-hand')]
  const isCopied = await copyText(token, () => {
    field.value = token
    byHand.hidden = false
    field.select()
  })
  if (isCopied) {
    byHand.hidden = true
    part('copy').focus()
    say(note, 'Copied.')
  }
}
