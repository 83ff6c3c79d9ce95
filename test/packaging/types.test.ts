import test from 'ava'
import { compile, programThatUsesTypes } from '../helpers/compile.js'
import { folderWithPackage } from '../helpers/packed.js'

test('a program compiles against the packed package with strict, and a misspelt field of the tokens does not', async t => {
  const folder = await folderWithPackage(t, { 'use.mts': programThatUsesTypes })
  const { status, output } = compile(folder, 'use.mts')
  t.is(status, 0, output)
})

test('the type test notices a field that is not there', async t => {
  const misspelt = programThatUsesTypes.replace(
    'ctx.state.tokens.public.expires_in',
    'ctx.state.tokens.pubic.expires_in'
  )
  const folder = await folderWithPackage(t, { 'use.mts': misspelt })
  t.regex(compile(folder, 'use.mts').output, /^use\.mts\(\d+,\d+\): error .*'pubic'/)
})
