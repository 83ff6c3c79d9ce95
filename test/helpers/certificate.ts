// Creates a self-signed certificate, so that tests of https need no external tool and no key in the repository. It
// writes the DER (X.690) of an X.509 version 1 certificate (RFC 5280 section 4.1).
import { generateKeyPairSync, sign } from 'node:crypto'

export interface CertificateOptions {
  readonly host?: string
  /** The number of days from now until it expires. */
  readonly days?: number
}

export function selfSignedCertificate({ host = 'localhost', days = 1 }: CertificateOptions = {}): {
  readonly key: string
  readonly cert: string
} {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const ecdsaWithSha256 = sequence(objectId('2a8648ce3d040302'))
  const name = sequence(set(sequence(objectId('550403'), utf8(host))))
  const dayMs = 86_400_000
  const validity = sequence(utcTime(Date.now() - 30 * dayMs), utcTime(Date.now() + days * dayMs))
  const publicKeyInfo = publicKey.export({ type: 'spki', format: 'der' })
  const content = sequence(integer(1), ecdsaWithSha256, name, validity, name, publicKeyInfo)
  const signature = bitString(sign('sha256', content, privateKey))
  const certificate = sequence(content, ecdsaWithSha256, signature).toString('base64')
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    cert: `-----BEGIN CERTIFICATE-----\n${certificate.replace(/.{1,64}/g, '$&\n')}-----END CERTIFICATE-----\n`
  }
}

function der(tag: number, content: Buffer): Buffer {
  const { length } = content
  const header =
    length < 128 ? [tag, length] : length < 256 ? [tag, 0x81, length] : [tag, 0x82, length >> 8, length & 255]
  return Buffer.concat([Buffer.from(header), content])
}

const sequence = (...parts: Buffer[]) => der(0x30, Buffer.concat(parts))
const set = (...parts: Buffer[]) => der(0x31, Buffer.concat(parts))
const integer = (value: number) => der(0x02, Buffer.from([value]))
const objectId = (hex: string) => der(0x06, Buffer.from(hex, 'hex'))
const utf8 = (text: string) => der(0x0c, Buffer.from(text))
const bitString = (bytes: Buffer) => der(0x03, Buffer.concat([Buffer.from([0]), bytes]))
const utcTime = (ms: number) => der(0x17, Buffer.from(`${new Date(ms).toISOString().replace(/\D/g, '').slice(2, 14)}Z`))
