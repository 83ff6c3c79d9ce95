// The SDKs of the platform: every call of their clients.
import { Readable } from 'node:stream'
import { callsOf, compareCalls, PROGRAM_TOKEN } from './calls.js'
import type { Program } from './lab.js'
import { DESIGN, VIEW } from './platform.js'
import { startSite } from './site.js'

// Names with spaces, signs and characters that a path must encode, and ids that the platform writes as URNs.
const FILE = 'folder/sub file+1 平面図／断面図.rvt'
const common = {
  folderId: 'urn:adsk.wipprod:fs.folder:co.x',
  hubId: 'b.hub',
  itemId: 'urn:adsk.wipprod:dm.lineage:abc',
  projectId: 'b.1',
  versionId: 'urn:adsk.wipprod:fs.file:vf.abc?version=2',
  derivativeUrn: encodeURI(VIEW),
  objectKey: FILE,
  urn: DESIGN
}

interface SdkManager {
  readonly apsConfiguration: { baseAddress: URL }
}
type ApsClient = new (args: { readonly sdkManager: SdkManager }) => object

const ofAps = {
  ...common,
  // This SDK sends the form `body=abc`, whose length it needs.
  body: 'abc',
  'completeSignedS3Upload.body': { uploadKey: 'key' },
  contentLength: 8,
  contentRange: 'bytes 0-2/3',
  contentType: 'text/plain',
  filePathOrOptionalArgs: '/dev/null',
  hash: '0a1b',
  jobPayload: {},
  newObjName: 'folder/copy 2.rvt',
  PublishModelJobPayload: {},
  region: 'US',
  requests: { requests: [] },
  sourceToUpload: Buffer.from('abc'),
  optionalArgs: () => ({
    accessToken: PROGRAM_TOKEN,
    cancellationToken: new AbortController(),
    filterType: ['folders', 'items'],
    includePathInProject: true,
    pageNumber: 2,
    region: 'EMEA',
    xAdsDerivativeFormat: 'fallback',
    xAdsForce: true,
    xAdsMetaContentDisposition: 'inline; filename="Zürich.pdf"',
    xUserId: 'u'
  })
}

/** The SDK of the vendor. */
export const apsSdk: Program = {
  name: 'aps-sdk',
  packages: ['@aps_sdk/model-derivative@1.2.1', '@aps_sdk/data-management@1.1.2', '@aps_sdk/oss@1.3.3'],
  async run(lab) {
    // One call of this SDK requests /projects/… without /data/v1.
    const site = await startSite(lab, ['modelderivative/v2', 'project/v1', 'data/v1', 'oss/v2', 'projects'])
    const { SdkManagerBuilder } = lab.load<{ SdkManagerBuilder: { create(): { build(): SdkManager } } }>(
      '@aps_sdk/autodesk-sdkmanager'
    )
    const clients = {
      ModelDerivativeClient: 'model-derivative',
      DataManagementClient: 'data-management',
      OssClient: 'oss'
    }
    const calls = Object.entries(clients).flatMap(([label, name]) => {
      const Client = lab.load<Record<string, ApsClient>>(`@aps_sdk/${name}`)[label] as ApsClient
      const create = (origin: string) => {
        const sdkManager = SdkManagerBuilder.create().build()
        sdkManager.apsConfiguration.baseAddress = new URL(origin)
        return new Client({ sdkManager })
      }
      return callsOf(label, create, ofAps)
    })
    await compareCalls(lab, site, calls, /\.getDerivativeUrl$/)
  }
}

type ForgeClient = new (auth: { readonly token: string }, host: string) => object

const ofForge = {
  ...common,
  ...Object.fromEntries(['fileName', 'newObjectKey', 'object', 'objectName', 'oldObjectKey'].map(name => [name, FILE])),
  ...Object.fromEntries(['appBundleIDs', 'args', 'commands', 'outputs', 'parameters', 'urns'].map(name => [name, []])),
  ...Object.fromEntries(['attributes', 'filter', 'params', 'settings', 'signatures'].map(name => [name, {}])),
  access: 'read',
  byteOffset: 0,
  chunkBytes: 3,
  contentType: 'application/octet-stream',
  data: Buffer.from('abc'),
  dataRetention: 'transient',
  force: true,
  includeSubtypes: true,
  limit: 16,
  limitProcessingTimeSec: 10,
  maxChunkSize: 5,
  modelUrn: DESIGN,
  objectId: FILE,
  page: { offset: 0, limit: 10 },
  resourceId: common.folderId,
  size: 100,
  stream: () => Readable.from([Buffer.from('abc')]),
  totalBytes: 3,
  version: 1,
  workflowAttr: {}
}

/** An older SDK, which is still used much. */
export const forgeServerUtils: Program = {
  name: 'forge-server-utils',
  packages: ['forge-server-utils@8.4.0'],
  async run(lab) {
    const versioned = ['modelderivative/v2', 'oss/v2', 'project/v1', 'data/v1', 'issues/v1', 'issues/v2', 'hq/v1']
    const site = await startSite(lab, [...versioned, 'bim360', 'webhooks/v1'])
    const sdk = lab.load<Record<string, ForgeClient>>('forge-server-utils')
    const clients = ['ModelDerivativeClient', 'DataManagementClient', 'BIM360Client', 'WebhooksClient']
    const calls = clients.flatMap(label => {
      const Client = sdk[label] as ForgeClient
      return callsOf(label, origin => new Client({ token: PROGRAM_TOKEN }, origin), ofForge)
    })
    await compareCalls(lab, site, calls, /^$/)
  }
}
