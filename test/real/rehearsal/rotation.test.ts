import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { ExecutionContext } from 'ava'
import { isWarning } from '../../helpers/logs.js'
import { hasRedis } from '../../helpers/redis-server.js'
import { testWhere } from '../../helpers/requirement.js'
import { tempFolder } from '../../helpers/temp-folder.js'
import { hasNginx } from '../gateways/gateways.js'
import { letIn } from './crowd.js'
import { deploy } from './deployment.js'

// Follows the steps for new secrets in docs/run/secrets.md while users use the application.

const oldSecret = 'aVq7Zx81Qw7Lp3Vn5Rt9cTb4YhUj2MnBv'
const newSecret = 'pLk9Kd62Hy4Mb8Jf0Gs1eRw3XzQoTiUy'

async function startRotating(t: ExecutionContext) {
  // The client secrets that the provider accepts.
  const clientSecrets = new Set(['gH5tR2wQ8zXc7VbN'])
  const folder = await tempFolder(t, { 'session-secret': oldSecret, previous: '', client: [...clientSecrets].join() })
  const deployment = await deploy(t, {
    isClientSecret: presented => clientSecrets.has(presented),
    env: {
      SERVER_SESSION_SECRET: '',
      PLATFORM_CLIENT_SECRET: '',
      SERVER_SESSION_SECRET_FILE: join(folder, 'session-secret'),
      SERVER_SESSION_PREVIOUS_SECRETS_FILE: join(folder, 'previous'),
      PLATFORM_CLIENT_SECRET_FILE: join(folder, 'client')
    }
  })
  const { newBrowser, replicas } = deployment
  const crowd = await letIn(Array.from({ length: 15 }, newBrowser), newBrowser())
  // On a busy machine, a replica that starts may warn that it is not connected to Redis yet.
  const linesBefore = replicas.map(({ lines }) => lines.length)
  let rotations = 0
  return {
    ...deployment,
    crowd,
    clientSecrets,
    /** What the replicas have logged since they were ready. */
    linesSince: () => replicas.flatMap(({ lines }, index) => lines.slice(linesBefore[index])),
    /** Writes each secret to its file and makes every replica read its secrets again. */
    async rotate(files: Readonly<Record<string, string>>) {
      for (const [name, secret] of Object.entries(files)) await writeFile(join(folder, name), `${secret}\n`)
      rotations += 1
      // One replica after the other, so the replicas have different secrets for a while.
      for (const replica of replicas) {
        replica.signal('SIGHUP')
        await replica.logged('secrets_reloaded', rotations)
        await pause(200)
      }
    }
  }
}

async function assertNoUserNoticed(
  t: ExecutionContext,
  { crowd, idp, linesSince }: Awaited<ReturnType<typeof startRotating>>
) {
  await crowd.leaveUnnoticed(t)
  t.deepEqual(idp.reuses, [])
  t.deepEqual(linesSince().filter(isWarning), [])
}

const test = testWhere(hasNginx && hasRedis, 'nginx or redis-server is not installed')

test('a new session secret, loaded with SIGHUP under load, logs no user out', async t => {
  const deployment = await startRotating(t)
  const { crowd, rotate } = deployment
  await rotate({ previous: newSecret })
  await rotate({ 'session-secret': newSecret, previous: oldSecret })
  await crowd.everyoneRefreshed()
  await rotate({ previous: '' })
  await crowd.everyoneRefreshed()
  await assertNoUserNoticed(t, deployment)
})

test('a new client secret, loaded with SIGHUP under load, logs no user out', async t => {
  const deployment = await startRotating(t)
  const { crowd, rotate, clientSecrets, idp } = deployment
  const [old = ''] = clientSecrets
  const fresh = 'kT3nB7vY1xQp9LsD'
  clientSecrets.add(fresh)
  await rotate({ client: fresh })
  // Requests in progress may still use the old secret.
  await crowd.everyoneRefreshed()
  clientSecrets.delete(old)
  const before = idp.tokenRequests.length
  await crowd.everyoneRefreshed()
  t.true(idp.tokenRequests.length > before)
  await assertNoUserNoticed(t, deployment)
})
