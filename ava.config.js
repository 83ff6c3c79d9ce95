// The tests are TypeScript, compiled to dist-test/ by `npm run test:build`; they import the built server as `#src/...`.
// Rehearsals, with processes and a load of their own, are run by `npm run test:deploy`.
// A process for each file: in threads, about one run in eight, the tests of some file never ended (seen on Node 20).
import { availableParallelism } from 'node:os'

// The files that wait for browsers, for Redis or for time limits take longest. They start first, so that none of them is
// still running when all others have ended.
const longest = [/browser\//, /fuzz/, /whole-run/, /coordination\/redis-/, /body-timeout/, /demo\//]
const rank = file => longest.findIndex(pattern => pattern.test(file)) >>> 0

export default {
  workerThreads: false,
  files: ['dist-test/**/*.test.js', '!dist-test/rehearsal/**'],
  // Many files wait more than they compute.
  concurrency: Math.ceil(1.5 * availableParallelism()),
  sortTestFiles: (a, b) => rank(a) - rank(b) || (a < b ? -1 : 1),
  timeout: '2m'
}
