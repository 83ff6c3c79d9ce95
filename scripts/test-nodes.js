// Runs the tests on every supported Node version. npx downloads each version as a package.
import { spawnSync } from 'node:child_process'

const versions = process.argv.length > 2 ? process.argv.slice(2) : ['20', '22', '24', '26']
const outcomes = versions.map(version => {
  process.stdout.write(`\n== Node ${version}\n`)
  const command = 'node --version && node scripts/run-tests.js'
  const { status } = spawnSync('npx', ['-y', '-p', `node@${version}`, '-c', command], { stdio: 'inherit' })
  return { version, passed: status === 0 }
})
for (const { version, passed } of outcomes) process.stdout.write(`Node ${version}: ${passed ? 'passed' : 'FAILED'}\n`)
process.exitCode = outcomes.every(({ passed }) => passed) ? 0 : 1
