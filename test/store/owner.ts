// A separate process that takes the lock of a login and then waits. Its argument is the address of Redis.
import { lockOf, startReplica } from './replicas.js'

const [url = ''] = process.argv.slice(2)
const replica = await startReplica({ teardown: () => {} }, url)
await lockOf(replica, { id: 'id', rev: 0 })
process.send?.('working')
