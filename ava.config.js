// The tests are TypeScript, compiled to dist-test/ by `npm run test:build`; they import the built server as `#src/...`.
// Rehearsals, with processes and a load of their own, are run by `npm run test:deploy`.
// A process for each file: in threads, about one run in eight, the tests of some file never ended (seen on Node 20).
export default {
  workerThreads: false,
  files: ['dist-test/**/*.test.js', '!dist-test/rehearsal/**'],
  timeout: '2m'
}
