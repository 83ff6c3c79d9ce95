// A refresh while the access list is checked: no process gives an account that was removed new tokens, whatever happens to the
// process that checks it.
import test from 'ava'
import fc from 'fast-check'
import type { SessionRecord } from '#src/cookie/session-record.js'
import { createAccess, type Judgement } from '#src/login/access.js'
import { needsCheck, uncheckedRecord } from '#src/login/access-check.js'
import { ProviderError } from '#src/provider/provider-error.js'
import { createDeferred } from '../helpers/deferred.js'
import { jwt } from '../helpers/jwt.js'
import { type ModeName, modes } from '../helpers/modes.js'
import { grantsOf, type RefreshOptions, setUpRefresh } from './setup.js'

const identity = { iss: 'https://idp.example', sub: 'ada' }
const end = { reason: 'denied', problem: 'no_claim', missing: ['groups'] }
const denied = { kind: 'over', end }
/** The message to the other processes does not name the missing claims. */
const deniedElsewhere = { kind: 'over', end: { ...end, missing: [] } }

const idToken = (groups?: string) => jwt({ ...identity, aud: 'our-client', groups })

/** The access list has one group, which is in the user info and not in the ID token. */
async function setUpGuarded(name: ModeName, options: RefreshOptions = {}) {
  const account = { groups: 'admins' as string | undefined, asked: 0, gate: Promise.resolve() as Promise<unknown> }
  const access = createAccess(
    { allow: [{ text: 'groups=admins', claim: 'groups', value: 'admins' }] },
    {
      endpoint: async () => 'https://idp.example/userinfo' as never,
      async userInfo() {
        account.asked++
        await account.gate
        return { sub: identity.sub, groups: account.groups }
      }
    }
  )
  const setup = await setUpRefresh(name, { afterSeconds: 3601, identity, access, ...options })
  /** Begins a refresh by this process, and holds back the response of the user info. */
  async function beginCheck() {
    const [gate, letGo] = createDeferred()
    account.gate = gate
    const before = account.asked
    const waiting = setup.current(setup.record)
    while (account.asked === before) await new Promise(setImmediate)
    return { waiting, letGo }
  }
  return { ...setup, account, beginCheck }
}

for (const mode of modes) {
  test(`${mode}: while one process checks the access list, another one sends no token request, and gives out no new token`, async t => {
    const { idp, clock, record, addProcess, account, beginCheck } = await setUpGuarded(mode)
    const other = addProcess()
    account.groups = undefined
    idp.next({ idToken: idToken() })
    const { waiting, letGo } = await beginCheck()
    const sent = idp.grants.length
    t.like(await clock.runUntilSettled(other.current(record)), { kind: 'unavailable', why: 'pending' })
    t.is(idp.grants.length, sent)
    letGo()
    t.deepEqual(await waiting, denied)
    t.deepEqual(await other.current(record), deniedElsewhere)
    t.deepEqual(idp.revoked, [idp.newestRefreshToken])
  })

  for (const [what, error, level] of [
    ['a fault of the provider is a warning', new ProviderError('userinfo', 'timeout', 'too slow'), 'warn'],
    ['a fault of this server is an error', new TypeError('groups is undefined'), 'error']
  ] as const) {
    test(`${mode}: if the access list cannot be checked, the session continues, and in the log ${what}`, async t => {
      const { idp, record, account, live, logs } = await setUpGuarded(mode)
      account.gate = Promise.reject(error)
      account.gate.catch(() => {})
      idp.next({ idToken: idToken() })
      await live(record)
      t.is(logs.first('account_not_checked')?.level, level)
    })
  }

  test(`${mode}: a slow check of an account that is still allowed costs no second refresh`, async t => {
    const { idp, record, addProcess, beginCheck, clock, refreshes, account } = await setUpGuarded(mode)
    const other = addProcess()
    idp.next({ idToken: idToken() })
    const { waiting, letGo } = await beginCheck()
    t.like(await clock.runUntilSettled(other.current(record)), { kind: 'unavailable' })
    letGo()
    t.like(await waiting, { kind: 'live' })
    t.deepEqual((await other.live(record)).fields, ((await waiting) as { record: SessionRecord }).record.fields)
    t.deepEqual([refreshes(), account.asked, idp.reused.length], [grantsOf[mode], 1, 0])
  })

  for (const [what, next] of [
    ['brings another ID token', idToken()],
    ['brings no ID token', undefined]
  ] as const) {
    test(`${mode}: if the process dies during the check, the next process checks the account, also if its response ${what}`, async t => {
      const { idp, clock, record, addProcess, account, beginCheck } = await setUpGuarded(mode)
      const other = addProcess()
      account.groups = undefined
      idp.next({ idToken: idToken() }, { idToken: next })
      await beginCheck()
      account.gate = Promise.resolve()
      clock.advanceSeconds(65)
      t.deepEqual(await other.current(record), denied)
      t.is(account.asked, 2)
      t.deepEqual(idp.revoked, [idp.newestRefreshToken])
      t.deepEqual(idp.reused, [])
    })
  }

  test(`${mode}: an early refresh uses the tokens of the last checked response during the check`, async t => {
    const early = { afterSeconds: 3590, beforeExpirySeconds: 120 }
    const { clock, idp, record, current, addProcess, beginCheck } = await setUpGuarded(mode, early)
    const other = addProcess()
    idp.next({ idToken: idToken() })
    const { waiting, letGo } = await beginCheck()
    const session = await other.live(record)
    t.deepEqual({ ...session.fields, refresh_token: '' }, { ...record.fields, refresh_token: '' })
    clock.advanceSeconds(11)
    t.like(await clock.runUntilSettled(other.current(session)), { kind: 'unavailable' }, 'until they expire')
    letGo()
    await waiting
    t.like(await current(session), { kind: 'live' })
  })

  test(`${mode}: an end by the access list is remembered like a logout, so that an older copy does not revive the session`, async t => {
    const { idp, record, current, addProcess, account, cells } = await setUpGuarded(mode)
    const other = addProcess()
    const { content: older } = await cells.read(record, true)
    account.groups = undefined
    idp.next({ idToken: idToken() })
    t.deepEqual(await current(record), denied)
    const options = { now: 0, message: undefined, mayFail: false }
    await cells.swap(record, await cells.read(record, false), older as NonNullable<typeof older>, options)
    t.deepEqual(await other.current(record), deniedElsewhere)
    t.deepEqual(await current(record), denied)
  })
}

