// Closes the client of a Redis cluster while it reads the slots of the cluster. The process then has to end by itself.
import type { Cluster } from 'ioredis'
import { parseRedisUrl, type RedisUrl } from '#src/config/types/redis-url.js'
import { openRedisClient } from '#src/sessions/redis/redis-client.js'

const nothing = () => {}
const events = { channels: ['channel'], onReady: nothing, onLost: nothing, onError: nothing, onMessage: nothing }
const { commands, close } = await openRedisClient(parseRedisUrl(process.argv[2] ?? '') as RedisUrl, events)
const cluster = commands as Cluster
cluster.once('ready', () => {
  const read = cluster.refreshSlotsCache
  cluster.refreshSlotsCache = callback => {
    cluster.refreshSlotsCache = read
    cluster.refreshSlotsCache(callback)
    void close()
  }
})
