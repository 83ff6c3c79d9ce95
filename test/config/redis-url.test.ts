import test from 'ava'
import { parseRedisUrl, redisUrl } from '#src/config/types/redis-url.js'
import { assertCases } from '../helpers/case-file.js'
import { testSituations } from './messages.js'

test('a Redis URL has these parts', t =>
  assertCases(t, 'test/config/redis-urls.txt', url => {
    const { text: _, ...parts } = parseRedisUrl(url) ?? { text: url }
    const secret = redisUrl.containsSecret?.(url) ? 'a secret' : 'no secret'
    return 'hosts' in parts ? `${secret} ${JSON.stringify(parts)}` : 'refused'
  }))

testSituations('redis-url')
