// The test files of one folder share a process, because starting AVA and loading the server takes longer than the tests of
// most files. Small folders share one as well. For each process this writes a module to dist-test/folders/ that imports its test files.
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'

// These files keep a process to themselves. They replace functions for all of their tests, they measure its memory, or they block it for
// so long that time limits in other tests would pass.
const ALONE = /^(fuzz|whole-run|provider\/client|sessions\/reply-limit)\.test\.js$/

/** The modules of files that do not share a process with the rest of their folder, and of folders that share one. */
const MODULES = [
  // These files test time limits, which would pass beside tests that keep the process busy.
  ['limits', /^(server|provider\/(slow-provider|transport))\.test\.js$/],
  ['limits', /^sessions\/(cells|forward-auth|ready|redis-unavailable|sessions-in-redis)\.test\.js$/],
  // They block the process for seconds, and move clocks of their own.
  ['model', /^(sessions\/model|simulation\/simulation)\.test\.js$/],
  // The first one blocks the process before the second one measures its memory.
  ['attack', /^proxy\/(attack|memory)\.test\.js$/],
  // They use the list of the packed files, which npm makes in a second.
  ['docs', /^(docs|packaging|deploy)\//],
  ['cli', /^cli\//],
  ['settings', /^(config|login|provider)\//],
  ['web-routes', /^web\/(errors|request|routes|static)\//],
  ['small', /^([^/]+$|(base|bench|cookie|demo|examples|forward-auth|pages|real|testing)\/)/]
]

function moduleOf(file) {
  const [name] = MODULES.find(([, pattern]) => pattern.test(file)) ?? [dirname(file).replaceAll('/', '-')]
  return name
}

/** Returns the paths of the modules that AVA has to run, so that every test file runs once. */
export function testFolders() {
  rmSync('dist-test/folders', { recursive: true, force: true })
  mkdirSync('dist-test/folders')
  const files = readdirSync('dist-test', { recursive: true })
    .map(path => path.replaceAll('\\', '/'))
    .filter(path => path.endsWith('.test.js') && !path.startsWith('real/rehearsal/'))
    .sort()
  const shared = files.filter(file => !ALONE.test(file))
  const modules = [...new Set(shared.map(moduleOf))].map(name => {
    const module = `dist-test/folders/${name}.test.js`
    const imports = ['helpers/turns.js', ...shared.filter(file => moduleOf(file) === name)]
    writeFileSync(module, imports.map(path => `import '../${path}'\n`).join(''))
    return module
  })
  return [...modules, ...files.filter(file => ALONE.test(file)).map(file => `dist-test/${file}`)]
}
