import { availableParallelism } from 'node:os'
import { testFolders } from './scripts/test-folders.js'

// The folders with browsers, Redis or time limits take longest. They start first. Otherwise they would still run after all
// others have ended.
const LONGEST = [/browser/, /limits/, /model/, /sessions/, /fuzz/, /whole-run/, /web-every-request/, /docs/]
const rank = file => {
  const index = LONGEST.findIndex(pattern => pattern.test(file))
  return index === -1 ? LONGEST.length : index
}

const folders = testFolders()
const { TEST_TIMES } = process.env
const namesFiles = process.argv.some(argument => argument.includes('dist-test/'))

// `npm run test:build` compiles the tests from TypeScript to dist-test/. They import the compiled server as `#src/...`.
// `npm run test:deploy` runs the rehearsals, which start real processes and put load on them.
// With worker threads, the tests of a file did not end in about one of eight runs (Node 20).
export default {
  workerThreads: false,
  // Files that are named on the command line, and files whose times are measured, each have their own process.
  files: TEST_TIMES
    ? ['dist-test/**/*.test.js', '!dist-test/{real/rehearsal,folders}/**']
    : namesFiles
      ? ['dist-test/**/*.test.js', '!dist-test/real/rehearsal/**']
      : folders,
  // Many tests wait for a part of their time, so more processes than processors run at the same time.
  concurrency: 3 * availableParallelism(),
  sortTestFiles: (a, b) => rank(a) - rank(b) || (a < b ? -1 : 1),
  timeout: '2m',
  require: TEST_TIMES ? ['./scripts/test-times.js'] : []
}
