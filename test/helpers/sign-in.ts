// Drives the pages of the demo identity provider as a person without JavaScript would: links, redirects and forms.

/** What is needed of a browser; `createBrowser` makes one that fits. */
export interface FormBrowser {
  navigate(url: string): Promise<FormPage>
  request(method: string, url: string, options: { form: Record<string, string> }): Promise<FormPage>
}

export interface FormPage {
  readonly url: URL
  readonly statusCode: number
  readonly headers: { readonly location?: string | undefined }
  text(): string
}

/**
 * From where a login starts (`/api/auth/login`, or an authorization URL) to the callback URL that the provider sends the
 * browser to. That last address is returned, not opened. Nobody types anything if the provider still knows the browser.
 */
export function signInAtDemo(browser: FormBrowser, startUrl: string, userName: string): Promise<string> {
  return walk(browser, startUrl, { user: userName })
}

/** The same way, but the person denies the application what it asks for. */
export function denyAtDemo(browser: FormBrowser, startUrl: string): Promise<string> {
  return walk(browser, startUrl, { deny: 'yes' })
}

/** From the end-session endpoint, or an address that leads there, to the `post_logout_redirect_uri`, which is not opened. */
export function signOutAtDemo(browser: FormBrowser, startUrl: string): Promise<string> {
  return walk(browser, startUrl, { logout: 'yes' })
}

async function walk(browser: FormBrowser, startUrl: string, answer: Record<string, string>): Promise<string> {
  let page = await browser.navigate(startUrl)
  let destination = destinationIn(page.url)
  let isAnswered = false
  for (let steps = 0; steps < 10; steps++) {
    const { location } = page.headers
    if (location === undefined) {
      if (isAnswered || page.statusCode !== 200)
        throw new Error(`The way ended with ${page.statusCode}: ${page.text()}`)
      page = await browser.request('POST', ...filledForm(page, answer))
      isAnswered = true
      continue
    }
    const next = new URL(location, page.url)
    destination ??= destinationIn(next)
    if (destination !== undefined && withoutQuery(next) === withoutQuery(new URL(destination))) return next.href
    page = await browser.navigate(next.href)
  }
  throw new Error(`Too many redirects from ${startUrl}`)
}

function destinationIn({ searchParams }: URL): string | undefined {
  return searchParams.get('redirect_uri') ?? searchParams.get('post_logout_redirect_uri') ?? undefined
}

function withoutQuery({ origin, pathname }: URL): string {
  return origin + pathname
}

// Every form of a sign-in page leads to one address, so the first one tells it; hidden fields go along.
function filledForm(
  page: FormPage,
  answer: Record<string, string>
): [url: string, options: { form: Record<string, string> }] {
  const [, action] = /<form[^>]* action="([^"]*)"/.exec(page.text()) ?? []
  if (action === undefined) throw new Error(`No form on this page: ${page.text()}`)
  const hidden = page.text().matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)"/g)
  const fields = Object.fromEntries([...hidden].map(([, name, value]) => [name, value]))
  return [new URL(action, page.url).href, { form: { ...fields, ...answer } }]
}
