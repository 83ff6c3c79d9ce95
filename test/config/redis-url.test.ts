import test from 'ava'
import { parseRedisUrl, redisUrl } from '#src/config/types/redis-url.js'
import { testMessages } from './messages.js'

const plain = {
  kind: 'single',
  masterName: undefined,
  sentinelUsername: undefined,
  sentinelPassword: undefined,
  tls: false,
  username: undefined,
  password: undefined,
  database: 0
} as const
const local = [{ host: 'localhost', port: 6379 }]

const accepted = {
  'redis://localhost': { ...plain, hosts: local },
  'rediss://localhost:6380/': { ...plain, tls: true, hosts: [{ host: 'localhost', port: 6380 }] },
  'redis://[::1]:7000/15': { ...plain, database: 15, hosts: [{ host: '::1', port: 7000 }] },
  'redis://:s%40cret:x@localhost': { ...plain, password: 's@cret:x', hosts: local },
  'redis://who:50%@localhost': { ...plain, username: 'who', password: '50%', hosts: local },
  'redis://a:7000,b,c:7002': {
    ...plain,
    kind: 'cluster',
    hosts: [
      { host: 'a', port: 7000 },
      { host: 'b', port: 6379 },
      { host: 'c', port: 7002 }
    ]
  },
  'rediss://entrance.example:6379?cluster': {
    ...plain,
    kind: 'cluster',
    tls: true,
    hosts: [{ host: 'entrance.example', port: 6379 }]
  },
  'redis://who:pw@a,b:5000/2?sentinel=main&sentinelPassword=x': {
    ...plain,
    kind: 'sentinel',
    username: 'who',
    password: 'pw',
    database: 2,
    masterName: 'main',
    sentinelPassword: 'x',
    hosts: [
      { host: 'a', port: 26379 },
      { host: 'b', port: 5000 }
    ]
  }
}

for (const [text, parts] of Object.entries(accepted)) {
  test(`${text} is parsed`, t => t.deepEqual(parseRedisUrl(text), { text, ...parts }))
}

const refused = {
  'another scheme': 'http://localhost',
  'no host': 'redis:///0',
  'an empty host among several': 'redis://a,,b',
  'port 0': 'redis://localhost:0',
  'a port above 65535': 'redis://localhost:65536',
  'a database that is not a number': 'redis://localhost/main',
  'a database number and several hosts': 'redis://a,b/1',
  'both a sentinel and a cluster': 'redis://a,b?sentinel=main&cluster',
  'an empty sentinel name': 'redis://a,b?sentinel=',
  'an unknown option': 'redis://localhost?enableOfflineQueue=true',
  'a fragment': 'redis://localhost#0',
  'white space': 'redis://local host'
}

for (const [what, text] of Object.entries(refused)) {
  test(`a Redis URL with ${what} is refused`, t => t.is(parseRedisUrl(text), undefined))
}

testMessages(
  'redis-url',
  Object.fromEntries(
    [
      'redis://user:hunter/2@localhost',
      'redis://user:123/4@localhost',
      'redis://user:hunter?2@localhost',
      'redis://user:hunter#2@localhost:6379/0',
      'redis://hun@ter?2@localhost',
      'redis://localhost?db=2',
      'redis://localhost?tls&family=4',
      'redis://:hunter2@a,b?tls&family=4',
      'redis://a,b?sentinel=main&sentinelPassword=hun&hunter2',
      'redis://a,b?sentinel=main&sentinel%50assword=hun&hunter2',
      'redis://a,b?sentinel=main&SentinelPasswort=hun&hunter2',
      'redis://a,b?hunter2&sentinel=main&sentinelPassword=hun',
      'redis://:hunter?hunter2',
      'unix:///var/run/redis.sock',
      'redis+unix:///var/run/redis.sock',
      'http://localhost',
      'redis://localhost/main'
    ].map(url => [url, { env: { REDIS_URL: url } }])
  )
)

test('only a URL with a password, or with one in its parameters, counts as a secret', t => {
  const secrets = Object.keys(accepted).filter(url => redisUrl.containsSecret?.(url))
  t.deepEqual(
    secrets,
    Object.keys(accepted).filter(url => url.includes('@'))
  )
  t.true(redisUrl.containsSecret?.('redis://a?sentinel=main&sentinel%50assword=x'))
})
