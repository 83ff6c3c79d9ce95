import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import test from 'ava'
import { parseRedisUrl, type RedisUrl } from '#src/config/types/redis-url.js'
import { openRedisClient } from '#src/sessions/redis/redis-client.js'
import { tlsOptions } from '#src/sessions/redis/redis-tls.js'
import { selfSignedCertificate } from '../helpers/certificate.js'
import { eventually } from '../helpers/eventually.js'
import { testWithRedis } from '../helpers/redis.js'
import { startRedisWithTls } from '../helpers/redis-topologies.js'
import { tempFolder } from '../helpers/temp-folder.js'

test('each connection reads the certificates again, and a file that is missing for a moment keeps its last content', async t => {
  const folder = await tempFolder(t, { 'a.pem': 'first' })
  const certFile = join(folder, 'a.pem')
  const options = tlsOptions({ certFile })
  t.deepEqual({ ...options }, { ca: undefined, cert: 'first', key: undefined })
  await writeFile(certFile, 'second')
  t.is({ ...options }.cert, 'second')
  await rm(certFile)
  t.is({ ...options }.cert, 'second')
  t.throws(() => tlsOptions({ certFile }), { code: 'ENOENT' })
})

testWithRedis('a client sends the client certificate, and uses a renewed one when it connects again', async t => {
  const renewed = selfSignedCertificate({ host: 'renewed' })
  const redis = await startRedisWithTls(t, { trusted: [renewed.cert] })
  const stranger = selfSignedCertificate({ host: 'stranger' })
  const folder = await tempFolder(t, { 'client.pem': stranger.cert, 'client.key': stranger.key })
  const [certFile, keyFile] = [join(folder, 'client.pem'), join(folder, 'client.key')]
  let isReady = false
  let errors = 0
  const events = {
    channels: ['channel'],
    onReady() {},
    onSubscribed() {
      isReady = true
    },
    onLost: () => errors++,
    onError() {},
    onMessage() {}
  }
  const address = parseRedisUrl(redis.url) as RedisUrl
  const client = await openRedisClient(address, events, { caFile: redis.certificate, certFile, keyFile })
  t.teardown(() => client.close())
  await eventually(() => errors >= 2)
  t.false(isReady)
  await Promise.all([writeFile(certFile, renewed.cert), writeFile(keyFile, renewed.key)])
  await eventually(() => isReady)
  await eventually(() =>
    client.commands.publish('channel', '').then(
      () => true,
      () => false
    )
  )
  t.pass()
})
