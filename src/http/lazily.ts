import type { Middleware } from 'koa'

/**
 * Creates a layer whose modules are loaded in the background, so that servers without this layer do not load them. Requests
 * that come before the modules are loaded wait for them. If loading fails, these requests are rejected with its error.
 */
export function lazily(load: () => Promise<Middleware>): Middleware {
  let layer: Middleware | undefined
  const loading = load().then(loaded => {
    layer = loaded
    return loaded
  })
  // Without this handler, a failure before the first request would end the process.
  loading.catch(() => {})

  return function lazily(ctx, next) {
    return layer ? layer(ctx, next) : loading.then(loaded => loaded(ctx, next))
  }
}

/**
 * A layer whose modules are loaded by the first request that needs it. If they cannot be loaded, that request fails and
 * the next one tries again.
 */
export function onFirstUse(load: () => Promise<Middleware>): Middleware {
  let loading: Promise<Middleware> | undefined

  return async function onFirstUse(ctx, next) {
    loading ??= load().catch((error: unknown) => {
      loading = undefined
      throw error
    })
    return (await loading)(ctx, next)
  }
}
