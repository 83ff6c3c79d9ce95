// These tests rehearse a deployment with real processes. They cover the packed package, the steps of the container, replicas
// behind nginx, and the rotation of secrets.
export default {
  workerThreads: false,
  files: ['dist-test/real/rehearsal/**/*.test.js'],
  timeout: '5m'
}
