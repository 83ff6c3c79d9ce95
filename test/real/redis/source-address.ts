// Loaded with `--import` into a program under test. Its connections on loopback then come from TEST_SOURCE_ADDRESS.
import { Socket } from 'node:net'

interface Target {
  host?: string
  localAddress?: string | undefined
}

const { connect } = Socket.prototype
// `net.connect` passes the options in an array.
Socket.prototype.connect = function (this: Socket, ...given: unknown[]) {
  const target = (Array.isArray(given[0]) ? given[0][0] : given[0]) as Target
  if (target.host === '127.0.0.1') target.localAddress ??= process.env.TEST_SOURCE_ADDRESS
  return Reflect.apply(connect, this, given)
} as typeof connect
