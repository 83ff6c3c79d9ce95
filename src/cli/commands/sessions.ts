/**
 * Lists or ends the sessions of a user, for an operator who has the settings of the server. This command writes to the
 * store as a replica does, so the running servers refuse an ended session immediately.
 */
import { pino } from 'pino'
import { systemClock } from '../../base/clock.js'
import { loadConfig } from '../../config/load.js'
import type { Config } from '../../config/settings.js'
import { ConfigError } from '../../config/types/problem.js'
import { createKeyring } from '../../cookie/keyring.js'
import type { SessionRecord } from '../../cookie/session-record.js'
import { REVOKED_IN_PARALLEL } from '../../login/log-out.js'
import { createIdentityProvider } from '../../provider/client.js'
import { createTransport } from '../../provider/transport.js'
import { printable } from '../../server/log.js'
import {
  createStores,
  type ListedSession,
  StoreUnavailableError,
  type UserSelector,
  type UserSessions,
  type UserWithSessions
} from '../../sessions/index.js'
import { type Command, sourcesOf } from '../terminal/command.js'
import { exitCodes, messageOf, RunError, UsageError } from '../terminal/expected-errors.js'
import { columnsOf, counted, wrapLines } from '../terminal/terminal.js'

export const sessions: Command = async function sessions(invocation) {
  const { terminal, hasAction: ends, options } = invocation
  const user = selectedUser(options)
  const { config, warnings } = await loadConfig(sourcesOf(invocation))
  if (warnings.length > 0)
    terminal.stderr.write(`${wrapLines(new ConfigError([], warnings).message, columnsOf(terminal.stderr))}\n`)
  const result = await withIndex(config, async (userSessions, iss) => {
    const users = await userSessions.listed(iss, user)
    if (!ends) return sessionListOf(user.value, users, config)
    const [found] = users
    if (!found) return { text: noneFound(user.value), value: { ended: 0, revoked: 0, notRevoked: 0 } }
    if (users.length > 1) {
      const subs = users.map(({ sub }) => printable(sub)).join(', ')
      throw new UsageError(
        `${users.length} users have the name ${printable(user.value)}, so no session was ended. Repeat the command with --sub and the sub of one of them: ${subs}.`
      )
    }
    const { ids, records } = await userSessions.logOutAll({ iss, sub: found.sub })
    const outcome = await revokeAll(records, ids.length, config)
    return {
      text: `Ended ${counted(ids.length, 'session')} of ${printable(found.sub)} on all replicas.\n${revocationText(outcome)}`,
      value: { sub: found.sub, ended: ids.length, ...outcome }
    }
  })
  const asText = () => wrapLines(result.text, columnsOf(terminal.stdout))
  terminal.stdout.write(`${options.json === true ? JSON.stringify(result.value, undefined, 2) : asText()}\n`)
  return exitCodes.fine
}

const SELECTORS = { user: 'any', sub: 'sub', name: 'name', email: 'email' } as const

function selectedUser(options: Readonly<Record<string, unknown>>): UserSelector {
  const given = Object.entries(SELECTORS).flatMap(([flag, by]) => {
    const value = options[flag]
    return typeof value === 'string' && value.trim() !== '' ? [{ by, value }] : []
  })
  const [selector, ...others] = given
  if (!selector)
    throw new UsageError(
      'The command "sessions" needs a user. Add --user with an e-mail address, a user name or a sub.'
    )
  if (others.length > 0)
    throw new UsageError('The command "sessions" accepts only one of --user, --sub, --name and --email.')
  return selector
}

