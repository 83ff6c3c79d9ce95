// A stand-in of Autodesk Platform Services. Its responses contain what the SDKs read.
import type { IncomingMessage } from 'node:http'
import type { Teardown } from '../../helpers/scope.js'
import { startUpstream } from '../../helpers/upstream.js'

/** The URN of a design in the encoded form that the platform uses, and the URN of its 3D view. */
export const DESIGN = 'dXJuOmFkc2sub2JqZWN0cw'
export const VIEW = `urn:adsk.viewing:fs.file:${DESIGN}/output/Resource/3D View/{3D} 960621/{3D}.svf`

interface Answer {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string | readonly string[]>>
  /** A buffer is sent as a file, and everything else as JSON. */
  readonly body: unknown
}

export function startPlatform(t: Teardown) {
  return startUpstream(t, (request, response) => {
    const { status = 200, headers, body } = answerTo(request)
    const isFile = Buffer.isBuffer(body)
    response.writeHead(status, {
      'content-type': isFile ? 'application/octet-stream' : 'application/json',
      'x-ads-region': 'US',
      ...headers
    })
    const content = isFile ? body : JSON.stringify(body)
    // The connection can be used again when the whole request has been read.
    request.resume().once('end', () => response.end(content))
  })
}

function answerTo({ method = '', url = '', headers }: IncomingMessage): Answer {
  const origin = `http://${headers.host}`
  const path = decodeURIComponent(url.replace(/\?.*/, ''))
  // The storage service. The URLs are signed, so they need no token.
  if (path.startsWith('/storage/')) return part('abc', headers.range)
  if (!headers.authorization?.startsWith('Bearer ')) return { status: 401, body: { reason: 'no token' } }
  if (path.endsWith('/signedcookies')) return signedCookies(origin, path)
  if (/\/manifest\/./.test(path)) return part('a derivative', headers.range)
  if (path.endsWith('/thumbnail')) return part('a picture')
  if (path.endsWith('/signeds3upload') && method === 'GET')
    return { body: { uploadKey: 'key', urls: [`${origin}/storage/part`] } }
  if (path.endsWith('/signeds3download'))
    return { body: { status: 'complete', url: `${origin}/storage/part`, size: 3 } }
  if (path.includes('/resumable') || path.includes('/status/')) return { headers: { range: 'bytes=0-2' }, body: {} }
  if (method === 'POST' && path.endsWith('/hooks')) return { headers: { location: `${origin}${path}/1` }, body: {} }
  const last = path.slice(path.lastIndexOf('/') + 1)
  const isList = method === 'GET' && LISTS.includes(last)
  return { body: { ...ANY, data: isList ? [] : ANY.data } }
}

const LISTS = [
  ...['attachments', 'comments', 'contents', 'hubs', 'projects', 'quality-issues', 'root-causes', 'topFolders'],
  'versions'
]

// The members that the SDKs read from the other responses.
const ANY = {
  data: {
    id: 'an id',
    relationships: { issues: { data: { id: 'i' } }, locations: { data: { id: 'l' } } },
    attributes: {}
  },
  derivatives: [
    {
      children: [{ type: 'resource', role: 'graphics', mime: 'application/autodesk-svf', guid: 'a guid', urn: VIEW }]
    }
  ],
  formats: {},
  included: [],
  items: [],
  pagination: { offset: 0, limit: 10, totalResults: 0 },
  results: []
}

/** The SDK makes a signed URL of the cookies, in this order. */
function signedCookies(origin: string, path: string): Answer {
  const [, urn = ''] = /\/manifest\/(.*)\/signedcookies$/.exec(path) ?? []
  const cookies = ['Policy', 'Key-Pair-Id', 'Signature'].map(name => `CloudFront-${name}=a; Path=/; Secure; HttpOnly`)
  const url = `${origin}/storage/${encodeURIComponent(decodeURIComponent(urn))}`
  return { headers: { 'set-cookie': cookies }, body: { url } }
}

function part(content: string, range = ''): Answer {
  const file = Buffer.from(content)
  const [, first, last] = /^bytes=(\d+)-(\d*)$/.exec(range) ?? []
  if (first === undefined) return { headers: { 'content-length': String(file.length) }, body: file }
  const body = file.subarray(Number(first), last ? Number(last) + 1 : undefined)
  const end = Number(first) + body.length - 1
  return { status: 206, headers: { 'content-range': `bytes ${first}-${end}/${file.length}` }, body }
}
