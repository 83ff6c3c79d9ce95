import { createHash } from 'node:crypto'
import test from 'ava'
import fc from 'fast-check'
import { dottedText } from '#src/base/text-encoding.js'
import { createKeyring } from '#src/cookie/keyring.js'
import { createLoginTransactions, newBrowserId, s256 } from '#src/login/transaction.js'
import { anyText } from '../helpers/any-text.js'
import { createClock } from '../helpers/clock.js'

const SECRET = 'the secret of these login tests, long'
const TEN_MINUTES_MS = 600_000

function setUp({ secret = SECRET, purpose = 'login state' } = {}) {
  const clock = createClock()
  return { clock, ...createLoginTransactions(createKeyring([secret]).sealer(purpose), clock.now) }
}

function transactionOf(opened: ReturnType<ReturnType<typeof setUp>['open']>) {
  if (opened.kind !== 'valid') throw new Error(`the state is ${opened.kind}`)
  return opened.transaction
}

test('a login that returns to the same browser is valid for ten minutes, has its return path, and is then expired', t => {
  const { begin, open, clock } = setUp()
  const browser = newBrowserId()
  const { state } = begin(browser, '/page?a=b')
  const transaction = transactionOf(open(state, browser))
  t.is(transaction.returnTo, '/page?a=b')
  t.is(transaction.expiresAt, clock.now() + TEN_MINUTES_MS)
  clock.advance(TEN_MINUTES_MS - 1)
  t.is(open(state, browser).kind, 'valid')
  clock.advance(1)
  t.is(open(state, browser).kind, 'expired')
})

test('the code verifier of a transaction matches the code challenge of its login (RFC 7636 section 4), and the nonce is the same', t => {
  const { begin, open } = setUp()
  const browser = newBrowserId()
  const { state, codeChallenge, nonce } = begin(browser, '/')
  const transaction = transactionOf(open(state, browser))
  t.regex(transaction.codeVerifier, /^[A-Za-z0-9._~-]{43,128}$/)
  t.is(createHash('sha256').update(transaction.codeVerifier).digest('base64url'), codeChallenge)
  t.is(transaction.nonce, nonce)
})

test('a state contains only characters that the identity provider accepts', t => {
  const { begin } = setUp()
  fc.assert(fc.property(fc.string(), returnTo => /^[A-Za-z0-9._-]+$/.test(begin(newBrowserId(), returnTo).state)))
  t.pass()
})

test('state, code challenge, nonce and id are different for every login, in the same browser and in different browsers', t => {
  const { begin, open } = setUp()
  const browser = newBrowserId()
  const logins = [browser, browser, browser, newBrowserId()].map(cookie => {
    const started = begin(cookie, '/')
    const { id, codeVerifier } = transactionOf(open(started.state, cookie))
    return [started.state, started.codeChallenge, started.nonce, id, codeVerifier]
  })
  const values = logins.flat()
  t.is(new Set(values).size, values.length)
})

test('the code verifier and nonce cannot be derived from the state without the login cookie', t => {
  const clock = createClock()
  const sealer = createKeyring([SECRET]).sealer('login state')
  const { begin, open } = createLoginTransactions(sealer, clock.now)
  const [own, other] = [newBrowserId(), newBrowserId()]
  const { state } = begin(own, '/')
  const content = JSON.parse(sealer.open(state, 'state')?.toString() ?? '')
  t.false(JSON.stringify(content).includes(own))
  // The same content sealed for another browser, as an attacker could do who knows the secret.
  const browser = createHash('sha256').update(other).digest('base64url')
  const forged = sealer.seal(Buffer.from(JSON.stringify({ ...content, browser })), 'state')
  const [honest, stolen] = [transactionOf(open(state, own)), transactionOf(open(forged, other))]
  for (const member of ['codeVerifier', 'nonce', 'sessionKey'] as const) t.not(stolen[member], honest[member])
})

test('a login cookie has 256 random bits and is different each time', t => {
  const cookies = Array.from({ length: 100 }, newBrowserId)
  for (const cookie of cookies) t.is(dottedText.bytesOf(cookie).length, 32)
  t.is(new Set(cookies).size, 100)
})

test('a state without its login cookie is told apart from one that is not ours, with its id, path and facts, but without its secrets', t => {
  const { begin, open, clock } = setUp()
  const own = newBrowserId()
  const { state } = begin(own, '/a', { prompt: 'login', isRestart: true })
  const { id, expiresAt } = transactionOf(open(state, own))
  const login = { id, returnTo: '/a', prompt: 'login', isRestart: true, expiresAt }
  const others = [newBrowserId(), '', 'x']
  t.deepEqual(open(state, undefined), { kind: 'unbound', ...login } as never)
  for (const other of others) t.deepEqual(open(state, other), { kind: 'otherBrowser', ...login } as never)
  clock.advance(TEN_MINUTES_MS)
  for (const other of [own, undefined, ...others])
    t.deepEqual(open(state, other), { kind: 'expired', ...login } as never)
  fc.assert(fc.property(anyText(), sent => open(sent, own).kind === 'foreign'))
})

test('a state that was sealed with another secret or for another purpose is foreign', t => {
  const browser = newBrowserId()
  const { state } = setUp().begin(browser, '/')
  t.is(setUp().open(state, browser).kind, 'valid')
  t.deepEqual(setUp({ secret: 'another secret of these login tests' }).open(state, browser), { kind: 'foreign' })
  t.deepEqual(setUp({ purpose: 'session cookie' }).open(state, browser), { kind: 'foreign' })
})

test('the code challenge of the verifier in RFC 7636 appendix B is the one given there', t => {
  t.is(s256('dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk'), 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM')
})
