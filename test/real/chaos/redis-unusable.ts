// Redis cannot be used for longer than a request waits for it, and two processes get requests for each session.
import { setTimeout as pause } from 'node:timers/promises'
import { freePort } from '../../helpers/ports.js'
import { createGate } from './gate.js'
import type { Report } from './report.js'
import type { Mode, Stage } from './stage.js'
import type { TcpProxy } from './tcp-proxy.js'
import { trial } from './trial.js'

interface Trouble {
  readonly name: string
  begin(stage: Stage): Promise<void>
  end(stage: Stage): Promise<void>
}

const disturb = (name: string, act: (proxy: TcpProxy) => void): Trouble => ({
  name,
  async begin({ redisProxies }) {
    for (const proxy of redisProxies) act(proxy)
  },
  async end({ redisProxies }) {
    for (const proxy of redisProxies) proxy.mend()
  }
})

export const unusableRedis = {
  down: {
    name: 'is down',
    begin: async ({ redis }) => redis?.kill(),
    end: async ({ redis }) => redis?.restart()
  },
  silent: disturb('is silent, connections stay open', proxy => proxy.hold()),
  'read-only': {
    name: 'is read-only',
    async begin({ redis }) {
      await redis?.admin.replicaof('127.0.0.1', await freePort())
    },
    async end({ redis }) {
      await redis?.admin.replicaof('NO', 'ONE')
    }
  },
  'slow-300': disturb('answers after 300 ms', proxy => proxy.delay(300)),
  'slow-700': disturb('answers after 700 ms', proxy => proxy.delay(700))
} satisfies Record<string, Trouble>

export interface RedisUnusableOptions {
  readonly mode: Mode
  readonly kind: keyof typeof unusableRedis
}

// Longer than a request waits for Redis.
const BEFORE_MS = 6000
const ANSWER_MS = 300
const AFTER_MS = 2000

export function redisUnusable(report: Report, { mode, kind }: RedisUnusableOptions): Promise<void> {
  const trouble: Trouble = unusableRedis[kind]
  const options = { failure: `Redis ${trouble.name}`, mode, logins: 10, hasRedisProxies: true }
  return trial(report, options, async ({ stage, logins }) => {
    await trouble.begin(stage)
    await pause(BEFORE_MS)
    const gate = createGate()
    stage.provider.follow(gate.behaviour)
    const asked = [logins.askEach(0), logins.askEach(1)]
    await pause(ANSWER_MS)
    gate.open()
    await Promise.all(asked)
    await pause(AFTER_MS)
    await trouble.end(stage)
  })
}
