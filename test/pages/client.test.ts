// The module for pages, in a page without a browser. test/browser/client.test.ts uses it in a real one.
import { statSync } from 'node:fs'
import { setImmediate as later } from 'node:timers/promises'
import test from 'ava'

type Client = typeof import('../../src/pages/client/client.js')
type Headers = Readonly<Record<string, string>>
type Answer = (url: string, init?: RequestInit) => Response | Promise<Response>

const origin = 'https://app.example'
const signedOut = { 'Session-Status': 'signed-out' }
const retry = { 'Session-Status': 'retry' }
const user = (hash: string) => ({ 'Session-User': hash })

function response(url: string, status: number, headers: Headers = {}, body: string | null = null): Response {
  return Object.defineProperty(new Response(body, { status, headers }), 'url', { value: new URL(url, origin).href })
}

/** The storage of a tab, which stays when the tab opens another page. */
function createStorage() {
  const values = new Map<string, string>()
  return {
    getItem: (key: string) => values.get(key) ?? null,
    setItem: (key: string, value: string) => void values.set(key, value)
  }
}

let pages = 0
const originals = new Map<string, PropertyDescriptor | undefined>()

test.afterEach.always(() => {
  for (const [name, descriptor] of originals) {
    if (descriptor) Object.defineProperty(globalThis, name, descriptor)
    else Reflect.deleteProperty(globalThis, name)
  }
  originals.clear()
})

/**
 * Loads the module into a new page. The functions of `globals` replace those of the page. A page that `staysOpen` prevents every
 * event that can be prevented.
 */
async function openPage(
  answer: Answer,
  { staysOpen = false, ...globals }: Readonly<Record<string, unknown>> & { readonly staysOpen?: boolean } = {}
) {
  const events: string[] = []
  const listeners = new Map<string, (event: object) => void>()
  const opened: string[] = []
  const waits: number[] = []
  const requests: string[] = []
  const location = new URL('/models/7?view=2d#part-3', origin)
  const open = (how: string) => (url: string) => void opened.push(how + url.replace(origin, ''))
  Object.assign(location, { replace: open(''), assign: open('keeps history: ') })
  const page = {
    document: {},
    location,
    event: undefined,
    BroadcastChannel: undefined,
    sessionStorage: createStorage(),
    addEventListener: (type: string, listener: (event: object) => void) => void listeners.set(type, listener),
    dispatchEvent: ({ type, cancelable, detail }: CustomEvent<{ readonly seconds: number } | null>) => {
      events.push(detail ? `${type} ${detail.seconds}` : type)
      return !(staysOpen && cancelable)
    },
    fetch: async (input: string | Request, init?: RequestInit) => {
      const url = input instanceof Request ? input.url : String(input)
      requests.push(url)
      return answer(url, init)
    },
    setTimeout: (callback: () => void, delay: number) => {
      waits.push(delay / 1000)
      return setImmediate(callback)
    },
    ...globals
  }
  for (const [name, value] of Object.entries(page)) {
    if (!originals.has(name)) originals.set(name, Object.getOwnPropertyDescriptor(globalThis, name))
    Object.defineProperty(globalThis, name, { value, configurable: true, writable: true })
  }
  pages += 1
  const client: Client = await import(`../../src/pages/client/client.js?page=${pages}`)
  const comeBack = async () => {
    listeners.get('pageshow')?.({ persisted: true })
    await later()
  }
  return { client, events, opened, waits, requests, page, comeBack }
}

test.serial('the module stays small', t => {
  const size = statSync(new URL('../../src/pages/client/client.js', import.meta.url)).size
  t.true(size < 9000, `${size} bytes`)
})

