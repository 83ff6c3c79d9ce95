import type { Middleware } from 'koa'

/**
 * Creates a layer and loads its modules in the background, so that servers without this layer never load them. Requests
 * wait until the modules are loaded. If loading fails, every request is rejected with that error.
 */
export function loadedInBackground(load: () => Promise<Middleware>): Middleware {
  let layer: Middleware | undefined
  const loading = load().then(loaded => {
    layer = loaded
    return loaded
  })
  // Without this handler, a failure before the first request would end the process.
  loading.catch(() => {})

  return function loadedInBackground(ctx, next) {
    return layer ? layer(ctx, next) : loading.then(loaded => loaded(ctx, next))
  }
}

/**
 * Creates a layer whose modules are loaded by the first request. If loading fails, that request is rejected, and the
 * next request tries again.
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
