import { HEALTH_ROUTES } from '#src/config/urls.js'
import { authRouter } from '#src/http/routes/auth-routes.js'
import { createServices } from '#src/services.js'
import { testConfig, unreachableIdp } from '../helpers/config.js'

/** Returns the paths that the server itself answers: the routes of its router and the health checks. */
export function serverRoutes(): string[] {
  const platform = { backChannelLogout: true, issuer: 'https://idp.example', scopes: ['openid'] }
  const router = authRouter(createServices(testConfig(unreachableIdp, { mode: 'dual', platform })))
  return [...router.stack.map(({ path }) => String(path)), ...Object.values(HEALTH_ROUTES)].toSorted()
}
