import type { Middleware } from 'koa'

/**
 * Creates a middleware whose modules are loaded in the background, after the server has begun to listen. Loading them
 * first would delay every start, undici by 40 to 110 ms. Requests wait until the modules are loaded. If loading fails, every
 * request is rejected with that error.
 * @example app.use(loadedInBackground(async () => (await import('./proxy/middleware.js')).proxy(services)))
 */
export function loadedInBackground(load: () => Promise<Middleware>): Middleware {
  let middleware: Middleware | undefined
  // The server begins to listen in this turn of the event loop. Node 24 reads all modules of an import without waiting.
  const loading = new Promise(resolve => setImmediate(resolve)).then(load).then(loaded => {
    middleware = loaded
    return loaded
  })
  // Without this handler, a failure before the first request would end the process.
  loading.catch(() => {})

  return function loadedInBackground(ctx, next) {
    return middleware ? middleware(ctx, next) : loading.then(loaded => loaded(ctx, next))
  }
}
