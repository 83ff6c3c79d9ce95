// An older SDK, which is still used much: every call of its clients.
import { Readable } from 'node:stream'
import { callsOf, compareCalls, PROGRAM_TOKEN } from './calls.js'
import type { Program } from './lab.js'
import { DESIGN, VIEW } from './platform.js'
import { startSite } from './site.js'

type Client = new (auth: { readonly token: string }, host: string, region?: string) => object

const texts = [
  ...['accountId', 'activityId', 'alias', 'beginsWith', 'bucket', 'bucketId', 'bucketKey', 'bundleId', 'containerId'],
  ...['description', 'engine', 'engineId', 'event', 'guid', 'id', 'issueId', 'name', 'nickname', 'pathInArchive'],
  ...['receiver', 'resourceType', 'sessionId', 'shortId', 'storageId', 'system', 'userId', 'workflowId', 'xUserId']
]
const ids = {
  folderId: 'urn:adsk.wipprod:fs.folder:co.x',
  hubId: 'b.hub',
  itemId: 'urn:adsk.wipprod:dm.lineage:abc',
  projectId: 'b.1',
  resourceId: 'urn:adsk.wipprod:fs.folder:co.x',
  versionId: 'urn:adsk.wipprod:fs.file:vf.abc?version=2'
}
const objects = {
  byteOffset: 0,
  chunkBytes: 3,
  contentType: 'application/octet-stream',
  data: Buffer.from('abc'),
  stream: () => Readable.from([Buffer.from('abc')]),
  totalBytes: 3,
  ...Object.fromEntries(
    ['fileName', 'newObjectKey', 'object', 'objectKey', 'objectName', 'oldObjectKey', 'objectId'].map(name => [
      name,
      'folder/sub file+1 平面図／断面図.rvt'
    ])
  )
}
const values = {
  ...Object.fromEntries(texts.map(name => [name, name])),
  ...ids,
  ...objects,
  access: 'read',
  appBundleIDs: [],
  args: [],
  attributes: {},
  body: 'a comment',
  commands: [],
  dataRetention: 'transient',
  derivativeUrn: encodeURI(VIEW),
  filter: {},
  force: true,
  includeSubtypes: true,
  limit: 16,
  limitProcessingTimeSec: 10,
  maxChunkSize: 5,
  modelUrn: DESIGN,
  outputs: [],
  page: { offset: 0, limit: 10 },
  parameters: [],
  params: {},
  settings: {},
  signatures: {},
  size: 100,
  urn: DESIGN,
  urns: [],
  version: 1,
  workflowAttr: {}
}

const clients = ['ModelDerivativeClient', 'DataManagementClient', 'BIM360Client', 'WebhooksClient']

export const forgeServerUtils: Program = {
  name: 'forge-server-utils',
  packages: ['forge-server-utils@8.4.0'],
  async run(lab) {
    const paths = [
      'modelderivative/v2',
      'oss/v2',
      'project/v1',
      'data/v1',
      'issues/v1',
      'issues/v2',
      'bim360',
      'hq/v1',
      'webhooks/v1'
    ]
    const site = await startSite(lab, paths)
    const sdk = lab.load<Record<string, Client>>('forge-server-utils')
    const calls = clients.flatMap(label => {
      const Client = sdk[label] as Client
      return callsOf(label, origin => new Client({ token: PROGRAM_TOKEN }, origin), values)
    })
    await compareCalls(lab, site, calls, /^$/)
  }
}
