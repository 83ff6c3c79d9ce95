// Deployments rehearsed with real processes: the packed package, the container's steps, replicas behind nginx, rotation.
export default {
  workerThreads: false,
  files: ['dist-test/rehearsal/**/*.test.js'],
  timeout: '5m'
}
