// The SDKs of the vendor: every call of three of them.
import { callsOf, compareCalls, PROGRAM_TOKEN } from './calls.js'
import type { Program } from './lab.js'
import { DESIGN, VIEW } from './platform.js'
import { startSite } from './site.js'

interface SdkManager {
  readonly apsConfiguration: { baseAddress: URL }
}
type Client = new (args: { readonly sdkManager: SdkManager }) => object

const designs = { derivativeUrn: encodeURI(VIEW), jobPayload: {}, modelGuid: '5f1c', urn: DESIGN }
const data = {
  downloadId: 'd',
  folderId: 'urn:adsk.wipprod:fs.folder:co.x',
  hubId: 'b.hub',
  itemId: 'urn:adsk.wipprod:dm.lineage:abc',
  jobId: 'j',
  projectId: 'b.1',
  versionId: 'urn:adsk.wipprod:fs.file:vf.abc?version=2'
}
const objects = {
  'completeSignedS3Upload.body': { uploadKey: 'key' },
  // This SDK sends the form `body=abc`.
  body: 'abc',
  bucketKey: 'b',
  contentLength: 8,
  contentRange: 'bytes 0-2/3',
  contentType: 'text/plain',
  filePathOrOptionalArgs: '/dev/null',
  hash: '0a1b',
  newObjName: 'folder/copy 2.rvt',
  objectKey: 'folder/sub file+1 平面図／断面図.rvt',
  region: 'US',
  requests: { requests: [] },
  sessionId: 's',
  sourceToUpload: Buffer.from('abc')
}
const payloads = [
  ...['specifyReferences', 'specificProperties', 'download', 'storage', 'folder', 'relationshipRefs', 'modifyFolder'],
  ...['modifyVersion', 'version', 'item', 'modifyItem', 'checkPermission', 'listItems', 'listRefs', 'publishModel'],
  ...['publishWithoutLinks', 'bucket']
]
const values = {
  ...designs,
  ...data,
  ...objects,
  ...Object.fromEntries(payloads.map(name => [`${name}Payload`, { data: { type: name } }])),
  PublishModelJobPayload: {},
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
      const Client = lab.load<Record<string, Client>>(`@aps_sdk/${name}`)[label] as Client
      const create = (origin: string) => {
        const sdkManager = SdkManagerBuilder.create().build()
        sdkManager.apsConfiguration.baseAddress = new URL(origin)
        return new Client({ sdkManager })
      }
      return callsOf(label, create, values)
    })
    await compareCalls(lab, site, calls, /\.getDerivativeUrl$/)
  }
}