// The second ID token decides its claims, so the user info is asked only once, for the first one.
for (const [what, second, expected] of [
  ['names no group', undefined, { kind: 'live' }],
  ['names the group', 'admins', { kind: 'live' }],
  ['names another group', 'staff', denied]
] as const) {
  test(`dual: the second response is checked, too: its ID token ${what}`, async t => {
    const { idp, record, current, account } = await setUpGuarded('dual')
    const removeAccount = async () => {
      if (second === 'staff') account.groups = 'staff'
      return { idToken: idToken(second) }
    }
    idp.next({ idToken: idToken() }, removeAccount)
    const result = await current(record)
    if (expected === denied) t.deepEqual(result, { kind: 'over', end: { ...end, problem: 'not_listed', missing: [] } })
    else t.like(result, expected)
    t.is(account.asked, 1)
  })
}

// A model of a session whose account is removed at some time. Each response brings a new access token.
const response = fc.record({
  isSecond: fc.boolean(),
  judgement: fc.constantFrom<Judgement>('incomplete', 'denied'),
  isRemoved: fc.boolean(),
  dies: fc.boolean()
})

test('in any history, once a response is not allowed by its ID token alone, no later access token is stored before a check has ended', t => {
  fc.assert(
    fc.property(fc.array(response, { maxLength: 12 }), history => {
      let isRemoved = false
      let session = recordOf(1)
      let firstWithheld = Number.POSITIVE_INFINITY
      for (const { isSecond, judgement, dies, isRemoved: isRemovedNow } of history) {
        isRemoved ||= isRemovedNow
        const next = recordOf(session.rev + 1)
        const isShown = !isSecond || judgement === 'denied'
        if (isRemoved && isShown) firstWithheld = Math.min(firstWithheld, next.rev)
        if (needsCheck({ session, judgement, isSecond })) {
          session = uncheckedRecord(session, next)
          if (session.fields.refresh_token !== next.fields.refresh_token) return false
          if (!dies && isRemoved) return true
          if (!dies) session = next
        } else session = next
        if (Number(session.fields.token) >= firstWithheld) return false
      }
      return true
    })
  )
  t.pass()
})

function recordOf(rev: number): SessionRecord {
  const fields = { token: String(rev), refresh_token: `refresh ${rev}`, expires_at: 0 }
  return { kind: 'complete', id: 'id', rev, loggedInAt: 0, issuedAt: 0, fields }
}
