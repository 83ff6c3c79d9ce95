/** A port for a process that has to be told one. */
import net from 'node:net'

/** @returns {Promise<number>} one on loopback that is free now */
export function freePort() {
  return new Promise((resolve, reject) => {
    const server = net.createServer().once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address()
      server.close(() => resolve(port))
    })
  })
}
