// Walks the matrix of guides, deployments and modes. `npm run test:kubernetes` adds the chart.
import test from 'ava'
import { modes } from '../helpers/modes.js'
import { guides } from '../helpers/provider-guides.js'
import { serialTestWithRedis, startRedis } from '../helpers/redis.js'
import { deployments, linesFor, walk } from './matrix.js'

for (const name of Object.keys(guides)) {
  serialTestWithRedis(
    `${name}: its settings work in each deployment and mode, or it says that they do not`,
    async t => {
      const { url } = await startRedis(t)
      for (const mode of modes) {
        const cells: string[] = []
        for (const [where, deployment] of Object.entries(deployments))
          cells.push(`${where}: ${await walk(name, mode, deployment, url)}`)
        t.log(`${name}, ${mode}`.padEnd(28), cells.join('  '))
        const wrong = cells.filter(cell => !/: (works|single only)$/.test(cell))
        t.deepEqual(wrong, [], mode)
      }
    }
  )
}

// Compose, systemd, Kustomize and the file .env read quotes, backslashes, dollars and comments in different ways.
test('each way to read a file with settings reads the lines of each guide in the same way', t => {
  for (const name of Object.keys(guides)) {
    const lines = modes.flatMap(mode => linesFor(name, mode) ?? [])
    for (const line of lines) t.regex(line, /^[A-Z_]+=[^\s"'\\$#`]+( [^\s"'\\$#`]+)*$/)
  }
})
