import test from 'ava'
import { commonJsProgram, compile, programThatUsesTypes } from '../helpers/compile.js'
import { folderWithPackage } from '../helpers/packed.js'

// docs/pages/testing.md names the options. For this program, node18 is like node16, and node20 is like esnext.
test('the package can be imported with each setting of `module`, but not by a static import of CommonJS in node16 and node18', async t => {
  const statically = "import { loadConfig } from 'platform-auth-server'\nvoid loadConfig()\n"
  const files = { 'use.mts': programThatUsesTypes, 'dynamic.cts': commonJsProgram, 'static.cts': statically }
  const folder = await folderWithPackage(t, files)
  for (const module of ['node16', 'esnext']) {
    const { output } = await compile(folder, Object.keys(files), ['--module', module, '--skipLibCheck'])
    if (/node1/.test(module)) t.regex(output, /^static\.cts\(1,\d+\): error TS1479: [^\n]+\s*$/, module)
    else t.is(output, '', module)
  }
})

const pageThatUsesTypes = `
import { apiFetch, getAccessToken, getProfile, SignInLoopError, signIn, signOut } from 'platform-auth-server/client'
const response: Response = await apiFetch('/api/hubs', { method: 'POST', signal: AbortSignal.timeout(1000) })
const name: string | undefined = (await getProfile())?.name
await getAccessToken((accessToken: string, expiresInSeconds: number) => {})
addEventListener('beforesignin', event => event.preventDefault())
addEventListener('sessionended', () => {})
addEventListener('sessionwaiting', ({ detail }) => detail.seconds > 30)
addEventListener('sessionchanged', () => location.reload())
addEventListener('signinloop', () => {})
document.body.onclick = signIn
const onClick: (event: { readonly nativeEvent: Event }) => void = signOut
void signIn(new URL('/x', location.href)).catch(error => error instanceof SignInLoopError && error.message)
const leave: Promise<never> = name ? signOut() : signIn('/models/7')
// @ts-expect-error
await getAccessToken((accessToken: number) => {})
// @ts-expect-error
apiFetch()
export { leave, onClick, response }
`

test('a program and a page with strict types compile against the packed package, and deliberate type errors are found', async t => {
  const files = { 'use.mts': programThatUsesTypes, 'page.mts': pageThatUsesTypes }
  const folder = await folderWithPackage(t, files)
  const { status, output } = await compile(folder, Object.keys(files))
  t.is(status, 0, output)
})
