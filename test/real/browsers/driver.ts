// Firefox and WebKitGTK under remote control, with the commands that WebDriver (W3C) and Firefox's own protocol, Marionette, share.
// Debian has no geckodriver, so Firefox gets the commands without it.
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { eventually } from '../../helpers/eventually.js'
import { freePort } from '../../helpers/ports.js'
import type { Teardown } from '../../helpers/scope.js'
import { tempFolder } from '../../helpers/temp-folder.js'
import { hasStatus, startService } from '../programs.js'

type Reply = readonly [error: { message: string } | null, result: unknown]
type Parameters = Readonly<Record<string, unknown>>
interface NewSession {
  readonly sessionId: string
  readonly capabilities: { readonly browserVersion: string }
}
type Send = (command: keyof typeof COMMANDS, parameters?: Parameters) => Promise<unknown>

// The name in Marionette, and the method and path in WebDriver. `:id` is a parameter.
const COMMANDS = {
  open: ['Navigate', 'POST', 'url'],
  url: ['GetCurrentURL', 'GET', 'url'],
  back: ['Back', 'POST', 'back'],
  run: ['ExecuteScript', 'POST', 'execute/sync'],
  find: ['FindElement', 'POST', 'element'],
  click: ['ElementClick', 'POST', 'element/:id/click'],
  type: ['ElementSendKeys', 'POST', 'element/:id/value'],
  newTab: ['NewWindow', 'POST', 'window/new'],
  tabs: ['GetWindowHandles', 'GET', 'window/handles'],
  show: ['SwitchToWindow', 'POST', 'window'],
  closeTab: ['CloseWindow', 'DELETE', 'window'],
  showFrame: ['SwitchToFrame', 'POST', 'frame'],
  clearCookies: ['DeleteAllCookies', 'DELETE', 'cookie']
} as const

// No command waits until a page is loaded, because several tabs load theirs at the same time.
const CAPABILITIES = { pageLoadStrategy: 'none', unhandledPromptBehavior: 'accept' }
const COMMAND_MS = 60_000
// WebKitWebDriver never responds to a script that it gets while the tab changes its process, at a redirect to another site. The page
// is complete all the same, and the next script has a result.
const SCRIPT_MS = 10_000
const MINI_BROWSER = '/usr/lib/x86_64-linux-gnu/webkit2gtk-4.1/MiniBrowser'

/** By name: the program that must be installed, and how to start it. */
export const BROWSERS = {
  firefox: ['firefox-esr', startFirefox],
  webkit: ['WebKitWebDriver', startWebKit]
} as const

export type Browser = Awaited<ReturnType<typeof startBrowser>>

export async function startBrowser(t: Teardown, name: keyof typeof BROWSERS) {
  const [, start] = BROWSERS[name]
  const { send, version } = await start(t)
  const run = (script: string) => send('run', { script: `return ${script}`, args: [] })
  /** Waits until an expression is true on the page. */
  const until = (expression: string) =>
    eventually(() =>
      run(expression).then(
        result => result === true,
        () => false
      )
    )
  const element = async (value: string) => {
    await until(`document.querySelector(${JSON.stringify(value)}) !== null`)
    const found = (await send('find', { using: 'css selector', value })) as Record<string, string>
    return Object.values(found)[0]
  }
  return {
    version,
    send,
    run,
    open: (url: string) => send('open', { url }),
    /** Opens a URL from the page, without waiting for a response. The script ends before, because the page's unload would lose its result. */
    leaveFor: (url: string) => run(`void setTimeout(() => location.assign(${JSON.stringify(url)}))`),
    back: () => send('back'),
    url: () => send('url') as Promise<string>,
    click: async (selector: string) => send('click', { id: await element(selector) }),
    type: async (selector: string, text: string) => send('type', { id: await element(selector), text }),
    show: (handle: string | undefined) => send('show', { handle }),
    tabs: () => send('tabs') as Promise<readonly string[]>,
    newTab: () => send('newTab', { type: 'tab' }),
    until,
    sees: (text: string) => until(`document.body.innerText.includes(${JSON.stringify(text)})`)
  }
}

async function startWebKit(t: Teardown) {
  const port = await freePort()
  const base = `http://127.0.0.1:${port}`
  const args = ['-a', 'WebKitWebDriver', `--port=${port}`]
  await startService(t, { command: 'xvfb-run', args }, () => hasStatus(`${base}/status`, 200))
  const call = async (method: string, path: string, body?: unknown) => {
    const signal = AbortSignal.timeout(path.endsWith('execute/sync') ? SCRIPT_MS : COMMAND_MS)
    const sent = body === undefined ? { method, signal } : { method, signal, body: JSON.stringify(body) }
    const response = await fetch(base + path, sent)
    const { value } = (await response.json()) as { value: { error?: string; message?: string } | null }
    if (!response.ok) throw new Error(`${path}: ${value?.error} ${value?.message}`)
    return value as unknown
  }
  const options = { binary: MINI_BROWSER, args: ['--automation'] }
  const alwaysMatch = { ...CAPABILITIES, 'webkitgtk:browserOptions': options }
  const { sessionId, capabilities } = (await call('POST', '/session', { capabilities: { alwaysMatch } })) as NewSession
  t.teardown(() => call('DELETE', `/session/${sessionId}`).catch(() => {}))
  const send: Send = (command, parameters = {}) => {
    const [, method, path] = COMMANDS[command]
    const ofSession = `/session/${sessionId}/${path.replace(':id', String(parameters.id))}`
    return call(method, ofSession, method === 'POST' ? parameters : undefined)
  }
  return { send, version: `WebKitGTK ${capabilities.browserVersion}` }
}

async function startFirefox(t: Teardown) {
  const profile = await tempFolder(t, { 'user.js': 'user_pref("marionette.port", 0);' })
  const port = () => readFile(join(profile, 'MarionetteActivePort'), 'utf8').then(Number)
  const args = ['--headless', '--marionette', '--profile', profile]
  await startService(t, { command: 'firefox-esr', args }, async () => (await port()) > 0)
  const socket = connect(await port(), '127.0.0.1')
  t.teardown(() => socket.destroy())
  const waiting = new Map<number, (reply: Reply) => void>()
  let received = Buffer.alloc(0)
  // Each message is its length in bytes, a colon and JSON. The first one is a greeting.
  socket.on('data', chunk => {
    received = Buffer.concat([received, chunk])
    for (;;) {
      const colon = received.indexOf(':')
      const end = colon + 1 + Number(received.subarray(0, colon).toString())
      if (colon === -1 || received.length < end) return
      const message = JSON.parse(received.subarray(colon + 1, end).toString())
      received = received.subarray(end)
      if (Array.isArray(message)) waiting.get(message[1])?.([message[2], message[3]])
    }
  })
  await once(socket, 'data')
  let last = 0
  const call = async (name: string, parameters: Parameters) => {
    const id = ++last
    const replied = new Promise<Reply>(resolve => waiting.set(id, resolve))
    const text = JSON.stringify([0, id, `WebDriver:${name}`, parameters])
    socket.write(`${Buffer.byteLength(text)}:${text}`)
    const [error, result] = await replied
    if (error) throw new Error(`${name}: ${error.message}`)
    return result
  }
  const { capabilities } = (await call('NewSession', { capabilities: { alwaysMatch: CAPABILITIES } })) as NewSession
  const send: Send = async (command, parameters = {}) => {
    const result = await call(COMMANDS[command][0], parameters)
    return result !== null && typeof result === 'object' && 'value' in result ? result.value : result
  }
  return { send, version: `Firefox ${capabilities.browserVersion}` }
}
