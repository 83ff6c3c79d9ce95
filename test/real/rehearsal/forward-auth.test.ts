// The shipped nginx configuration for forward-auth, in front of a back end in Python.
import ava, { type ExecutionContext } from 'ava'
import { testWhere } from '../../helpers/requirement.js'
import { attempts, resultOf } from '../gateways/attempts.js'
import { hasPython } from '../gateways/back-end.js'
import { hasNginx, nginx, startNginx } from '../gateways/gateways.js'
import { startSite } from '../gateways/site.js'

const requirement = [hasNginx && hasPython, 'nginx or python3 is not installed'] as const
const test = testWhere(...requirement)
const serialTest = testWhere(...requirement, ava.serial)
const LOCATION_PATHS = ['/_forward_auth', '//_forward_auth', '/%5fforward_auth', '/x/../_forward_auth']

/** Starts a site whose nginx has another configuration than the shipped one. */
function startChangedSite(t: ExecutionContext, change: (configuration: string) => string) {
  return startSite(t, {
    async start(t, addresses) {
      const { url } = await startNginx(t, 'deploy/proxy/nginx-forward-auth.conf', addresses, change)
      return Number(new URL(url).port)
    }
  })
}

serialTest('nginx forwards, refuses and refreshes as every gateway does', async t => {
  t.timeout(240_000)
  for (const attempt of attempts) {
    const { result, expected } = await resultOf(nginx, attempt)
    t.is(result, expected, attempt.tried)
  }
})

test('no response of nginx contains the internal token, even if `internal` is missing', async t => {
  const { send, token } = await startChangedSite(t, text => text.replace('internal;', ''))
  const { statusCode, head } = await send({ target: '/_forward_auth' })
  t.is(statusCode, 200)
  t.false(head.includes(token()))
})

for (const target of ['http://forward_auth;', 'http://forward_auth/_forward_auth;']) {
  test(`if \`internal\` is missing and nginx forwards the path to ${target}, the server refuses the request and logs forward_auth_exposed`, async t => {
    const { send, logs } = await startChangedSite(t, text =>
      text.replace('internal;', '').replace('http://forward_auth/;', target)
    )
    for (const path of LOCATION_PATHS) t.is((await send({ target: path })).statusCode, 403, path)
    t.truthy(logs.first('forward_auth_exposed'))
  })
}
