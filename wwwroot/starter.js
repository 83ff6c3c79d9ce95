// Asks the server who is signed in and shows it: one state at a time, named on <main data-state>, and one countdown at a time.

const main = document.querySelector('main')
const part = id => document.getElementById(id)

/** Which parts each state shows; the message is always there. */
const shown = {
  asking: [],
  'signed-out': ['sign-in'],
  'signed-in': ['sign-out', 'answers'],
  'signed-in-with-token': ['sign-out', 'answers', 'token', 'token-answer'],
  failure: ['next-try', 'try-again'],
  'failure-signed-in': ['next-try', 'try-again', 'sign-out']
}

const notUnderstood = 'The server answered with something this page does not understand.'

const texts = {
  403: 'The server refuses to answer this page. Open it at its own address, in a tab of its own.',
  502: 'You are still signed in, but the sign-in service gave no usable answer.',
  503: 'You are still signed in, but the sign-in service is not available just now.',
  504: 'You are still signed in, but the sign-in service is taking too long.'
}

let name
let token
let timer
let failures = 0
let asking = false

part('try-again').addEventListener('click', askAll)
part('copy').addEventListener('click', copyToken)
addEventListener('online', askAll)
// A page that the back button brings out of the browser's memory, or that was in the background, may show a session that has
// ended in the meantime.
addEventListener('pageshow', event => event.persisted && askAll())
document.addEventListener('visibilitychange', () => document.visibilityState === 'visible' && askAll())

show('asking', 'Looking up whether you are signed in …')
askAll()

function askAll() {
  return ask(async () => {
    name = await getName()
    showSignedIn(await getToken())
  })
}

/** The server renews a token that has run out; asking for it is all a page has to do. */
function askToken() {
  return ask(async () => showSignedIn(await getToken()))
}

async function ask(work) {
  if (asking) return
  asking = true
  try {
    await work()
    failures = 0
  } catch (error) {
    showFailure(error)
  } finally {
    asking = false
  }
}

async function getName() {
  const answer = await get('api/auth/profile')
  if (typeof answer.name === 'string') return answer.name
  throw new Failure({ text: notUnderstood })
}

/** In single mode there is no public token and no route for one: 404. */
async function getToken() {
  const answer = await get('api/auth/token').catch(failure => {
    if (failure.status === 404) return undefined
    throw failure
  })
  if (answer === undefined || (typeof answer.access_token === 'string' && Number.isFinite(answer.expires_in)))
    return answer
  throw new Failure({ text: notUnderstood })
}

async function get(path) {
  const answer = await fetch(path, { cache: 'no-store', signal: AbortSignal.timeout(30_000) }).catch(() => {
    throw new Failure({ text: 'The server cannot be reached. Is the network there?' })
  })
  if (!answer.ok) throw new Failure({ status: answer.status, retryAfter: answer.headers.get('retry-after') })
  return answer.json().catch(() => {
    throw new Failure({ text: notUnderstood })
  })
}

class Failure extends Error {
  constructor({ status, text = texts[status] ?? `The server answered with error ${status}.`, retryAfter }) {
    super(text)
    this.status = status
    this.retryAfter = secondsUntil(retryAfter)
  }
}

/** Retry-After holds seconds or a date. */
function secondsUntil(retryAfter) {
  const seconds = /^\d+$/.test(retryAfter) ? Number(retryAfter) : (Date.parse(retryAfter) - Date.now()) / 1000
  return Number.isFinite(seconds) ? Math.min(Math.max(seconds, 1), 300) : undefined
}

function showSignedIn(answer) {
  show(answer ? 'signed-in-with-token' : 'signed-in', `You are signed in as ${name}.`)
  if (answer === undefined) return
  if (token !== undefined && token !== answer.access_token) {
    part('by-hand').hidden = true
    say(part('token-note'), `Renewed at ${new Date().toLocaleTimeString()}.`)
  }
  token = answer.access_token
  // At least a second: by rounding, a token is 0 for its last half second.
  countDown(part('token-life'), Math.max(answer.expires_in, 1), askToken)
}

function showFailure(failure) {
  token = undefined
  if (failure.status === 401) {
    show('signed-out', name === undefined ? 'You are not signed in.' : 'You are no longer signed in.')
    name = undefined
    failures = 0
    return
  }
  // A server that misses its provider has opened a session first: only those who are signed in ever see these.
  show([502, 503, 504].includes(failure.status) ? 'failure-signed-in' : 'failure', failure.message)
  countDown(part('next-try').querySelector('span'), failure.retryAfter ?? Math.min(60, 5 * 2 ** failures), askAll)
  failures += 1
}

function show(state, text) {
  clearTimeout(timer)
  main.dataset.state = state
  const focused = document.activeElement
  for (const id of new Set(Object.values(shown).flat())) part(id).hidden = !shown[state].includes(id)
  if (focused?.closest('[hidden]')) document.querySelector('h1').focus()
  say(part('message'), text)
}

/** What has not changed is not written again, or a screen reader would read it out again. */
function say(element, text) {
  if (element.textContent !== text) element.textContent = text
}

function countDown(element, seconds, then) {
  clearTimeout(timer)
  const end = Date.now() + seconds * 1000
  tick()

  function tick() {
    const left = end - Date.now()
    element.textContent = inWords(Math.max(0, Math.ceil(left / 1000)))
    if (left > 0) timer = setTimeout(tick, left % 1000 || 1000)
    else then()
  }
}

function inWords(seconds) {
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`
}

async function copyToken() {
  const note = part('token-note')
  say(note, '')
  if ((await copyByClipboard(token)) || copyBySelection(token)) say(note, 'Copied.')
  // Tells at once when the session has been ended in another tab.
  askToken()
}

async function copyByClipboard(text) {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    // Not allowed, or plain http on another host than localhost, where there is no clipboard at all.
    return false
  }
}

function copyBySelection(text) {
  const field = part('token-text')
  field.value = text
  part('by-hand').hidden = false
  field.select()
  if (!document.execCommand('copy')) return false
  part('by-hand').hidden = true
  part('copy').focus()
  return true
}
