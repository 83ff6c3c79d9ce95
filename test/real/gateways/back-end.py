# A back end for the gateways. Each response contains the request as the back end received it, and the last part of the path sets the
# status. The argument is the port.
import json, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

asked = []

class BackEnd(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def read_chunks(self):
        body, trailers = b'', []
        while length := int(self.rfile.readline().split(b';')[0], 16):
            body += self.rfile.read(length)
            self.rfile.readline()
        while line := self.rfile.readline().strip():
            trailers.append(line.decode().split(': ', 1))
        return body, trailers
    def read_body(self):
        if 'chunked' in (self.headers.get('Transfer-Encoding') or ''): return self.read_chunks()
        return self.rfile.read(int(self.headers.get('Content-Length') or 0)), []
    def shake_hands(self):
        self.send_response(101)
        self.send_header('Upgrade', 'websocket')
        self.send_header('Connection', 'Upgrade')
        self.send_header('X-Seen-Authorization', self.headers.get('Authorization') or 'none')
        self.end_headers()
        self.close_connection = True
    def answer(self):
        if self.path == '/asked-so-far': return self.reply(200, json.dumps(asked).encode())
        asked.append(self.path)
        if (self.headers.get('Upgrade') or '').lower() == 'websocket': return self.shake_hands()
        body, trailers = self.read_body()
        last = self.path.split('/')[-1]
        seen = {'method': self.command, 'headers': self.headers.items(), 'trailers': trailers, 'body': body.decode()}
        self.reply(int(last) if last.isdigit() else 200, json.dumps(seen).encode())
    def reply(self, status, content):
        self.send_response(status)
        if status == 301: self.send_header('Location', '/elsewhere')
        if self.path == '/accel-redirect': self.send_header('X-Accel-Redirect', '/_forward_auth')
        if 'session-status' in self.path: self.send_header('Session-Status', 'signed-out')
        if status == 204: content = b''
        else: self.send_header('Content-Length', str(len(content)))
        self.end_headers()
        self.wfile.write(content)
    do_GET = do_POST = do_PUT = do_DELETE = answer
    def log_message(self, *args): pass

ThreadingHTTPServer(('127.0.0.1', int(sys.argv[1])), BackEnd).serve_forever()
