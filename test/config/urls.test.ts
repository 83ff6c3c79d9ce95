import test from 'ava'
import { basePathOf, homeUrlOf, isLocalRequest, localUrlOf, maskUrl, providerUrl } from '#src/config/types/urls.js'
import { assertCases } from '../helpers/case-file.js'

const outputs: Readonly<Record<string, (input: string) => string>> = {
  'secrets may be sent to it'(url) {
    const parsed = providerUrl.parse(JSON.parse(url))
    return 'value' in parsed ? 'yes' : `no: ${parsed.reason}`
  },
  'base path and start page of a callback URL': url => `"${basePathOf(url)}" ${homeUrlOf(url)}`,
  'URL of a server that listens on this host and port'(address) {
    const [host, port] = address.split(' ')
    return localUrlOf({ host: host === 'undefined' ? undefined : host, port: Number(port) })
  },
  'requests that count as local, by their address and Host'(request) {
    const [remoteAddress, host] = request.split(' ').map(word => (word === 'undefined' ? undefined : word))
    const received = { socket: { remoteAddress }, headers: { host } }
    return String(isLocalRequest(received, 'https://app.example/api/auth/callback'))
  },
  'URLs in messages': url => JSON.stringify(maskUrl(JSON.parse(url)))
}

test('the settings that are URLs', t =>
  assertCases(t, 'test/config/urls.txt', (input, [title = '']) => outputs[title]?.(input) ?? ''))
