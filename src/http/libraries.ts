/**
 * Libraries that listening does not need and whose loading takes as long as all of Koa's: the server loads them once it
 * listens, and a program without a server of ours with its first request.
 */
export async function loadKoaSession() {
  return (await import('koa-session')).default
}

export async function loadKoaStatic() {
  return (await import('koa-static')).default
}

/** A library that cannot be loaded is told to the requests that need it. */
export async function loadLibraries(): Promise<void> {
  await Promise.allSettled([loadKoaSession(), loadKoaStatic()])
}
