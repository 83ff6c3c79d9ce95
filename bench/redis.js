/** Runs a Redis on loopback and without files. It ends with this process. */
import { spawn } from 'node:child_process'
import { freePort } from './ports.js'
import { answerParent } from './processes.js'
import { usageOfGroup } from './usage.js'

const [program] = process.argv.slice(2)
let redis

answerParent({
  async start() {
    const port = await freePort()
    const args = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no']
    // Its process group is measured.
    redis = spawn(program, args, { stdio: ['ignore', 'pipe', 'ignore'], detached: true })
    process.on('exit', () => redis.kill('SIGKILL'))
    await new Promise((resolve, reject) => {
      let printed = ''
      redis.stdout.on('data', chunk => {
        printed += chunk
        if (printed.includes('Ready to accept connections')) resolve()
      })
      redis.once('exit', code => reject(new Error(`${program} ended with code ${code}: ${printed}`)))
      redis.once('error', reject)
    })
    redis.stdout.removeAllListeners('data').resume()
    return `redis://127.0.0.1:${port}`
  },
  usage: () => usageOfGroup(redis.pid)
})
