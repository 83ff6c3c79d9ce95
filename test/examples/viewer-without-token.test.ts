import test from 'ava'
import { loadConfig } from '#src/config/load.js'
import { repository } from '../helpers/repository.js'

test('the settings of the viewer example are valid with a client id and secrets, and its rules allow only derivative paths', async t => {
  const { config } = await loadConfig({
    cwd: `${repository}examples/viewer-without-token`,
    env: {
      PLATFORM_CLIENT_ID: 'client',
      PLATFORM_CLIENT_SECRET: 'Rk81mZqPw0',
      SERVER_SESSION_SECRET: 'wG4vT9qLx2ZbN7rKp5YcJ8sHd3MfA6eU'
    }
  })
  t.true(config.proxy.routes.length > 0)
  for (const { text } of config.proxy.routes) t.regex(text, /^GET \/viewer-proxy\/\w*derivative\w*\/v2\//)
})
