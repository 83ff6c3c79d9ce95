import { availableParallelism } from 'node:os'

// The files that wait for browsers, for Redis or for time limits take longest. They start first. Otherwise they would still
// run after all other files have ended.
const LONGEST = [/browser\//, /simulation/, /fuzz/, /whole-run/, /store\/redis-/, /body-timeout/, /demo\//]
const rank = file => {
  const index = LONGEST.findIndex(pattern => pattern.test(file))
  return index === -1 ? LONGEST.length : index
}

// `npm run test:build` compiles the tests from TypeScript to dist-test/. They import the compiled server as `#src/...`.
// `npm run test:deploy` runs the rehearsals, which start real processes and put load on them.
// Each test file has its own process. With worker threads, the tests of a file did not end in about one of eight runs (Node 20).
export default {
  workerThreads: false,
  files: ['dist-test/**/*.test.js', '!dist-test/real/rehearsal/**'],
  // Many test files wait for a part of their time, so more files than processors run at the same time.
  concurrency: 3 * availableParallelism(),
  sortTestFiles: (a, b) => rank(a) - rank(b) || (a < b ? -1 : 1),
  timeout: '2m'
}
