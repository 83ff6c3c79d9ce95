import test from 'ava'
import { commands } from '#src/cli/commands/index.js'
import { settingOptions } from '#src/cli/options.js'
import { flagName, settingKeys, settingOf } from '#src/config/settings.js'
import { CLIENT_LIMITS } from '#src/web/every-request/connections.js'
import { QUEUE_LIMITS } from '#src/web/proxy/forward.js'
import { codeSpans, fencedLines } from '../helpers/markdown.js'
import { filesBelow, readText, readYaml, textBelow } from '../helpers/repository.js'

// The documents name settings, flags, messages and limits of the code. These tests fail if a name exists only in the
// documents.

const texts = ['README.md', 'SECURITY.md', ...filesBelow('docs', 'deploy').filter(path => !path.endsWith('.svg'))]
const markdown = texts.filter(path => path.endsWith('.md'))

const variables = new Set(
  settingKeys.flatMap(key => {
    const { env, tutorialEnv, secret } = settingOf(key)
    const names = tutorialEnv ? [env, tutorialEnv] : [env]
    return secret ? names.flatMap(name => [name, `${name}_FILE`]) : names
  })
)

for (const path of texts) {
  test(`every environment variable that ${path} names belongs to a setting`, t => {
    const names =
      readText(path).match(/\b(PLATFORM|SERVER_SESSION|INTERNAL_TOKEN|PUBLIC_TOKEN|REDIS|LOG|APS)_[A-Z_]*[A-Z]\b/g) ??
      []
    const unknown = names.filter(name => !variables.has(name))
    t.deepEqual(unknown, [])
  })
}

// The chart has values of its own, such as wwwroot.image.
const [chart] = readYaml('deploy/helm/values.yaml') as [Record<string, unknown>]
const chartValues = Object.entries(chart).flatMap(([group, members]) =>
  Object.keys((members ?? {}) as object).map(name => `${group}.${name}`)
)

const groups = new Set(settingKeys.filter(key => key.includes('.')).map(key => key.split('.', 1).join('')))

for (const path of texts) {
  test(`every setting that ${path} names by its key exists`, t => {
    const text = readText(path)
    // In Markdown the names are in backticks, in other files they are in comments.
    const prose = path.endsWith('.md') ? codeSpans(text) : (text.match(/#.*$/gm) ?? [])
    const keys = prose.join('\n').match(/(?<![\w./@-])[a-zA-Z]+\.[a-z]\w*(?![\w/.-])/g) ?? []
    t.deepEqual(
      // The configuration file of Redis is no setting.
      keys.filter(
        key =>
          key !== 'redis.conf' &&
          groups.has(key.split('.', 1).join('')) &&
          !settingKeys.some(known => known === key) &&
          !chartValues.includes(key)
      ),
      []
    )
  })
}

const program = 'platform-auth-server'
const flags = new Set(
  settingOptions()
    .map(({ long }) => long ?? '')
    .concat(commands.flatMap(({ options }) => options.map(({ flags }) => flagName(flags))))
    .concat('--help', '--version')
)
const words = new Set(commands.map(({ name }) => name))

for (const path of markdown) {
  test(`every command line in ${path} has a command and flags that exist`, t => {
    const text = readText(path)
    const lines = [...fencedLines(text, 'sh'), ...codeSpans(text)].filter(line => line.includes(`${program} `))
    for (const line of lines) {
      const [, after = ''] = line.split(new RegExp(`${program} +`), 2)
      const typed = after.replace(/#.*$/, '').trim().split(/ +/)
      const [command = ''] = typed
      if (/^[a-z]+$/.test(command)) t.true(words.has(command), `${line}: ${command} is no command`)
      // A lone `--` ends the flags of kubectl.
      for (const flag of typed.filter(word => /^--./.test(word))) t.true(flags.has(flag), `${line}: ${flag}`)
    }
    t.pass()
  })
}

test('the documents contain command lines, so the test of the commands can fail', t => {
  const all = markdown.flatMap(path => fencedLines(readText(path), 'sh'))
  t.true(all.filter(line => line.includes(`npx ${program}`)).length >= 5)
})

test('every message of check that docs/run/redis.md quotes is one that it prints', t => {
  const sources = readText('test/cli/check/check.txt')
  const messages = codeSpans(readText('docs/run/redis.md')).filter(span => /^[A-Z].* .*\.$/.test(span))
  t.true(messages.length > 6)
  // A message can contain a value, so only its beginning is compared.
  for (const message of messages) t.true(sources.includes(message.split(' ', 4).join(' ')), message)
})

// Messages of nginx that operators search for.
const ofNginx = ['Request Header Or Cookie Too Large', 'upstream sent too big header']

test('every message that docs/run/troubleshooting.md quotes is in the source code', t => {
  const sources = textBelow('src').replace(/\s+/g, ' ')
  const text = readText('docs/run/troubleshooting.md').replace(/\s+/g, ' ')
  const messages = [...text.matchAll(/"([^"]+)"/g)].map(([, message = '']) => message)
  t.true(messages.length > 3)
  for (const message of messages.filter(message => !ofNginx.includes(message)))
    t.true(sources.includes(message), message)
})

test('docs/reference/requests.md has the limits of the API proxy that the server uses', t => {
  const text = readText('docs/reference/requests.md')
  const { slots, reserved, ofOneQueue, ofOneSession, ofOneUser, inProgress, waiting } = QUEUE_LIMITS
  const { requestTimeout, minBodyBytesPerSecond } = CLIENT_LIMITS
  const rows: readonly (readonly [limit: string, value: string])[] = [
    ['requests in progress of one session', `${ofOneSession}`],
    ['requests in progress of all sessions of one user', `${ofOneUser}`],
    ['requests to one upstream whose body was sent and whose response has not begun', `${slots}`],
    [`slots among these ${slots} of which each user can have only one`, `${reserved}`],
    ['requests in progress to one upstream, and connections to it', ofOneQueue.toLocaleString('en')],
    ['requests in progress in one process', inProgress.toLocaleString('en')],
    ['requests in the queue of one upstream', `${waiting}`],
    [
      'time for a request body',
      `${requestTimeout / 1000} seconds, and then at least ${minBodyBytesPerSecond / 1000} kB/s on average`
    ]
  ]
  for (const [limit, value] of rows) t.true(text.includes(`| ${limit} | ${value} |`), `${limit}: ${value}`)
})
