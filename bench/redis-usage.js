/** Reads what a Redis has received, sent and computed since its start. */

// The commands that the server sends. INFO also counts the commands inside scripts, and SET is mostly one of them.
const SENT_COMMANDS = ['evalsha', 'eval', 'publish', 'ping', 'subscribe']
const SECTIONS = ['stats', 'cpu', 'commandstats', 'memory', 'clients']

/**
 * @typedef {object} RedisUsage
 * @property {number} received bytes
 * @property {number} sent bytes
 * @property {number} ownReceived bytes of the command that has read these figures. `received` includes them
 * @property {number} ownSent bytes of the reply with these figures. `sent` does not include them yet
 * @property {number} cpuMicros
 * @property {number} scripts
 * @property {number} commands scripts and all other commands that clients have sent
 * @property {number} published messages, which Redis sends to each subscriber
 * @property {number} memory bytes, without the buffers of connections
 * @property {number} connections
 */

/**
 * @param {import('ioredis').Redis} admin
 * @returns {Promise<RedisUsage>}
 */
export async function usageOf(admin) {
  const text = await admin.info(...SECTIONS)
  const number = name => Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(text)?.[1])
  const calls = name => Number(new RegExp(`^cmdstat_${name}:calls=(\\d+)`, 'm').exec(text)?.[1] ?? 0)
  return {
    received: number('total_net_input_bytes'),
    sent: number('total_net_output_bytes'),
    ownReceived: bytesOfCommand(['info', ...SECTIONS]),
    ownSent: bytesOfBulkString(text),
    cpuMicros: (number('used_cpu_user') + number('used_cpu_sys')) * 1e6,
    scripts: calls('evalsha') + calls('eval'),
    commands: SENT_COMMANDS.reduce((sum, name) => sum + calls(name), 0),
    published: calls('publish'),
    memory: number('used_memory') - number('mem_clients_normal'),
    connections: number('connected_clients')
  }
}

/** The length of a text on the wire (RESP, bulk string). */
function bytesOfBulkString(text) {
  return `$${Buffer.byteLength(text)}\r\n${text}\r\n`.length
}

function bytesOfCommand(words) {
  return `*${words.length}\r\n`.length + words.reduce((sum, word) => sum + bytesOfBulkString(word), 0)
}
