/** The programs of the comparison, in the order in which they run. */
import { HUBS_PATH, LOGIN_PATH } from '../../settings.js'
import { nodeProgram, packageVersion, REFRESH_SECONDS } from './common.js'
import { programs as apache } from './mod-auth-openidc.js'
import { programs as oauth2Proxy } from './oauth2-proxy.js'
import { programs as ours } from './platform-auth-server.js'
import { programs as wonderwall } from './wonderwall.js'

/** @type {import('./common.js').Compared} */
const tutorial = {
  name: 'express-tutorial',
  title: "code like the tutorial's",
  lifetimeSeconds: REFRESH_SECONDS,
  loginPath: LOGIN_PATH,
  path: HUBS_PATH,
  redis: 'never',
  version: () => `with Express ${packageVersion('express')} and cookie-session ${packageVersion('cookie-session')}`,
  describe: (place, setting) => nodeProgram('express-tutorial', place, setting)
}

/** @type {import('./common.js').Compared[]} */
export const programs = [...ours, ...oauth2Proxy, ...wonderwall, ...apache, tutorial]
