import test from 'ava'
import { loadConfig } from '#src/config/load.js'
import { createRoutes, type Route } from '#src/web/proxy/routes.js'
import { repository } from '../helpers/repository.js'

const env = {
  PLATFORM_CLIENT_ID: 'client',
  PLATFORM_CLIENT_SECRET: 'Rk81mZqPw0',
  SERVER_SESSION_SECRET: 'wG4vT9qLx2ZbN7rKp5YcJ8sHd3MfA6eU'
}

test('the settings of the viewer with a token are valid, and give the viewer a new token before the old one expires', async t => {
  const { config } = await loadConfig({ cwd: `${repository}examples/viewer`, env })
  t.is(config.mode, 'dual')
  t.true(config.refresh.beforeExpirySeconds > 5)
})

const design = 'dXJuOmFkc2sub2JqZWN0cw'
const requests: Readonly<Record<string, Route['kind'] | undefined>> = {
  [`GET /viewer-proxy/derivativeservice/v2/manifest/${design}?domain=http%3A%2F%2Flocalhost%3A8080`]: 'forward',
  [`GET /viewer-proxy/derivativeservice/v2/derivatives/urn%3Aadsk.viewing%3Afs.file%3A${design}%2Foutput%2F%7B3D%7D.svf`]:
    'forward',
  [`GET /viewer-proxy/derivativeservice/v2/thumbnails/${design}?guid=6fda4fe2`]: 'forward',
  [`GET /viewer-proxy/modelderivative/v2/designdata/${design}/manifest`]: 'forward',
  [`POST /viewer-proxy/modelderivative/v2/designdata/${design}/metadata/5f1c/properties:query`]: 'forward',
  [`DELETE /viewer-proxy/modelderivative/v2/designdata/${design}/manifest`]: 'wrongMethod',
  'POST /viewer-proxy/modelderivative/v2/designdata/job': 'wrongMethod',
  'GET /viewer-proxy/oss/v2/buckets': undefined
}

test('the rules of the viewer without a token forward all requests of the viewer, and no others', async t => {
  const { config } = await loadConfig({ cwd: `${repository}examples/viewer-without-token`, env })
  const findRoute = createRoutes(config.apiProxy.rules, 'http://localhost:8080')
  for (const [request, kind] of Object.entries(requests)) {
    const [method = '', target = ''] = request.split(' ')
    t.is(findRoute(method, target)?.kind, kind, request)
  }
})