test.serial('only this origin and only the header lead to a sign-in, and everything else reaches the page', async t => {
  const rows: readonly (readonly [url: string, status: number, headers: Headers])[] = [
    ['https://other.example/x', 401, signedOut],
    ['https://app.example.evil.example/x', 401, signedOut],
    ['/api/x', 401, {}],
    ['/api/x', 503, { 'Retry-After': '1' }],
    ['https://other.example/x', 503, retry],
    ['/api/x', 503, { 'Session-Status': 'unknown' }]
  ]
  for (const [url, status, headers] of rows) {
    const { client, opened, requests, events } = await openPage(() =>
      response(url, status, headers, '{"error":"temporarily_unavailable"}')
    )
    t.is((await client.apiFetch(url, { method: 'POST' })).status, status)
    t.deepEqual([opened, requests.length, events], [[], 1, []], `${url} ${status}`)
  }
})

test.serial(
  'a temporary failure is waited for from 0.5 to 60 seconds, longer each time, whatever Retry-After says',
  async t => {
    for (const [retryAfter, least] of [
      [undefined, 0.5],
      ['-1', 0.5],
      ['0', 0.5],
      ['0.0001', 0.5],
      ['7', 7],
      ['1e9', 60],
      ['Infinity', 60],
      ['soon', 0.5],
      [new Date(Date.now() + 30_000).toUTCString(), 28]
    ] as const) {
      let left = 12
      const { client, waits } = await openPage(url => {
        left -= 1
        return response(url, left > 0 ? 503 : 200, { ...retry, ...(retryAfter && { 'Retry-After': retryAfter }) })
      })
      for (const init of [{}, { method: 'HEAD' }, { headers: { Accept: 'text/html' } }]) {
        left = 12
        t.is((await client.apiFetch('/api/x', init)).status, 200)
      }
      t.is(waits.length, 33)
      t.true((waits[0] as number) >= least && (waits[0] as number) <= Math.min(60, least * 1.3 + 2), `${retryAfter}`)
      t.true(waits.every(wait => wait >= 0.5 && wait <= 60))
      t.is(waits[10], 60)
      t.true(least === 60 || new Set(waits).size > 20, 'with jitter')
    }
  }
)

test.serial('a stream is not sent again, and an aborted call stops waiting', async t => {
  const { client, requests } = await openPage(url => response(url, 503, retry), { setTimeout: () => {} })
  const init = { method: 'POST', body: new ReadableStream(), duplex: 'half' } as RequestInit
  t.is((await client.apiFetch('/api/x', init)).status, 503)
  t.is(requests.length, 1)
  const stop = new AbortController()
  const call = client.apiFetch('/api/x', { signal: stop.signal })
  await later()
  stop.abort(new Error('the page stopped the call'))
  await t.throwsAsync(call, { message: 'the page stopped the call' })
  // Safari before 15.4 has neither `throwIfAborted` nor reasons.
  const old = Object.assign(new EventTarget(), { aborted: true }) as unknown as AbortSignal
  await t.throwsAsync(client.apiFetch('/api/x', { signal: old }), { any: true, name: 'AbortError' })
})

test.serial('a Request with a body is sent again, as a whole', async t => {
  const bodies: string[] = []
  let status = 503
  const { client } = await openPage(() => response('/api/x', 200), {
    fetch: async (input: Request) => {
      bodies.push(await input.text())
      const sent = response('/api/x', status, retry)
      status = 200
      return sent
    }
  })
  await client.apiFetch(new Request(`${origin}/api/x`, { method: 'POST', body: 'an order' }))
  t.deepEqual(bodies, ['an order', 'an order'])
})

const login = (path: string) => `/api/auth/login?${new URLSearchParams({ return_to: path })}`
const here = '/models/7?view=2d#part-3'

test.serial('signIn and signOut accept strings, URLs and events', async t => {
  const { client, opened } = await openPage(() => response('/', 200))
  const event = new Event('click')
  const values = [undefined, null, event, { nativeEvent: event }, '/x', 'a b/ü?x=%2F', new URL('/y?q=1#z', origin)]
  for (const value of [...values, `${origin}/x`, 'https://other.example/x', '?view=3d', '#part-4'] as string[]) {
    void client.signOut(value)
  }
  await later()
  const paths = opened.map(url => new URL(url, origin).searchParams.get('return_to'))
  const expected = ['/', '/', '/', '/', '/x', '/models/a%20b/%C3%BC?x=%2F', '/y?q=1#z', '/x', '/']
  t.deepEqual(paths, [...expected, '/models/7?view=3d', '/models/7?view=2d#part-4'])
  void client.signIn(event as unknown as string)
  await later()
  t.is(opened.at(-1), login(here))
})

