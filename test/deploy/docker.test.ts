import test from 'ava'
import { fencedLines } from '../helpers/markdown.js'
import { packageJson, readText, textBelow } from '../helpers/repository.js'
import { secretFiles, settingsFrom } from './settings.js'

test("the documented --stop-timeout for docker is longer than the server's shutdown", async t => {
  const given = {
    PLATFORM_CLIENT_ID: 'a-client',
    PLATFORM_CALLBACK_URL: 'https://app.example.com/api/auth/callback',
    PLATFORM_CLIENT_SECRET_FILE: '/run/secrets/client-secret',
    SERVER_SESSION_SECRET_FILE: '/run/secrets/session-secret'
  }
  const { delaySeconds, graceSeconds } = (await settingsFrom(t, given)).config.shutdown
  for (const file of ['deploy/Dockerfile', 'docs/deploy/process.md']) {
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

test('the documented `docker run` line has valid settings, mounts its secrets and pages, and restricts the container', async t => {
  const lines = fencedLines(readText('docs/deploy/process.md').replace(/ *\\\n */g, ' '), 'sh')
  const [line = '', ...others] = lines.filter(one => one.startsWith('docker run '))
  t.deepEqual(others, [])
  const valuesOf = (flag: string) =>
    [...line.matchAll(new RegExp(` --${flag} (\\S+)`, 'g'))].map(([, value = '']) => value)
  const variables = Object.fromEntries(valuesOf('env').map(pair => pair.split('=', 2) as [string, string]))
  const { config, warnings } = await settingsFrom(t, { ...variables, PLATFORM_CLIENT_ID: 'a-client' })
  t.deepEqual(warnings, [])
  t.like(config.refresh, { beforeExpirySeconds: 120, jitterSeconds: 1500 })
  t.deepEqual(valuesOf('publish'), [`8080:${config.port}`])
  t.deepEqual(valuesOf('volume'), ['./secrets:/run/secrets:ro', './wwwroot:/app/wwwroot:ro'])
  for (const path of secretFiles(variables)) t.true(path.startsWith('/run/secrets/'), path)
  for (const flag of ['--read-only', '--cap-drop ALL', '--security-opt no-new-privileges', '--ulimit core=0']) {
    t.true(line.includes(` ${flag} `), flag)
  }
  t.true(line.endsWith(` platform-auth-server:${packageJson.version}`))
})

test('the image starts Node itself as process 1, as a user that Kubernetes can see is not root without a security context', t => {
  const [user, ...others] = [...readText('deploy/Dockerfile').matchAll(/^USER (.*)$/gm)].map(([, one]) => Number(one))
  t.true(user !== undefined && user > 0)
  t.deepEqual(others, [])
  const [, entrypoint = ''] = /^ENTRYPOINT (.*)$/m.exec(readText('deploy/Dockerfile')) ?? []
  t.deepEqual(JSON.parse(entrypoint), ['node', 'bin/platform-auth-server.js'])
  t.true(readText('docs/deploy/process.md').includes('`node bin/platform-auth-server.js`'))
})

test('the image contains the files that the program reads besides its compiled code', t => {
  const copied = [...readText('deploy/Dockerfile').matchAll(/^COPY .*\.\/(\S*)$/gm)].map(([, folder = '']) => folder)
  const read = [...textBelow('src').matchAll(/new URL\('(?:\.\.\/)+([^']+)', import\.meta\.url\)/g)].map(
    ([, path = '']) => path
  )
  t.true(read.length > 3)
  // package.json is copied by its name, and `..` is the folder of the package itself.
  for (const path of read.filter(one => one !== 'package.json' && one !== '..')) {
    t.true(
      copied.some(folder => folder !== '' && (path === folder || path.startsWith(`${folder}/`))),
      path
    )
  }
})
