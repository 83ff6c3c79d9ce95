// A database that Redis does not have, or that the user may not select. ioredis itself would continue in database 0.
import { parseRedisUrl, type RedisUrl } from '#src/config/types/redis-url.js'
import { RedisDatabaseError, requireDatabase } from '#src/sessions/index.js'
import { openRedisClient } from '#src/sessions/redis/redis-client.js'
import { eventually } from '../helpers/eventually.js'
import { startRedis, serialTestWithRedis as test } from '../helpers/redis.js'
import { startTestServer } from '../helpers/server.js'

const noTls = { caFile: undefined, certFile: undefined, keyFile: undefined, serverName: undefined }
const settingsFor = (url: string) => ({ redis: { url: parseRedisUrl(url), ...noTls } })

test('a server does not start if Redis refuses its database', async t => {
  const { url, admin, port } = await startRedis(t)
  await t.throwsAsync(startTestServer(t, { settings: { redis: { url: `${url}/16` } } }), {
    instanceOf: RedisDatabaseError,
    message: /database 16 of redis\.url \(ERR\)\. Choose a lower database number/
  })
  await admin.acl('SETUSER', 'little', 'on', '>pass', '~*', '&*', '+@all', '-select')
  await t.throwsAsync(requireDatabase(settingsFor(`redis://little:pass@127.0.0.1:${port}/1`)), {
    message: /database 1 of redis\.url \(NOPERM\)\. Give the user of redis\.url the right \+select/
  })
  t.is(await admin.dbsize(), 0)
})

test('a server starts if its database exists, if Redis requires a password, or if Redis cannot be reached', async t => {
  const { url, admin } = await startRedis(t)
  await t.notThrowsAsync(requireDatabase(settingsFor(`${url}/15`)))
  await eventually(async () => !/platform-auth-server/.test(String(await admin.client('LIST'))))
  const withPassword = await startRedis(t, ['--requirepass', 'hunter2'])
  await t.notThrowsAsync(requireDatabase(settingsFor(`${withPassword.url}/1`)))
  await t.notThrowsAsync(requireDatabase(settingsFor('redis://127.0.0.1:1/1')))
})

test('a client whose database is refused later sends no command, and connects again', async t => {
  const { url, admin } = await startRedis(t)
  const errors: Error[] = []
  let losses = 0
  const events = {
    channels: [],
    onReady() {},
    onLost: () => losses++,
    onError: (error: Error) => errors.push(error),
    onMessage() {}
  }
  const client = await openRedisClient(parseRedisUrl(`${url}/16`) as RedisUrl, events)
  t.teardown(() => client.close())
  let sent = 0
  await eventually(async () => {
    await client.commands.publish('channel', '').then(
      () => sent++,
      () => {}
    )
    return losses >= 3
  })
  t.is(sent, 0)
  t.true(errors.some(({ message }) => message === 'ERR DB index is out of range'))
  t.is(await admin.dbsize(), 0)
})
