import test from 'ava'
import { listenError } from '#src/cli/terminal/errors.js'
import { carries } from '../helpers/messages.js'
import { tempFolder } from '../helpers/temp-folder.js'
import { run } from './shell.js'

const faults: readonly (readonly [fault: object, message: string])[] = [
  [{ code: 'EADDRINUSE', port: 80 }, '80 in use another program --port.'],
  [{ code: 'EACCES', port: 80 }, 'not allowed 80 1023 --port.'],
  [{ code: 'EADDRNOTAVAIL', address: '192.0.2.1' }, '192.0.2.1 not this machine --host, remove --host.'],
  [
    { code: 'EADDRNOTAVAIL', address: '192.0.2.1', listener: 'metrics' },
    '192.0.2.1 not this machine --metrics-address, remove --metrics-address.'
  ],
  [{ code: 'EADDRINUSE', port: 4181, listener: 'forwardAuth' }, '4181 in use --forward-auth-address.'],
  [{ code: 'ENOTFOUND' }, 'cannot be resolved --host, remove --host.'],
  [{ code: 'ENOMEM' }, 'could not start: out of luck']
]

for (const [fields, message] of faults) {
  test(`a listen error is explained in one sentence: ${message}`, t => {
    carries(t, listenError(Object.assign(new Error('out of luck'), fields)).message, message)
  })
}

test('an unexpected error is reported in one sentence', async t => {
  const cwd = `${await tempFolder(t)}/gone`
  const { code, errors } = await run(t, ['init', '--yes'], { cwd })
  t.is(code, 1)
  t.regex(errors, /^platform-auth-server failed: ENOENT: .*\n$/)
})
