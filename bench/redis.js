/** Runs the Redis program named on the command line, on loopback and without files. It ends with this process. */
import { spawn } from 'node:child_process'
import { freePort } from './ports.js'
import { answerParent } from './processes.js'

const [program] = process.argv.slice(2)

answerParent({
  async start() {
    const port = await freePort()
    const args = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no']
    const redis = spawn(program, args, { stdio: ['ignore', 'pipe', 'ignore'] })
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
  }
})
