import test, { type ExecutionContext } from 'ava'
import { resolveSettings } from '#src/config/load.js'
import { tempFolder } from '../helpers/temp-folder.js'
import { load, problemsOf } from './given.js'

const VARIABLE = 'PLATFORM_AUTH_ACCESS_ALLOW'
const settingsFile = 'platform-auth-server.config.yaml'

async function resolveIn(t: ExecutionContext, files: Record<string, string>, env: Record<string, string>) {
  const { values, problems } = await resolveSettings({ cwd: await tempFolder(t, files), env })
  const about = problems.filter(({ key }) => key === 'access.allow' || key.startsWith('PLATFORM_AUTH_ACCESS'))
  return { allow: values['access.allow']?.map(({ text }) => text), problems: about }
}

test('without access.allow everyone may sign in', async t => {
  t.deepEqual(await resolveIn(t, {}, {}), { allow: undefined, problems: [] })
})

test('the entries of access.allow are separated by white space or are a list in a file', async t => {
  const expected = { allow: ['ada@example.com', '@bücher.example'], problems: [] }
  t.deepEqual(await resolveIn(t, {}, { [VARIABLE]: '  ada@example.com\n\t@bücher.example ' }), expected)
  const list = { [settingsFile]: 'access:\n  allow: [ada@example.com, "@bücher.example"]\n' }
  t.deepEqual(await resolveIn(t, list, {}), expected)
})

test('an entry of access.allow may be a claim and its value', async t => {
  const text =
    'groups=admins @team.example realm_access.roles=editor https://example.com/roles=a=b name=ada@example.com'
  t.deepEqual(await resolveIn(t, {}, { [VARIABLE]: text }), { allow: text.split(' '), problems: [] })
  const list = { [settingsFile]: 'access:\n  allow: ["groups=Team Admins", ada@example.com]\n' }
  t.deepEqual(await resolveIn(t, list, {}), { allow: ['groups=Team Admins', 'ada@example.com'], problems: [] })
})

for (const entry of [
  'groups=',
  '=admins',
  '.roles=a',
  'a..b=c',
  'a.=c',
  'groups',
  'example.com',
  '@',
  'a@b@c',
  '@*.example.com',
  'a@b,c@d',
  '@example.com.',
  '@BÜCHER.example'
]) {
  test(`access.allow refuses the entry ${entry}`, async t => {
    const { problems, allow } = await resolveIn(t, {}, { [VARIABLE]: `ada@example.com ${entry}` })
    t.is(allow, undefined)
    t.is(problems.length, 1)
    t.true(problems[0]?.message.includes(`"${entry}" is not an e-mail address, a domain`), problems[0]?.message)
  })
}

test('access.allow admits everyone with *, which must be the only entry, and only an unset list gets a warning', async t => {
  const everyone = await resolveIn(t, {}, { [VARIABLE]: '*' })
  t.deepEqual([everyone.problems, everyone.allow], [[], []])
  const { problems } = await resolveIn(t, {}, { [VARIABLE]: '* @team.example' })
  t.regex(problems[0]?.message ?? '', /because \* admits everyone, so the other entries have no effect/)
})

test('access.allow refuses the claim email, because nothing would say that the provider has verified the address', async t => {
  const { problems, allow } = await resolveIn(t, {}, { [VARIABLE]: 'groups=admins email=ada@example.com' })
  t.is(allow, undefined)
  t.is(problems.length, 1)
  t.regex(problems[0]?.message ?? '', /email=ada@example\.com" .*write only the address/)
})

const empty: readonly (readonly [what: string, files: Record<string, string>, env: Record<string, string>])[] = [
  ['an empty variable', {}, { [VARIABLE]: '' }],
  ['a variable of spaces', {}, { [VARIABLE]: '  ' }],
  ['an empty variable in .env', { '.env': `${VARIABLE}=\n` }, {}],
  ['an empty variable and a file', { [settingsFile]: 'access:\n  allow: "@a.example"\n' }, { [VARIABLE]: '' }],
  ['an empty string in a file', { [settingsFile]: 'access:\n  allow: ""\n' }, {}],
  ['an empty list in a file', { [settingsFile]: 'access:\n  allow: []\n' }, {}],
  ['a key without a value in a file', { [settingsFile]: 'access:\n  allow:\n' }, {}],
  ['a group without keys in a file', { [settingsFile]: 'access:\n' }, {}]
]
for (const [what, files, env] of empty) {
  test(`access.allow refuses ${what} instead of letting everyone sign in`, async t => {
    const { problems } = await resolveIn(t, files, env)
    t.is(problems.length, 1)
    t.is(problems[0]?.key, 'access.allow')
  })
}

test('in an application, access.allow: undefined is refused and access.allow: null allows everyone', async t => {
  const cwd = await tempFolder(t)
  const given = await resolveSettings({ cwd, env: {}, settings: { access: { allow: undefined } } })
  t.true(given.problems.some(({ key }) => key === 'access.allow'))
  const everyone = await resolveSettings({ cwd, env: {}, settings: { access: { allow: null } } })
  t.false(everyone.problems.some(({ key }) => key === 'access.allow'))
})

const noUserInfo = { [VARIABLE]: '@example.com', PLATFORM_USERINFO_ENDPOINT: 'none' }
const scopeVariables = [
  ['single', 'PLATFORM_SCOPES', {}],
  ['dual', 'INTERNAL_TOKEN_SCOPES', { PUBLIC_TOKEN_SCOPES: 'data:read' }]
] as const

for (const [mode, variable, others] of scopeVariables) {
  const given = (scopes: string, more: Record<string, string> = noUserInfo) => ({
    env: { ...more, ...others, PLATFORM_AUTH_MODE: mode, [variable]: scopes }
  })

  test(`${mode}: access.allow with claims only does not need the scope email`, async t => {
    const claims = { ...noUserInfo, [VARIABLE]: 'groups=admins' }
    t.deepEqual((await load(t, given('openid data:read', claims))).warnings, [])
    t.is((await problemsOf(t, given('data:read', claims))).length, 1)
  })

  test(`${mode}: without access.allow or with a user info endpoint, the scope openid is not needed`, async t => {
    const either: Record<string, string>[] = [{ PLATFORM_USERINFO_ENDPOINT: 'none' }, { [VARIABLE]: '@example.com' }]
    for (const more of either) {
      t.deepEqual((await load(t, given('data:read data:write', more))).warnings, [])
    }
  })
}
