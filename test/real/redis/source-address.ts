// Loaded with `--import` into a program under test. Its connections on loopback then come from TEST_SOURCE_ADDRESS.
import { Socket, type TcpNetConnectOpts } from 'node:net'

const { connect } = Socket.prototype
// `net.connect` passes the options in an array.
Socket.prototype.connect = function (this: Socket, ...given: unknown[]) {
  const target = (Array.isArray(given[0]) ? given[0][0] : given[0]) as TcpNetConnectOpts
  if (target.host === '127.0.0.1') target.localAddress ??= process.env.TEST_SOURCE_ADDRESS
  return Reflect.apply(connect, this, given)
} as typeof connect
