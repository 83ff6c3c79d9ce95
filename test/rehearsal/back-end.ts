// A back end in Python, which answers with what it was sent.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import type { ExecutionContext } from 'ava'
import { eventually } from '../helpers/eventually.js'
import { freePort, isAnswering } from '../helpers/ports.js'

export const hasPython = spawnSync('python3', ['--version']).status === 0

const PROGRAM = `
import json, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class BackEnd(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def answer(self):
        length = int(self.headers.get('Content-Length') or 0)
        body = self.rfile.read(length).decode()
        last = self.path.split('/')[-1]
        status = int(last) if last.isdigit() else 200
        sent = json.dumps({'method': self.command, 'headers': self.headers.items(), 'body': body}).encode()
        self.send_response(status)
        if status == 301: self.send_header('Location', '/elsewhere')
        if status == 204: sent = b''
        else: self.send_header('Content-Length', str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)
    do_GET = do_POST = do_PUT = do_DELETE = answer
    def log_message(self, *args): pass

ThreadingHTTPServer(('127.0.0.1', int(sys.argv[1])), BackEnd).serve_forever()
`

/** Resolves with the port when the back end answers. */
export async function startBackEnd(t: Pick<ExecutionContext, 'teardown'>): Promise<number> {
  const port = await freePort()
  const child = spawn('python3', ['-c', PROGRAM, String(port)], { stdio: 'ignore' })
  const ended = once(child, 'close')
  t.teardown(async () => {
    child.kill('SIGTERM')
    await ended
  })
  await eventually(() => {
    if (child.exitCode !== null) throw new Error('the back end ended')
    return isAnswering(`http://127.0.0.1:${port}`)
  })
  return port
}
