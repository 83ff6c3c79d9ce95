// A site behind a gateway: the server, a back end in Python, and a browser that is signed in.
import { createBrowser } from '../../helpers/browser.js'
import { publicOrigin } from '../../helpers/config.js'
import { sendRaw } from '../../helpers/raw.js'
import type { Teardown } from '../../helpers/scope.js'
import { signIn, startTestServer } from '../../helpers/server.js'
import { openedFields, sessionHeader } from '../../web/support.js'
import { pathsAsked, startBackEnd } from './back-end.js'
import type { Gateway } from './gateways.js'

export type Site = Awaited<ReturnType<typeof startSite>>

export interface RawRequest {
  /** The default is `/app`. */
  readonly target?: string
  readonly method?: string
  /** The header lines besides `Host` and `Cookie`. */
  readonly headers?: readonly string[]
  readonly body?: string
  /** Replaces the browser's cookies. */
  readonly cookie?: string
  readonly host?: string
}

export interface SiteOptions {
  readonly mode?: 'single' | 'dual'
  readonly accessTokenLength?: number
}

export async function startSite(
  t: Teardown,
  gateway: Pick<Gateway, 'start'>,
  { mode = 'single', accessTokenLength = 300 }: SiteOptions = {}
) {
  const started = await startTestServer(t, { mode, settings: { forwardAuth: { address: '127.0.0.1:0' } } })
  const { server, idp, clock, logs } = started
  idp.settings.accessTokenLength = accessTokenLength
  const backEnd = await startBackEnd(t)
  const port = await gateway.start(t, {
    'server-1:8080': server.port,
    'server-1:4181': server.forwardAuthPort as number,
    'back-end:8000': backEnd
  })
  const connectTo = { [publicOrigin]: `http://127.0.0.1:${port}` }
  const signedOut = () => createBrowser(t, { origin: publicOrigin, connectTo, now: clock.now })
  const browser = signedOut()
  await signIn(browser)
  return {
    server,
    idp,
    clock,
    logs,
    browser,
    /** The internal token (the token with the wide scope that browsers never see) in the browser's session. */
    token(): string {
      const { token, internal_token } = openedFields(browser, started)
      return (internal_token ?? token) as string
    },
    /** Sends a raw request with the browser's cookies. */
    async send({ target = '/app', method = 'GET', headers = [], body = '', cookie, host }: RawRequest) {
      const lines = [
        `${method} ${target} HTTP/1.1`,
        `Host: ${host ?? new URL(publicOrigin).host}`,
        `Cookie: ${cookie ?? sessionHeader(browser)}`,
        ...headers
      ]
      const { answers } = await sendRaw(port, `${lines.join('\r\n')}\r\n\r\n${body}`, { answers: 1 })
      const [answer] = answers
      if (!answer) throw new Error(`no response to ${method} ${target} ${headers.join(' ')}`)
      return answer
    },
    /** Returns a new browser without a session. */
    signedOut,
    /** The paths of the requests that have reached the back end. */
    asked: () => pathsAsked(backEnd),
    /** The number of requests that have reached the back end. */
    reached: async () => (await pathsAsked(backEnd)).length
  }
}