/** Connects to Redis, and calls `use` with the session lists of the users, and with the issuer that has authenticated them. */
async function withIndex<Result>(
  config: Config,
  use: (userSessions: UserSessions, iss: string) => Promise<Result>
): Promise<Result> {
  const { redis, session, platform } = config
  if (redis.url === undefined) {
    throw new UsageError(
      'The command "sessions" needs Redis. Without redis.url, the server keeps its sessions in its memory, where this command cannot read them. Set redis.url for the server and for this command.'
    )
  }
  const keyring = createKeyring([session.secret, ...session.previousSecrets])
  // An outage is reported as the error of this command, so it need not be logged.
  const stores = createStores(config, { keyring, clock: systemClock, log: pino({ level: 'silent' }) })
  try {
    if (!stores.userSessions || platform.issuer === undefined) {
      throw new UsageError(
        'The command "sessions" needs the session list of each user, which the server keeps only with platform.backchannelLogout. Switch this setting on and restart the server. Each user is then listed after the next login.'
      )
    }
    return await use(stores.userSessions, platform.issuer)
  } catch (error) {
    if (!(error instanceof StoreUnavailableError)) throw error
    const next =
      error.problem === 'unreadable'
        ? 'Use the same session.secret as the server.'
        : 'Run the same command again. If the problem persists, run platform-auth-server check.'
    throw new RunError(`Not all sessions could be read or ended: ${error.message}. ${next}`, { cause: error })
  } finally {
    await stores.close()
  }
}

/**
 * Revokes refresh tokens even if `logout.revoke` is off, because a thief may have a copy of the session. The reason is why a token was
 * not revoked, or the last of several reasons.
 */
async function revokeAll(records: readonly SessionRecord[], ended: number, config: Config) {
  const transport = createTransport(config.platform.timeoutSeconds * 1000)
  const idp = createIdentityProvider(config.platform, transport, Date.now)
  let revoked = 0
  let reason =
    records.length < ended ? 'a session in Redis can be decrypted only with the cookie in its browser' : undefined
  try {
    if ((await idp.metadata()).revocationEndpoint === undefined) {
      return { revoked, notRevoked: ended, reason: 'the provider has no revocation endpoint' }
    }
    for (let from = 0; from < records.length; from += REVOKED_IN_PARALLEL) {
      const some = records.slice(from, from + REVOKED_IN_PARALLEL)
      const results = await Promise.allSettled(some.map(({ fields }) => idp.revokeRefreshToken(fields.refresh_token)))
      for (const result of results) {
        if (result.status === 'fulfilled') revoked++
        else reason = messageOf(result.reason)
      }
    }
  } catch (error) {
    reason = messageOf(error)
  } finally {
    transport.close()
  }
  return { revoked, notRevoked: ended - revoked, ...(reason !== undefined && { reason }) }
}

function revocationText({ revoked, notRevoked, reason }: Awaited<ReturnType<typeof revokeAll>>): string {
  const done = `Revoked ${counted(revoked, 'refresh token')}.`
  return notRevoked === 0 ? done : `${done} ${notRevoked} could not be revoked: ${reason}.`
}

function sessionListOf(user: string, found: readonly UserWithSessions[], config: Config) {
  const users = found.map(({ sub, sessions }) => ({ sub, sessions: sessions.map(session => timesOf(session, config)) }))
  const lines = users.flatMap(({ sub, sessions }) => [
    `${printable(sub)} has ${counted(sessions.length, 'session')}:`,
    ...sessions.map(({ since, endsBy }) => `  since ${since}, ends by ${endsBy} unless it is used again`)
  ])
  return { text: users.length === 0 ? noneFound(user) : lines.join('\n'), value: { users } }
}

function noneFound(user: string): string {
  return `No session of ${printable(user)} was found. If the spelling is right, use --sub with the sub of the user. This command needs the same settings as the server, including its session.secret.`
}

/** Returns when the session began, and when it ends if its browser sends no further request. */
function timesOf({ loggedInAt, writtenBy }: ListedSession, { session }: Config) {
  const { inactivityTimeoutSeconds, maxLifetimeSeconds = Number.POSITIVE_INFINITY } = session
  const end = Math.min(writtenBy + inactivityTimeoutSeconds * 1000, loggedInAt + maxLifetimeSeconds * 1000)
  return { since: new Date(loggedInAt).toISOString(), endsBy: new Date(end).toISOString() }
}
