import test from 'ava'
import { listenError } from '#src/cli/terminal/errors.js'
import { tempFolder } from '../helpers/temp-folder.js'
import { run } from './shell.js'

const faults: readonly (readonly [object, string])[] = [
  [
    { code: 'EADDRINUSE', port: 80 },
    'Port 80 is in use by another program. Stop that program, or choose a different port with --port.'
  ],
  [
    { code: 'EACCES', port: 80 },
    'This user is not allowed to listen on port 80. Choose a port above 1023 with --port.'
  ],
  [
    { code: 'EADDRNOTAVAIL', address: '192.0.2.1' },
    '192.0.2.1 is not an address of this machine. Choose a different host with --host, or remove --host.'
  ],
  [
    { code: 'EADDRNOTAVAIL', address: '192.0.2.1', listener: 'metrics' },
    '192.0.2.1 is not an address of this machine. Choose a different host with --metrics-address, or remove --metrics-address.'
  ],
  [
    { code: 'EADDRINUSE', port: 4181, listener: 'forwardAuth' },
    'Port 4181 is in use by another program. Stop that program, or choose a different port with --forward-auth-address.'
  ],
  [
    { code: 'ENOTFOUND' },
    'The host to listen on cannot be resolved. Choose a different host with --host, or remove --host.'
  ],
  [{ code: 'ENOMEM' }, 'The server could not start: out of luck']
]

for (const [fields, message] of faults) {
  test(`a listen error is explained in one sentence: ${message}`, t => {
    t.is(listenError(Object.assign(new Error('out of luck'), fields)).message, message)
  })
}

test('an unexpected error is reported in one sentence', async t => {
  const cwd = `${await tempFolder(t)}/gone`
  const { code, errors } = await run(t, ['init', '--yes'], { cwd })
  t.is(code, 1)
  t.regex(errors, /^platform-auth-server failed: ENOENT: .*\n$/)
})
