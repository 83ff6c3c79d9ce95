import { parseRedisUrl, redisUrl } from '#src/config/types/redis-url.js'
import { testLines } from '../helpers/golden.js'
import { testSituations } from './messages.js'

testLines('test/config/redis-urls.txt', (_t, _title, url) => {
  const { text: _, ...parts } = parseRedisUrl(url) ?? { text: url }
  const secret = redisUrl.containsSecret?.(url) ? 'a secret' : 'no secret'
  return 'hosts' in parts ? `${secret} ${JSON.stringify(parts)}` : 'refused'
})

testSituations('redis-url')
