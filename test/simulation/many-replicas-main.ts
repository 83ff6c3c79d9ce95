// `npm run simulate:replicas -- --replicas N --sessions N` simulates many processes that share one Redis, and prints the
// results as JSON. Its figures are in docs/scale.md.
import { parseArgs } from 'node:util'
import { simulateLoss, simulateQuota } from './many-replicas.js'

const { values } = parseArgs({
  options: {
    replicas: { type: 'string', default: '1000' },
    sessions: { type: 'string', default: '100000' },
    'script-micros': { type: 'string', default: '30' },
    'delivery-micros': { type: 'string', default: '3' },
    due: { type: 'string', default: '3000' },
    quota: { type: 'string', default: '500' },
    observed: { type: 'string', default: '60' },
    only: { type: 'string', default: 'loss,quota' }
  }
})
const number = (name: keyof typeof values) => Number(values[name])
const service = { scriptMs: number('script-micros') / 1000, deliveryMs: number('delivery-micros') / 1000 }
const replicas = number('replicas')
const write = (result: object) => process.stdout.write(`${JSON.stringify(result)}\n`)
const kinds = (values.only ?? '').split(',')

if (kinds.includes('loss')) {
  const options = {
    replicas,
    service,
    sessions: number('sessions'),
    secondsBetweenRequests: 60,
    secondsBetweenRefreshes: 2730,
    outageSeconds: 5,
    observedSeconds: number('observed')
  }
  write({ ...options, result: await simulateLoss(options) })
}
if (kinds.includes('quota')) {
  const options = { replicas, service, sessions: number('due'), callsPerMinute: number('quota'), observedMinutes: 60 }
  write({ ...options, result: await simulateQuota(options) })
}
