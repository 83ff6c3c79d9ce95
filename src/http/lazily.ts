import type { Middleware } from 'koa'

/** A layer whose modules are loaded only where it is used. The loading begins at once, and early requests wait for it. */
export function lazily(load: () => Promise<Middleware>): Middleware {
  let layer: Middleware | undefined
  const loading = load().then(loaded => {
    layer = loaded
    return loaded
  })
  // A failure is told to the requests that need the layer.
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
