import test from 'ava'
import { TURN_LIMITS } from '#src/proxy/turns.js'
import { CLIENT_LIMITS } from '#src/server.js'
import { readText } from '../helpers/repository.js'

test('SECURITY.md has the limits of the proxy that the server uses', async t => {
  const text = await readText('SECURITY.md')
  const { waitingForHead, reserved, ofOneHost, ofOneSession, ofOneUser, ofProcess, queued } = TURN_LIMITS
  const { requestTimeout, minBodyBytesPerSecond } = CLIENT_LIMITS
  const rows: readonly (readonly [limit: string, value: string])[] = [
    ['requests in progress of one session', `${ofOneSession}`],
    ['requests in progress of all sessions of one user', `${ofOneUser}`],
    ['requests to one upstream whose body was sent and whose response has not begun', `${waitingForHead}`],
    [`slots among these ${waitingForHead} of which each user can have only one`, `${reserved}`],
    ['requests in progress to one upstream, and connections to it', ofOneHost.toLocaleString('en')],
    ['requests in progress in one process', ofProcess.toLocaleString('en')],
    ['requests in the queue of one upstream', `${queued}`],
    [
      'time for a request body',
      `${requestTimeout / 1000} seconds, and then at least ${minBodyBytesPerSecond / 1000} kB/s on average`
    ]
  ]
  for (const [limit, value] of rows) t.true(text.includes(`| ${limit} | ${value} |`), `${limit}: ${value}`)
})
