// Uses the pages of the demo identity provider as a person without JavaScript would, through links, redirects and
// forms.

/** The browser functions that are needed here. `createBrowser` returns a browser that has them. */
interface FormBrowser {
  navigate(url: string): Promise<FormPage>
  request(method: string, url: string, options: { form: Record<string, string> }): Promise<FormPage>
}

interface FormPage {
  readonly url: URL
  readonly statusCode: number
  readonly headers: { readonly location?: string | undefined }
  text(): string
}

/**
 * Signs in, from the start of a login (`/api/auth/login` or an authorization URL) to the callback URL, which is
 * returned and not opened. If the provider still knows the browser, no form is filled in.
 */
export function signInAtDemo(browser: FormBrowser, startUrl: string, userName: string): Promise<string> {
  return walk(browser, startUrl, { user: userName })
}

/** Starts a login in which the user denies access. Returns the callback URL. */
export function denyAtDemo(browser: FormBrowser, startUrl: string): Promise<string> {
  return walk(browser, startUrl, { deny: 'yes' })
}

/**
 * Signs out, from the end-session endpoint or an address that redirects to it. Returns the `post_logout_redirect_uri`
 * and does not open it.
 */
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
        throw new Error(`The provider's pages ended with ${page.statusCode}: ${page.text()}`)
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

// Every form of a sign-in page posts to the same address, so the first form is used. Hidden fields are included.
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
