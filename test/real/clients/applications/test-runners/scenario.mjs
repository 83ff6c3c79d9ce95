import { startTestServer } from 'platform-auth-server/testing'
import addRoutes from './routes.mjs'

export async function scenario(expect) {
  const settings = { mode: 'dual', redis: { url: 'redis://localhost' }, session: { store: 'redis' } }
  const server = await startTestServer({ settings, extension: addRoutes })
  try {
    expect((await server.newBrowser().fetch('/api/hubs')).status).toBe(401)
    const ada = await server.signIn('Ada Lovelace')
    expect(await (await ada.fetch('/api/hubs')).json()).toEqual({ hasToken: true })
    expect((await ada.fetch('/demo/expire', { method: 'POST' })).status).toBe(204)
    expect((await ada.fetch('/api/auth/token')).status).toBe(200)
    const abort = new AbortController()
    setTimeout(() => abort.abort(new Error('enough')), 100)
    await expect(ada.fetch('/api/never', { signal: abort.signal })).rejects.toThrow('enough')
    expect((await ada.open('/api/auth/logout')).redirected).toBe(true)
  } finally {
    await server.close()
  }
}
