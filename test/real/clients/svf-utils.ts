// A converter of models: it reads a whole model, as the platform's viewer does.
import { gzipSync } from 'node:zlib'
import { type Call, compareCalls, PROGRAM_TOKEN } from './calls.js'
import type { Lab, Program } from './lab.js'
import { DESIGN, type Files, VIEW, VIEW_GUID } from './platform.js'
import { startSite } from './site.js'

interface Reader {
  read(): Promise<unknown>
}
interface Readers {
  new (svf: Buffer, resolve: (path: string) => Promise<Buffer>): Reader
  FromDerivativeService(urn: string, guid: string, auth: object, region: undefined, host: string): Promise<Reader>
}
interface SvfUtils {
  readonly SVFReader: Readers
  readonly BasicAuthenticationProvider: new (token: string) => object
}
type Zip = new () => { addFile(name: string, content: Buffer): void; toBuffer(): Buffer }

export const svfUtils: Program = {
  name: 'svf-utils',
  packages: ['svf-utils@8.0.0'],
  async run(lab) {
    const site = await startSite(lab, ['modelderivative/v2', 'derivativeservice/v2'], model(lab))
    const { SVFReader, BasicAuthenticationProvider } = lab.load<SvfUtils>('svf-utils')
    const calls: Call[] = [
      {
        name: 'SVFReader with URLs of the derivative service',
        async run(origin) {
          const get = async (urn: string) => {
            const path = `/derivativeservice/v2/derivatives/${encodeURIComponent(urn)}`
            const headers = { authorization: `Bearer ${PROGRAM_TOKEN}` }
            const response = await fetch(origin + path, { headers })
            if (!response.ok) throw new Error(`${path} has the status ${response.status}`)
            return Buffer.from(await response.arrayBuffer())
          }
          const reader = new SVFReader(await get(VIEW), path => get(folder + path))
          return reader.read()
        }
      },
      {
        name: 'SVFReader.FromDerivativeService',
        async run(origin) {
          const auth = new BasicAuthenticationProvider(PROGRAM_TOKEN)
          return (await SVFReader.FromDerivativeService(DESIGN, VIEW_GUID, auth, undefined, origin)).read()
        }
      }
    ]
    await compareCalls(lab, site, calls, /FromDerivativeService/)
  }
}

const folder = VIEW.slice(0, VIEW.lastIndexOf('/') + 1)

/** The files of a model with one fragment, one material and one property. */
function model(lab: Lab): Files {
  const json = (value: unknown) => gzipSync(JSON.stringify(value))
  const material = { definition: 'SimplePhong', properties: {} }
  const assets: Readonly<Record<string, readonly [type: string, content: Buffer]>> = {
    'FragmentList.pack': ['FragmentList', packFile(Buffer.alloc(57, 1))],
    'GeometryMetadata.pf': ['GeometryMetadataList', packFile(Buffer.from([...Array(27).fill(0), 1, 0x30, 0]))],
    '0.pf': ['PackFile', packFile()],
    'objects_ids.json.gz': ['PropertyIDs', json([0, 'a'])],
    'objects_offs.json.gz': ['PropertyOffsets', json([0, 0])],
    'objects_avs.json.gz': ['PropertyAVs', json([0, 0])],
    'objects_attrs.json.gz': ['PropertyAttributes', json([['Name', 'General']])],
    'objects_vals.json.gz': ['PropertyValues', json(['Wall'])],
    'images/brick wall.png': ['Image', Buffer.from('a picture')]
  }
  const listed = Object.entries(assets).map(([URI, [type]]) => ({ type: `Autodesk.CloudPlatform.${type}`, URI }))
  const zip = new (lab.load<Zip>('adm-zip'))()
  const add = (name: string, value: unknown) => zip.addFile(name, Buffer.from(JSON.stringify(value)))
  add('manifest.json', { assets: [...listed, { type: 'ProteinMaterials', URI: 'Materials.json.gz' }] })
  add('metadata.json', { metadata: {} })
  return {
    [VIEW]: zip.toBuffer(),
    [`${folder}Materials.json.gz`]: json({ materials: { 0: { userassets: ['0'], materials: { 0: material } } } }),
    ...Object.fromEntries(Object.entries(assets).map(([path, [, content]]) => [folder + path, content]))
  }
}

/** A file of the format in which the platform packs entries: a head, the entries, their offsets and their types. */
function packFile(...entries: readonly Buffer[]): Buffer {
  const head = Buffer.from([1, 0x61, 1, 0, 0, 0])
  const contents = entries.map(entry => Buffer.concat([uint32(0), entry]))
  const offsets = contents.map((_, index) => uint32(head.length + Buffer.concat(contents.slice(0, index)).length))
  const body = Buffer.concat([head, ...contents])
  const table = Buffer.concat([Buffer.from([entries.length]), ...offsets])
  const types = Buffer.from([1, 1, 0x61, 1, 0x61, 5])
  return Buffer.concat([body, table, types, uint32(body.length), uint32(body.length + table.length)])
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}
