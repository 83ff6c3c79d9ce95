import test from 'ava'
import { checkAt } from './checked.js'

test('check warns that an access list needs verified email addresses', async t => {
  const { line, code } = await checkAt(t, { env: () => ({ PLATFORM_AUTH_ACCESS_ALLOW: '@team.example' }) })
  t.regex(line('access') ?? '', /^warning access .*does not send email_verified, nobody can sign in/)
  t.is(code, 0)
})

test('check names the claims that an access list needs', async t => {
  const allow = 'groups=admins groups=editors realm_access.roles=owner'
  const { line } = await checkAt(t, { env: () => ({ PLATFORM_AUTH_ACCESS_ALLOW: allow }) })
  t.regex(line('access') ?? '', /has groups=admins or groups=editors or realm_access\.roles=owner\. /)
  t.regex(line('access') ?? '', /does not send groups or realm_access\.roles, nobody can sign in/)
})

test('check reports no access finding if everyone may sign in', async t => {
  const { line } = await checkAt(t)
  t.is(line('access'), undefined)
})
