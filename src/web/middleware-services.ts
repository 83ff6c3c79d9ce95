/** What the middleware uses. All middleware gets the same value, which `server/create-services.ts` creates. */
import type { Logger } from 'pino'
import type { Metrics } from '../base/metrics.js'
import type { ShutdownHooks } from '../base/shutdown.js'
import type { Tracing } from '../base/tracing.js'
import type { Config } from '../config/settings.js'
import type { Site } from '../config/site.js'
import type { SessionCookie } from '../cookie/session-cookie.js'
import type { SessionRecord } from '../cookie/session-record.js'
import type { BackchannelLogout } from '../login/backchannel-logout.js'
import type { BeginLogin } from '../login/begin-login.js'
import type { CompleteLogin } from '../login/complete-login.js'
import type { LogOut } from '../login/log-out.js'
import type { Mode } from '../login/mode.js'
import type { Profiles } from '../login/profiles.js'
import type { Refreshes } from '../login/refreshes.js'
import type { Pages } from '../pages/index.js'
import type { RedisStatus, Sessions, UserSessions } from '../sessions/index.js'

export interface Services {
  readonly config: Config
  readonly site: Site
  readonly pages: Pages
  readonly mode: Mode
  readonly sessions: Pick<Sessions, 'now' | 'known' | 'change' | 'whenOver'>
  /** Undefined unless `platform.backchannelLogout` is on. */
  readonly userSessions: Pick<UserSessions, 'shouldJoin' | 'joinAgain'> | undefined
  readonly sessionCookie: SessionCookie
  /**
   * Returns a string that is the same for all sessions of a user, and does not reveal who the user is. Without the scope
   * `openid`, the user is unknown, so each session has a different string. While a secret is being replaced, the string has one
   * word for each secret, so that it shares a word with the strings of replicas that know only one of the secrets.
   */
  readonly sessionUser: (record: SessionRecord) => string
  readonly refreshes: Refreshes
  readonly profiles: Pick<Profiles, 'displayName'>
  readonly beginLogin: BeginLogin
  readonly completeLogin: CompleteLogin
  readonly logOut: LogOut
  /** Logs out all sessions of a user. Undefined unless `platform.backchannelLogout` is on. */
  readonly logOutEverywhere: LogOut | undefined
  /** Resolves with the function that handles a logout token. Undefined unless `platform.backchannelLogout` is on. */
  readonly backchannelLogout: Promise<BackchannelLogout> | undefined
  /** The built-in demo, if it is the identity provider. */
  readonly demo: DemoProvider | undefined
  /** Milliseconds since the epoch. */
  readonly now: () => number
  readonly log: Logger
  readonly metrics: Metrics
  /** Undefined if tracing is off. */
  readonly tracing: Tracing | undefined
  readonly redisStatus: () => RedisStatus
  /** True while this process should not get requests yet, because it waits for its first connection to Redis. */
  readonly isStarting: () => boolean
  readonly shutdown: {
    readonly hooks: Pick<ShutdownHooks, 'onStop' | 'onClose'>
    /** True when the shutdown has begun. */
    readonly isDraining: () => boolean
  }
}

/** The counts of the built-in demo identity provider, which the starter page of a demo shows. */
export interface DemoProvider {
  readonly calls: {
    /** The number of token requests with a refresh token. */
    readonly refreshToken: number
    /** The number of these requests whose refresh token was already spent. Each of them ended a login. */
    readonly reusedRefreshToken: number
  }
}
