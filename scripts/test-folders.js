// The test files of one folder share a process, because starting AVA and loading the server takes longer than the tests of
// most files. For each folder this writes a module to dist-test/folders/ that imports its test files.
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'

// These files keep a process to themselves. They replace functions for all of their tests, they measure its memory, they block it for so
// long that time limits in other tests would pass, or they test such time limits themselves.
const ALONE = new RegExp(
  `^(${[
    'architecture',
    'fuzz',
    'whole-run',
    'base/expiring-map',
    'bench/.*',
    'pages/client',
    'provider/(client|private-key-jwt|slow-provider|transport)',
    'proxy/attack',
    'server',
    'sessions/(cells|forward-auth|model|ready|redis-unavailable|reply-limit|sessions-in-redis)',
    'simulation/.*'
  ].join('|')})\\.test\\.js$`
)

/** Returns the paths of the modules that AVA has to run, so that every test file runs once. */
export function testFolders() {
  rmSync('dist-test/folders', { recursive: true, force: true })
  mkdirSync('dist-test/folders')
  const files = readdirSync('dist-test', { recursive: true })
    .map(path => path.replaceAll('\\', '/'))
    .filter(path => path.endsWith('.test.js') && !path.startsWith('real/rehearsal/'))
    .sort()
  const shared = files.filter(file => !ALONE.test(file))
  const folders = [...new Set(shared.map(file => dirname(file)))]
  const modules = folders.map(folder => {
    const module = `dist-test/folders/${folder === '.' ? 'top' : folder.replaceAll('/', '-')}.test.js`
    const imports = ['helpers/turns.js', ...shared.filter(file => dirname(file) === folder)]
    writeFileSync(module, imports.map(path => `import '../${path}'\n`).join(''))
    return module
  })
  return [...modules, ...files.filter(file => ALONE.test(file)).map(file => `dist-test/${file}`)]
}
