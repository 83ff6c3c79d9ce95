import test from 'ava'
import { readText } from '../helpers/repository.js'
import { settingsFrom } from './settings.js'

test("the documented --stop-timeout for docker is longer than the server's shutdown", async t => {
  const given = {
    PLATFORM_CLIENT_ID: 'a-client',
    PLATFORM_CALLBACK_URL: 'https://app.example.com/api/auth/callback',
    PLATFORM_CLIENT_SECRET_FILE: '/run/secrets/client_secret',
    SERVER_SESSION_SECRET_FILE: '/run/secrets/session_secret'
  }
  const { delaySeconds, graceSeconds } = (await settingsFrom(t, given)).config.shutdown
  for (const file of ['deploy/Dockerfile', 'docs/deployment.md']) {
    const [, seconds] = /--stop-timeout (\d+)/.exec(readText(file)) ?? []
    t.true(Number(seconds) > delaySeconds + graceSeconds, file)
  }
})

test('both stages of the image use the base image NODE_IMAGE, which a build can pin by its digest', t => {
  const dockerfile = readText('deploy/Dockerfile')
  const bases = [...dockerfile.matchAll(/^FROM (\S+)/gm)].map(([, base]) => base)
  t.deepEqual(bases, Array(2).fill('$' + '{NODE_IMAGE}'))
  const [, image = ''] = /^ARG NODE_IMAGE=(\S+)$/m.exec(dockerfile) ?? []
  t.true(dockerfile.includes(`--build-arg NODE_IMAGE=${image}@sha256:`))
})
