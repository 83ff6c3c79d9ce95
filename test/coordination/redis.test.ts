import { setTimeout as pause } from 'node:timers/promises'
import { startRedis, testWithRedis } from '../helpers/redis.js'
import { coordinationContract } from './contract.js'
import { startReplicas } from './replicas.js'

coordinationContract(
  'redis',
  async t => {
    const redis = await startRedis(t)
    return { replicas: await startReplicas(t, redis.url), pass: ms => pause(ms) }
  },
  testWithRedis
)
