/** The code of the platform's tutorials, on Node. */
import { HUBS_PATH, LOGIN_PATH } from '../../settings.js'
import { nodeProgram, packageVersion, REFRESH_SECONDS } from './common.js'

/** @type {import('./common.js').Compared[]} */
export const programs = [
  {
    name: 'express-tutorial',
    title: "code like the tutorial's",
    lifetimeSeconds: REFRESH_SECONDS,
    loginPath: LOGIN_PATH,
    path: HUBS_PATH,
    redis: 'never',
    version: () => `with Express ${packageVersion('express')} and cookie-session ${packageVersion('cookie-session')}`,
    describe: (place, setting) => nodeProgram('express-tutorial', place, setting)
  }
]
