import { HEALTH_ROUTES } from '#src/config/addresses.js'
import { authRouter } from '#src/http/routes/auth-routes.js'
import { publicOrigin } from '../helpers/config.js'

const unused = async () => {}

/** Returns the paths that the server itself answers: the routes of its router and the health checks. */
export function serverRoutes(): string[] {
  const handlers = { login: unused, callback: unused, logout: unused, profile: unused, backChannelLogout: unused }
  const site = { origin: publicOrigin }
  const router = authRouter({ ...handlers, site, session: unused, requireTokens: unused, offersPublicToken: true })
  return [...router.stack.map(({ path }) => String(path)), ...Object.values(HEALTH_ROUTES)].toSorted()
}
