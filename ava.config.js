// The tests are TypeScript, compiled to dist-test/ by `npm run test:build`; they import the built server as `#src/...`.
export default {
  files: ['dist-test/**/*.test.js'],
  timeout: '2m'
}
