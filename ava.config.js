// The tests are TypeScript, compiled to dist-test/ by `npm run test:build`; they import the built server as `#src/...`.
// Rehearsals, with processes and a load of their own, are run by `npm run test:deploy`.
export default {
  files: ['dist-test/**/*.test.js', '!dist-test/rehearsal/**'],
  timeout: '2m'
}
