// Requests whose paths contain encoded slashes and other signs, as the platform's viewer and SDKs send them, and paths that
// an API could read differently from the server.
import { startProxy, startUpstream } from '../../helpers/upstream.js'
import type { Program } from './lab.js'

const U = 'dXJuOmFkc2sub2JqZWN0cw'

/** The request that arrives at the API, or the status with which the server refuses it. */
type Result = string | number

interface Case {
  /** The targets of the rules are TARGET. */
  readonly rules: readonly string[]
  /** Each request is sent as it is. `true` means that it arrives unchanged. */
  readonly requests: Readonly<Record<string, Result | true>>
}

const cases: readonly Case[] = [
  {
    rules: [
      'GET /derivativeservice/v2/** TARGET/derivativeservice/v2/**',
      'GET,POST /modelderivative/v2/designdata/** TARGET/modelderivative/v2/designdata/**',
      'GET /oss/v2/** TARGET/oss/v2/**',
      'GET /data/v1/** TARGET/data/v1/**'
    ],
    requests: {
      [`GET /derivativeservice/v2/derivatives/urn%3Aadsk.viewing%3Afs.file%3A${U}%2Foutput%2FResource%2F3D%20View%2F%7B3D%7D%20960621%2F%7B3D%7D.svf?domain=http%3A%2F%2Flocalhost%3A8080`]: true,
      [`GET /modelderivative/v2/designdata/${U}/manifest/urn%3Aadsk.viewing%3Afs.file%3A${U}%2Foutput%2F3D%2520View%2F%257B3D%257D.svf/signedcookies`]: true,
      [`POST /modelderivative/v2/designdata/${U}/metadata/5f1c/properties:query`]: true,
      'GET /oss/v2/buckets/b/objects/folder%2Fsub%20file%2B1.rvt/signeds3upload?parts=2&firstPart=1': true,
      'GET /oss/v2/buckets/b/objects/%E5%B9%B3%E9%9D%A2%E5%9B%B3%EF%BC%8F%E6%96%AD%E9%9D%A2%E5%9B%B3.rvt/details': true,
      'GET /data/v1/projects/b.1/versions/urn%3Aadsk.wipprod%3Afs.file%3Avf.abc%3Fversion%3D2': true,
      'GET //data/v1/projects/b.1/folders/urn%3Aadsk.wipprod%3Afs.folder%3Aco.x/contents':
        'GET /data/v1/projects/b.1/folders/urn%3Aadsk.wipprod%3Afs.folder%3Aco.x/contents'
    }
  },
  {
    rules: ['GET /api/** TARGET/**'],
    requests: {
      'GET /api/x%2fy%252Fz': 'GET /x%2fy%252Fz',
      // The signs ％, ／, ℅, … and ①
      'GET /api/50%EF%BC%85/a%EF%BC%8Fb/%E2%84%85/%E2%80%A6/%E2%91%A0':
        'GET /50%EF%BC%85/a%EF%BC%8Fb/%E2%84%85/%E2%80%A6/%E2%91%A0',
      'GET /api/open%2F..%2Fsecret': 400,
      'GET /api/%252e%252e/secret': 400,
      'GET /api/..;x/secret': 400,
      // ．．, a／..／b and ％2e％2e
      'GET /api/%EF%BC%8E%EF%BC%8E/secret': 400,
      'GET /api/a%EF%BC%8F..%EF%BC%8Fb': 400,
      'GET /api/%EF%BC%852e%EF%BC%852e': 400,
      'GET /api/a%5Cb': 400,
      'GET /api/a%2500': 400,
      'GET /api/a%250a': 400,
      'GET /api/auth;x/token': 400,
      'GET /api%2Fauth/token': 400
    }
  },
  {
    rules: ['GET /a/b/** TARGET/public/** token=public', 'GET /a/** TARGET/internal/**'],
    requests: { 'GET /a/b%2Fc': 400, 'GET /a/%2Fb/c': 400, 'GET /a/b;x/c': 400, 'GET /a/x%2Fc': 'GET /internal/x%2Fc' }
  },
  {
    rules: [
      'GET /p/*/d/** TARGET/x/*/e/**',
      'GET /details/*/details TARGET/*',
      'GET /o/*/details TARGET/o/*/details encoded-slashes'
    ],
    requests: {
      'GET /p/x%2Fd/d/y': 400,
      'GET /details/x%2Fy/details': 400,
      // x／y
      'GET /details/x%EF%BC%8Fy/details': 400,
      'GET /o/x%2Fy/details': true,
      'GET /o/x%2F..%2Fy/details': 400
    }
  }
]

export const requestLines: Program = {
  name: 'request-lines',
  packages: [],
  async run(lab) {
    for (const { rules, requests } of cases) {
      const upstream = await startUpstream(lab)
      const targeted = rules.map(rule => rule.replace('TARGET', upstream.origin))
      const { raw } = await startProxy(lab, { rules: targeted }, { mode: 'dual' })
      for (const [line, expected] of Object.entries(requests)) {
        const before = upstream.requestLines.length
        const head = `${line} HTTP/1.1\r\nHost: localhost:8080\r\nCookie: COOKIE\r\nSec-Fetch-Site: same-origin\r\n`
        const { answers } = await raw(`${head}Content-Length: 0\r\n\r\n`, { answers: 1 })
        const arrived: Result | undefined = upstream.requestLines[before] ?? answers[0]?.statusCode
        lab.check(line, arrived, expected === true ? line : expected)
      }
    }
  }
}
