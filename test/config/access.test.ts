import test from 'ava'
import { accepts, load, refuses, type Situation } from './given.js'
import { testSituations } from './messages.js'

const VARIABLE = 'PLATFORM_AUTH_ACCESS_ALLOW'
const settingsFile = 'platform-auth-server.config.yaml'

/** The situation in which the list is given by this variable or by this YAML, and not in another way. */
const inVariable = (text: string): Situation => ({ env: { [VARIABLE]: text } })
const inFile = (yaml: string): Situation => ({ env: { [VARIABLE]: undefined }, files: { [settingsFile]: yaml } })

const claims =
  'groups=admins @team.example realm_access.roles=editor https://example.com/roles=a=b name=ada@example.com'
const accepted: readonly (readonly [situation: Situation, entries: readonly string[]])[] = [
  [inVariable('  ada@example.com\n\t@bücher.example '), ['ada@example.com', '@bücher.example']],
  [inFile('access:\n  allow: [ada@example.com, "@bücher.example"]\n'), ['ada@example.com', '@bücher.example']],
  [inVariable(claims), claims.split(' ')],
  [inFile('access:\n  allow: ["groups=Team Admins", ada@example.com]\n'), ['groups=Team Admins', 'ada@example.com']],
  // Everyone may sign in, and only an unset list gets a warning.
  [inVariable('*'), []]
]

for (const [situation, entries] of accepted) {
  test(`access.allow has the entries ${entries.join(', ') || '(everyone)'}: ${JSON.stringify(situation)}`, async t => {
    const { config } = await accepts(t, situation)
    t.deepEqual(
      config.access.allow?.map(({ text }) => text),
      [...entries]
    )
  })
}

testSituations('access')

test('everyone may sign in without access.allow, and with access.allow: null in an application, but not with undefined', async t => {
  for (const situation of [{}, { settings: { access: { allow: null } } }])
    t.is((await load(t, { ...situation, env: { [VARIABLE]: undefined } })).config.access.allow, undefined)
  const forgotten = { settings: { access: { allow: undefined } }, env: { [VARIABLE]: undefined } }
  await refuses(t, forgotten, 'access.allow empty application')
})
