import test from 'ava'
import { checkValue } from '#src/config/check-value.js'
import { run } from './shell.js'

test('secret prints a different session secret each time, and the server accepts it', async t => {
  const [one, other] = [await run(t, ['secret']), await run(t, ['secret'])]
  t.is(one.code, 0)
  t.regex(one.output, /^[A-Za-z0-9_-]{64}\n$/)
  t.not(one.output, other.output)
  t.deepEqual(checkValue('session.secret', one.output.trim()), { value: one.output.trim() })
})
