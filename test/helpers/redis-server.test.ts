import { execFile } from 'node:child_process'
import { createServer } from 'node:net'
import { promisify } from 'node:util'
import test from 'ava'
import { freePort, listen } from './ports.js'
import { startRedis, testWithRedis } from './redis.js'

const helper = new URL('./ports.js', import.meta.url)

test('two processes that run at the same time get different ports', async t => {
  const program = `
    const { freePort } = await import(${JSON.stringify(helper)})
    for (let n = 0; n < 600; n++) console.log(await freePort())`
  const own = new Set<number>()
  for (let n = 0; n < 600; n++) own.add(await freePort())
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program])
  const others = stdout.trim().split('\n').map(Number)
  t.is(others.length, 600)
  t.deepEqual(
    others.filter(port => own.has(port)),
    []
  )
})

testWithRedis('startRedis() tries other ports if one of its ports has been taken', async t => {
  const ports = [await listen(t, createServer()), await freePort()]
  const asked: number[] = []
  const redis = await startRedis(t, async () => {
    const port = ports[asked.length] as number
    asked.push(port)
    return ['--cluster-enabled', 'yes', '--cluster-port', String(port)]
  })
  t.deepEqual(asked, ports)
  t.is(await redis.admin.ping(), 'PONG')
})

testWithRedis('startRedis() reports every other reason why Redis could not start', async t => {
  await t.throwsAsync(startRedis(t, ['--no-such-setting', 'yes']), { message: /^redis-server ended with 1/ })
})
