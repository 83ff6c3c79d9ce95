import test from 'ava'
import { loadConfig } from '#src/config/load.js'
import { repository } from '../helpers/repository.js'

const env = {
  PLATFORM_CLIENT_ID: 'client',
  PLATFORM_CLIENT_SECRET: 'Rk81mZqPw0',
  SERVER_SESSION_SECRET: 'wG4vT9qLx2ZbN7rKp5YcJ8sHd3MfA6eU'
}

test('the settings of the viewer examples are valid with a client id and secrets, and rules allow only derivative paths', async t => {
  const withToken = await loadConfig({ cwd: `${repository}examples/viewer`, env })
  t.is(withToken.config.mode, 'dual')
  const { config } = await loadConfig({ cwd: `${repository}examples/viewer-without-token`, env })
  t.true(config.proxy.routes.length > 0)
  for (const { text } of config.proxy.routes) t.regex(text, /^GET \/viewer-proxy\/\w*derivative\w*\/v2\//)
})
