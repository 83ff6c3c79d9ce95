// A separate process that acquires the lease of a login and then waits. Its argument is the address of Redis.
import { leaseOf, startReplica } from './replicas.js'

const [url = ''] = process.argv.slice(2)
const replica = await startReplica({ teardown: () => {} }, url)
await leaseOf(replica, 'id', 0)
process.send?.('working')
