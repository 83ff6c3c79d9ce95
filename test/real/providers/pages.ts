// Uses the pages of a provider as a person without JavaScript would: follows redirects and fills in forms.
import type { Browser } from '../../helpers/browser.js'
import { client, person } from './provider.js'

const MAX_STEPS = 20

/** Signs in, from an authorization URL to the callback URL, which is returned and not opened. */
export async function signInOnPages(browser: Browser, authorizationUrl: string): Promise<string> {
  const end = await walk(browser, authorizationUrl, url => withoutQuery(url) === client.callbackUrl)
  if (end.back === undefined) throw new Error(`The login ended at a page of the provider: ${textOf(end.page)}`)
  return end.back
}

/**
 * Signs out, starting at the end-session endpoint. Returns the address of our start page, or the text of the page at
 * which the provider stops.
 */
export async function signOutOnPages(browser: Browser, endSessionUrl: string): Promise<string> {
  const { back, page } = await walk(browser, endSessionUrl, url => withoutQuery(url) === client.homeUrl)
  return back ?? textOf(page)
}

interface Page {
  readonly url: URL
  readonly status: number
  readonly location: string | null
  readonly html: string
}

interface End {
  readonly back: string | undefined
  readonly page: Page
}

// Keycloak sets Secure cookies over plain http on this machine. Browsers accept them there but the test browser does
// not, so the cookies of each user are kept here.
const cookiesOf = new WeakMap<Browser, Map<string, string>>()

async function open(browser: Browser, url: string, form?: Record<string, string>): Promise<Page> {
  const cookies = cookiesOf.get(browser) ?? new Map<string, string>()
  cookiesOf.set(browser, cookies)
  const response = await fetch(url, {
    redirect: 'manual',
    headers: {
      accept: 'text/html',
      cookie: [...cookies].map(pair => pair.join('=')).join('; '),
      origin: new URL(url).origin
    },
    ...(form && { method: 'POST', body: new URLSearchParams(form) })
  })
  for (const line of response.headers.getSetCookie()) {
    const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
    if (value === '' || /;\s*max-age=0/i.test(line)) cookies.delete(name)
    else cookies.set(name, value)
  }
  const { status, headers } = response
  return { url: new URL(url), status, location: headers.get('location'), html: await response.text() }
}

async function walk(browser: Browser, start: string, isBack: (url: URL) => boolean): Promise<End> {
  let page = await open(browser, start)
  for (let step = 0; step < MAX_STEPS; step++) {
    if (page.location !== null) {
      const next = new URL(page.location, page.url)
      if (isBack(next)) return { back: next.href, page }
      page = await open(browser, next.href)
      continue
    }
    const form = page.status === 200 ? filledForm(page) : undefined
    if (!form) return { back: undefined, page }
    page = await open(browser, form.action, form.fields)
  }
  throw new Error(`More than ${MAX_STEPS} pages from ${start}`)
}

/** Returns the first form of the page, filled in with the data of the user. */
function filledForm(page: Page): { action: string; fields: Record<string, string> } | undefined {
  const { html } = page
  const [whole, attributes = ''] = /<form([^>]*)>[\s\S]*?<\/form>/i.exec(html) ?? []
  if (whole === undefined || !/type="?submit|<button/i.test(whole)) return undefined
  const fields: Record<string, string> = {}
  for (const [tag] of whole.matchAll(/<(?:input|button)[^>]*>/gi)) {
    const name = attribute(tag, 'name')
    if (name === undefined) continue
    const isSecond = attribute(tag, 'type') === 'submit' && /cancel|deny/i.test(tag)
    if (!isSecond) fields[name] = answerTo(name, attribute(tag, 'type')) ?? attribute(tag, 'value') ?? ''
  }
  const action = new URL(attribute(attributes, 'action') ?? page.url.href, page.url).href
  return { action, fields }
}

function answerTo(name: string, type: string | undefined): string | undefined {
  if (type === 'password') return person.password
  if (/^(username|login|email)$/.test(name)) return name === 'login' ? person.email : person.userName
  return undefined
}

function attribute(tag: string, name: string): string | undefined {
  const [, quoted, bare] = new RegExp(`\\s${name}=(?:"([^"]*)"|([^\\s>]+))`, 'i').exec(tag) ?? []
  return (quoted ?? bare)?.replaceAll('&amp;', '&').replaceAll('&#x2F;', '/').replaceAll('&#43;', '+')
}

function withoutQuery({ origin, pathname }: URL): string {
  return origin + pathname
}

function textOf(page: Page): string {
  const text = page.html.replace(/<(script|style)[\s\S]*?<\/\1>/gi, ' ').replace(/<[^>]*>/g, ' ')
  return `${page.status} ${page.url.pathname} ${text.replace(/\s+/g, ' ').trim().slice(0, 300)}`
}