const none: Answer = url => response(url, 401, signedOut)
const call = (client: Client) => client.apiFetch('/api/x')

test.serial('before a call leaves the page, also one that never had a session, the page can stay', async t => {
  const { client, opened, events } = await openPage(none, { staysOpen: true })
  for (const visit of [call, call, (client: Client) => client.getAccessToken()]) {
    const error = await t.throwsAsync(visit(client), { instanceOf: client.SignInPreventedError })
    t.regex(
      error.message,
      /^\/api\/(x|auth\/token) needs a sign-in, which this page has prevented\. Nothing was saved\.$/
    )
  }
  t.is(await client.getProfile(), undefined)
  t.deepEqual([opened, events], [[], ['beforesignin', 'beforesignin', 'beforesignin']])
})

test.serial('a page learns for how long a call has waited', async t => {
  let left = 3
  const { client, events } = await openPage(url => response(url, left-- > 0 ? 503 : 200, retry), {
    Date: class extends Date {
      static override now = () => 30_000 * (3 - left)
    }
  })
  await call(client)
  t.deepEqual(events, ['sessionwaiting 30', 'sessionwaiting 60', 'sessionwaiting 90'])
})

test.serial('a page that comes from the back/forward cache learns who is signed in', async t => {
  for (const [before, after, told] of [
    [user('a'), undefined, ['sessionended']],
    [user('a'), user('a'), []],
    [user('a'), user('b'), ['sessionchanged']],
    [undefined, user('a'), ['sessionchanged']],
    [undefined, undefined, []]
  ] as const) {
    let now: Headers | undefined = before
    const { client, events, opened, requests, comeBack } = await openPage(url =>
      now ? response(url, 200, now, '{"name":"Ada"}') : none(url)
    )
    await client.getProfile()
    now = after
    await comeBack()
    t.deepEqual([events, requests.length], [told, 2], JSON.stringify([before, after]))
    // The page has left for the sign-in, and the user has come back.
    void client.signIn()
    await later()
    await comeBack()
    void call(client)
    await later()
    t.is(opened.length, after ? 1 : 2)
  }
  const { requests, comeBack } = await openPage(none)
  await comeBack()
  t.deepEqual(requests, [], 'a page that has never asked does not ask')
})

test.serial(
  'a third sign-in within five minutes, or a sixth within one, ends with SignInLoopError, unless one has helped or the user asks',
  async t => {
    const sessionStorage = createStorage()
    const outcomes: string[] = []
    async function load(visit: (client: Client) => Promise<unknown>, answer: Answer, globals = {}) {
      const { client, opened, events } = await openPage(answer, { sessionStorage, ...globals })
      const result = await Promise.race([visit(client).catch((error: Error) => error.name), later('pending')])
      await later()
      outcomes.push([result instanceof Response ? result.status : result, ...opened, ...events].join(' '))
    }
    const signIn = (client: Client) => client.signIn()
    const asks = { event: { isTrusted: true, type: 'click' } }
    const opens = `pending ${login(here)} beforesignin`

    for (const visit of [call, call, call, signIn]) await load(visit, none)
    t.deepEqual(outcomes.splice(0), [opens, opens, 'SignInLoopError signinloop', 'SignInLoopError signinloop'])
    await load(signIn, none, asks)
    await load(call, none)
    t.deepEqual(outcomes.splice(0), [`pending keeps history: ${login(here)}`, 'SignInLoopError signinloop'])
    await load(call, url => response(url, 200))
    for (let time = 0; time < 3; time += 1) await load(call, none)
    t.deepEqual(outcomes.splice(0), ['200', opens, opens, 'SignInLoopError signinloop'])

    // Two servers on one host take the cookie of each other, so each sign-in helps for a moment.
    sessionStorage.setItem('platform-auth-server sign-ins', '[]')
    let isTaken = false
    const mixed: Answer = url => (isTaken ? none(url) : response(url, 200, user('a'), '{"name":"Ada"}'))
    const both = async (client: Client) => {
      isTaken = false
      await client.getProfile()
      isTaken = true
      return call(client)
    }
    for (let time = 0; time < 6; time += 1) await load(both, mixed)
    const helped = `pending ${login(here)} sessionended beforesignin`
    t.deepEqual(outcomes.splice(0), [...new Array(5).fill(helped), 'SignInLoopError sessionended signinloop'])
    isTaken = true
    const { client } = await openPage(mixed, { sessionStorage })
    await t.throwsAsync(call(client), {
      message: /^\/api\/.* did not last\. Another server on this host may use the same/
    })
  }
)

