/** Finds a free port for a process that cannot choose one itself. */
import net from 'node:net'

/** @returns {Promise<number>} a port on loopback that is free at the moment */
export function freePort() {
  return new Promise((resolve, reject) => {
    const server = net.createServer().once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address()
      server.close(() => resolve(port))
    })
  })
}
