// A deployment for a real browser: a reverse proxy (the front), with a base path if a test wants it, and a server behind it.
// The front has its port before the server starts, so the callback address is one that the browser can open.
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { ExecutionContext } from 'ava'
import type { Config } from '#src/config/settings.js'
import { createSigningKey, startDemo } from '#src/demo/index.js'
import { type ServeOptions, serve } from '#src/server/serve.js'
import { type Clock, createClock } from './clock.js'
import { discovered, type KnownIdp, type TestSettings, testConfig, unreachableIdp } from './config.js'
import { createHostileIdp } from './hostile-idp/index.js'
import { collectLogs } from './logs.js'
import { listen } from './ports.js'

type Test = Pick<ExecutionContext, 'teardown'>

let signingKey: ReturnType<typeof createSigningKey> | undefined

interface DeploymentOptions {
  readonly mode?: Config['mode']
  readonly settings?: TestSettings
  /** A path prefix that the front removes, such as `/tools`. */
  readonly basePath?: string
  /** The name of a cookie that the front removes from every response. */
  readonly loses?: string
  /** The front passes a request for this path on when the promise resolves, and its response when a second one does. */
  readonly mayPass?: (path: string) => Promise<unknown>
}

/**
 * Deploys with the demo identity provider, where a user signs in with a form. The clock of the demo and of the server runs, and a
 * test can move it ahead. The browser keeps the real time, so a test that needs timers of a page to end moves the page's clock, too.
 */
export async function deployWithDemo(t: Test, options: DeploymentOptions = {}) {
  const clock = runningClock()
  const front = await startFront(t, options)
  // It takes a tenth of a second to make a key, so the demos of a test file share one.
  signingKey ??= createSigningKey()
  const demo = await startDemo({
    callbackUrl: front.callbackUrl,
    now: clock.now,
    signingKey: await signingKey
  })
  t.teardown(() => demo.close())
  const { issuer, clientId, clientSecret, proxyRules } = demo
  const idp = { ...unreachableIdp, clientId, clientSecret }
  const withRules = { ...options, settings: { apiProxy: { rules: proxyRules }, ...options.settings } }
  const parts = { demo, now: clock.now }
  return { ...(await startBehind(t, front, idp, withRules, discovered({ issuer }), parts)), demo, clock }
}

/**
 * Deploys with an identity provider that signs in without a form and can be told to fail. The clock runs, and a test
 * can move it ahead.
 */
export async function deployWithHostileIdp(t: Test, options: DeploymentOptions = {}) {
  const clock = runningClock()
  const front = await startFront(t, options)
  const idp = await createHostileIdp(t, { callbackUrl: front.callbackUrl, now: clock.now })
  const deployment = await startBehind(t, front, idp, options, {}, { now: clock.now })
  // A request to which the provider never responds would delay the end of the server.
  t.teardown(() => idp.offline())
  return { ...deployment, idp, clock }
}

// Pages use timers of real time, so the server's clock must run as well.
function runningClock(): Clock {
  const ahead = createClock(0)
  return { ...ahead, now: () => Date.now() + ahead.now() }
}

async function startBehind(
  t: Test,
  front: Awaited<ReturnType<typeof startFront>>,
  idp: KnownIdp,
  { mode = 'single', settings = {} }: DeploymentOptions,
  platform: NonNullable<TestSettings['platform']>,
  parts: ServeOptions = {}
) {
  const config = testConfig(idp, {
    mode,
    ...settings,
    platform: { callbackUrl: front.callbackUrl, ...platform, ...settings.platform }
  })
  const logs = await collectLogs()
  const server = await serve(config, { ...parts, log: logs.log })
  t.teardown(() => server.close())
  front.leadTo(server.port)
  return { url: front.url, logs }
}

async function startFront(t: Test, { basePath = '', loses, mayPass = async () => {} }: DeploymentOptions) {
  let target = 0
  // The limit of the server behind it applies.
  const server = createServer({ maxHeaderSize: 256 * 1024 }, (incoming, answer) => {
    const { url = '/' } = incoming
    if (!url.startsWith(`${basePath}/`)) {
      answer.writeHead(404).end()
      return
    }
    const path = url.slice(basePath.length)
    void mayPass(path).then(() =>
      passOn(incoming, answer, { port: target, path, loses, mayRespond: () => mayPass(path) })
    )
  })
  const port = await listen(t, server)
  const url = `http://localhost:${port}${basePath}/`
  return {
    /** The URL of the start page, as the browser opens it. */
    url,
    callbackUrl: `${url}api/auth/callback`,
    leadTo(to: number) {
      target = to
    }
  }
}

interface Onward {
  readonly port: number
  readonly path: string | undefined
  /** The name of a cookie that is removed from the response. */
  readonly loses?: string | undefined
  readonly mayRespond?: () => Promise<unknown>
  /** Headers that replace those of the request. */
  readonly added?: Readonly<Record<string, string>>
}

/** Sends a request on to a server on this machine, and its response back. */
export function passOn(
  incoming: IncomingMessage,
  answer: ServerResponse,
  { port, path, loses, mayRespond, added }: Onward
): void {
  const { method } = incoming
  const headers = { ...incoming.headers, ...added }
  const onward = request({ port, host: '127.0.0.1', method, headers, path, agent: false }, async response => {
    const cookies = response.headers['set-cookie']?.filter(cookie => !loses || !cookie.startsWith(`${loses}=`))
    await mayRespond?.()
    // The connection of the browser stays open, although the one to the server ends.
    const { connection, ...rest } = response.headers
    answer.writeHead(response.statusCode ?? 502, { ...rest, ...(cookies && { 'set-cookie': cookies }) })
    response.pipe(answer)
  })
  onward.on('error', () => answer.destroy())
  // If the browser closes the connection, the request to the server is cancelled.
  answer.on('close', () => answer.writableFinished || onward.destroy())
  incoming.pipe(onward)
}
