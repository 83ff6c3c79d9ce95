/** The programs that are a library or a tutorial on Node. Their code is in bench/candidates/. */
import { HUBS_PATH, LOGIN_PATH } from '../../candidates/common.js'
import { nodeProgram, packageVersion, REFRESH_SECONDS } from './common.js'

// better-auth refreshes an access token within five seconds of its expiry. This is not a setting.
const BETTER_AUTH_SECONDS = 5

const onNode = { loginPath: LOGIN_PATH, path: HUBS_PATH, maxProcesses: 2, redis: 'never' }

/** @type {import('./common.js').Compared[]} */
export const programs = [
  {
    ...onNode,
    name: 'express-openid-connect',
    title: 'express-openid-connect',
    lifetimeSeconds: REFRESH_SECONDS,
    about:
      'Every request that finds an expired access token refreshes it, without a lock, as in the documentation. All six requests of a page then send the same refresh token. This happens at the first expiry, without a fault. The session is an encrypted cookie. It can also be [in Redis](https://github.com/auth0/express-openid-connect/blob/v3.4.0/EXAMPLES.md#10-use-a-custom-session-store), which adds no lock to this code.',
    sources: [
      'https://github.com/auth0/express-openid-connect/blob/v3.4.0/EXAMPLES.md#5-obtaining-and-using-refresh-tokens',
      'https://github.com/auth0/express-openid-connect/blob/v3.4.0/lib/context.js#L240'
    ],
    extras: 'a place in an existing Express server, back-channel logout, and token exchange in code',
    version: () => packageVersion('express-openid-connect'),
    describe: (place, setting) => nodeProgram('express-openid-connect', place, setting)
  },
  {
    ...onNode,
    name: 'better-auth',
    title: 'better-auth',
    lifetimeSeconds: REFRESH_SECONDS + BETTER_AUTH_SECONDS,
    about:
      'Its `getAccessToken` refreshes an access token that has expired or will expire within [5 s](https://github.com/better-auth/better-auth/blob/v1.7.25/packages/better-auth/src/api/routes/account.ts), without a lock. If the provider refuses this refresh, it fails with `Failed to get a valid access token`. Without a database, the session is in encrypted cookies. With a database (in this test, in the memory of the process), parallel requests still read the same refresh token.',
    sources: [
      'https://better-auth.com/docs/concepts/oauth',
      'https://better-auth.com/docs/concepts/session-management',
      'https://better-auth.com/docs/plugins/generic-oauth'
    ],
    extras: 'built-in accounts with passwords, passkeys, second factors and organisations, and a database',
    version: () => packageVersion('better-auth'),
    describe: (place, setting) => nodeProgram('better-auth', place, setting)
  },
  {
    ...onNode,
    name: 'better-auth-database',
    title: 'better-auth, with a database',
    lifetimeSeconds: REFRESH_SECONDS + BETTER_AUTH_SECONDS,
    isVariant: true,
    maxProcesses: 1,
    whyNotTwo: 'the database of this test is in the memory of the process',
    version: () => packageVersion('better-auth'),
    describe: (place, setting) => nodeProgram('better-auth', place, { ...setting, hasDatabase: true })
  },
  {
    ...onNode,
    name: 'express-tutorial',
    title: "code like the tutorial's",
    lifetimeSeconds: REFRESH_SECONDS,
    about:
      'Its session is a signed cookie that can be read. It sends two token requests for each refresh, and has no lock. Its response to a failed refresh is 500. Here, `fetch` replaces its SDK.',
    sources: ['https://get-started.aps.autodesk.com/tutorials/hubs-browser/auth'],
    tokenRequests: 2,
    extras: 'so little code that it can be read in some minutes',
    version: () => `with Express ${packageVersion('express')} and cookie-session ${packageVersion('cookie-session')}`,
    describe: (place, setting) => nodeProgram('express-tutorial', place, setting)
  }
]