test.serial('parallel calls that end a loop all fail', async t => {
  const answer: Answer = url => response(url, 401, signedOut)
  const sessionStorage = createStorage()
  for (let time = 0; time < 2; time += 1) {
    const { client } = await openPage(answer, { sessionStorage })
    void client.apiFetch('/api/x')
    await later()
  }
  const { client, events } = await openPage(answer, { sessionStorage })
  const calls = await Promise.allSettled([...'abc'].map(name => client.apiFetch(`/api/x?${name}`)))
  for (const call of calls) {
    const { reason } = call as PromiseRejectedResult
    t.true(reason instanceof client.SignInLoopError)
    t.regex(reason.message, /^\/api\/x needs a sign-in again, .*cookies.*service worker.*\/api\/auth\/login/)
  }
  t.deepEqual(events, ['signinloop', 'signinloop', 'signinloop'])
})

test.serial('if the browser stores nothing, sign-in still works', async t => {
  const denied = () => {
    throw new Error('denied')
  }
  const sessionStorage = { getItem: denied, setItem: denied }
  const { client, opened } = await openPage(url => response(url, 401, signedOut), { sessionStorage })
  void client.apiFetch('/api/x')
  await later()
  t.deepEqual(opened, [login(here)])
})

test.serial('a page learns that another user has signed in, before it gets the response', async t => {
  let hashes = 'a'
  const { client, events } = await openPage(url => response(url, 200, user(hashes)))
  const at = async (next: string) => {
    hashes = next
    await client.apiFetch('/api/x').then(() => events.push(next))
  }
  // The secret is replaced from the third response on. Then another user signs in.
  for (const next of ['a', 'a', 'a2 a', 'a2', 'b']) await at(next)
  t.deepEqual(events, ['a', 'a', 'a2 a', 'a2', 'sessionchanged', 'b'])
})

test.serial('a 200 that is not the expected JSON is an error that names the URL and the likely cause', async t => {
  for (const [status, body, message] of [
    [200, '<!doctype html>', /\/token did not return JSON; is it forwarded to the login server\?$/],
    [200, '{}', /\/token did not return JSON with access_token; is it forwarded/],
    [200, 'null', /\/token did not return JSON; is it forwarded/],
    [404, 'Not Found', /\/token responded with status 404; is it forwarded/],
    [404, '{"error_description":"This route exists in dual mode only (mode: dual)."}', /dual mode only/],
    [502, '', /^https:\/\/app\.example\/api\/auth\/token responded with status 502$/]
  ] as const) {
    const { client } = await openPage(url => response(url, status, {}, body))
    await t.throwsAsync(
      client.getAccessToken(() => t.fail()),
      { message }
    )
  }
  const { client } = await openPage(url => response(url, 200, {}, '<!doctype html>'))
  await t.throwsAsync(client.getProfile(), { message: /\/api\/auth\/profile did not return JSON; is it forwarded/ })
})
