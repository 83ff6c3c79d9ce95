/**
 * Implements the setting `fallback`, which is for single-page applications. Their router runs in the browser, so the
 * server sends the same HTML page for every URL that the router handles.
 */
import type { Context, Middleware } from 'koa'

/**
 * Serves `file` with 200 when a person opens a URL to which no other middleware responds. Requests for scripts and
 * images, and requests by `fetch`, do not ask for HTML in particular, so a missing asset still gets 404.
 * @param files the middleware that serves static files
 * @param file path below wwwroot, for instance `index.html`
 * @example app.use(fallback(files, 'index.html'))
 */
export function fallback(files: Middleware, file: string): Middleware {
  const filePath = `/${file.split('/').map(encodeURIComponent).join('/')}`

  return async function fallback(ctx, next) {
    // Later middleware runs first, because it may contain routes of the operator.
    await next()
    if (!hasNoResponse(ctx) || !isPageRequest(ctx)) return
    const { url } = ctx
    ctx.path = filePath
    try {
      await files(ctx, async () => {})
    } finally {
      ctx.url = url
    }
    if (!hasNoResponse(ctx)) ctx.vary('Accept')
  }
}

/** True if no middleware has responded to the request yet. */
export function hasNoResponse({ status, body, respond }: Context): boolean {
  return status === 404 && body == null && respond !== false
}

function isPageRequest(ctx: Context): boolean {
  if (ctx.method !== 'GET' && ctx.method !== 'HEAD') return false
  // Names that begin with a dot are never served, because attackers look for secrets under such names.
  if (/^\/api(\/|$)|\/(\.|%2e)/i.test(ctx.path)) return false
  return ctx.accepts('json', 'html') === 'html'
}
