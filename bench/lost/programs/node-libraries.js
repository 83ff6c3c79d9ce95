/** The programs that are a library or a tutorial on Node. Their code is in bench/candidates/. */
import { HUBS_PATH, LOGIN_PATH } from '../../candidates/common.js'
import { nodeBytes, nodeProgram, packageVersion, REFRESH_SECONDS } from './common.js'

// better-auth refreshes an access token within five seconds of its expiry. This is not a setting.
const BETTER_AUTH_SECONDS = 5

const onNode = { loginPath: LOGIN_PATH, path: HUBS_PATH, maxProcesses: 2, redis: 'never', executableBytes: nodeBytes }

/** @type {import('./common.js').Compared[]} */
export const programs = [
  {
    ...onNode,
    name: 'express-openid-connect',
    title: 'express-openid-connect',
    lifetimeSeconds: REFRESH_SECONDS,
    store: 'an encrypted cookie',
    design:
      'Every request that finds an expired access token refreshes it, without a lock. The code is that of its documentation.',
    reasons: [
      'All six requests of a page send the same refresh token, and the provider ends the login at the second one. This happens at the first expiry, without a fault.'
    ],
    sources: [
      'https://github.com/auth0/express-openid-connect/blob/v3.4.0/EXAMPLES.md#5-obtaining-and-using-refresh-tokens',
      'https://github.com/auth0/express-openid-connect/blob/v3.4.0/lib/context.js#L240'
    ],
    extras: 'part of an existing Express server; back-channel logout and token exchange in code',
    version: () => packageVersion('express-openid-connect'),
    describe: (place, setting) => nodeProgram('express-openid-connect', place, setting)
  },
  {
    ...onNode,
    name: 'better-auth',
    title: 'better-auth',
    lifetimeSeconds: REFRESH_SECONDS + BETTER_AUTH_SECONDS,
    store: 'encrypted cookies, because no database is configured',
    design: 'getAccessToken refreshes an access token that has expired or will expire within 5 s. There is no lock.',
    reasons: ['Like express-openid-connect. `getAccessToken` then fails with `Failed to get a valid access token`.'],
    sources: [
      'https://better-auth.com/docs/concepts/oauth',
      'https://better-auth.com/docs/concepts/session-management',
      'https://better-auth.com/docs/plugins/generic-oauth',
      'https://github.com/better-auth/better-auth/blob/v1.7.25/packages/better-auth/src/api/routes/account.ts'
    ],
    extras: 'built-in accounts, with passwords, passkeys, second factors, organisations and a database',
    version: () => packageVersion('better-auth'),
    describe: (place, setting) => nodeProgram('better-auth', place, setting)
  },
  {
    ...onNode,
    name: 'express-tutorial',
    title: "the tutorial's code",
    lifetimeSeconds: REFRESH_SECONDS,
    store: 'a signed cookie that can be read',
    design: 'Like express-openid-connect, but with two token requests for a refresh.',
    reasons: ['Like express-openid-connect. The response to a failed refresh is 500.'],
    sources: ['https://get-started.aps.autodesk.com/tutorials/hubs-browser/auth'],
    extras: 'short enough to read in some minutes',
    version: () => `with Express ${packageVersion('express')} and cookie-session ${packageVersion('cookie-session')}`,
    describe: (place, setting) => nodeProgram('express-tutorial', place, setting)
  }
]
