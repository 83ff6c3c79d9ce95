import test from 'ava'
import { compile, programThatUsesTypes } from '../helpers/compile.js'
import { folderWithPackage } from '../helpers/packed.js'

test('a program with strict types compiles against the packed package, and each of its deliberate type errors is found', async t => {
  const folder = await folderWithPackage(t, { 'use.mts': programThatUsesTypes })
  const { status, output } = compile(folder, 'use.mts')
  t.is(status, 0, output)
})

test('the compilation fails if the program reads a field that the types do not have', async t => {
  const misspelt = programThatUsesTypes.replace(
    'ctx.state.tokens.public.expires_in',
    'ctx.state.tokens.pubic.expires_in'
  )
  const folder = await folderWithPackage(t, { 'use.mts': misspelt })
  t.regex(compile(folder, 'use.mts').output, /^use\.mts\(\d+,\d+\): error .*'pubic'/)
})
