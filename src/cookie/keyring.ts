/**
 * Authenticated encryption for session cookies, for the `state` parameter of a login, and for data that replicas share in Redis.
 * The code says "seal" for encrypting and "open" for decrypting. From each secret, one key is derived for each purpose (RFC 5869
 * section 3.2). A value that was encrypted for one purpose therefore cannot be decrypted for another purpose. There can be
 * several secrets, so that an operator can replace a secret without ending any session.
 */
import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  hkdfSync,
  type KeyObject,
  randomFillSync
} from 'node:crypto'
import { dottedText, type TextEncoding } from '../base/text-encoding.js'

export type Sealer = ReturnType<typeof createSealer>

/** Computes keyed hashes (HMAC, RFC 2104). Without a secret, nobody can find out whether a hash belongs to a known string. */
export type Hasher = ReturnType<typeof createHasher>

export type Keyring = ReturnType<typeof createKeyring>

interface Key {
  readonly id: Buffer
  readonly key: KeyObject
}

// The format of an encrypted value, with the lengths in bytes: version (1), key id (4), IV (12), ciphertext, tag (16).
const VERSION = 1
const VERSION_BYTE = Buffer.of(VERSION)
const KEY_ID_END = 5
const IV_LENGTH = 12
const IVS_AT_A_TIME = 128
const IV_END = KEY_ID_END + IV_LENGTH
const TAG_LENGTH = 16
const MIN_LENGTH = IV_END + TAG_LENGTH

/**
 * Creates a keyring.
 * @param secrets the secrets, newest first; the caller must have checked that each is long and random
 * @example const sealer = createKeyring(['new secret', 'old secret']).sealer('session')
 */
export function createKeyring(secrets: readonly string[]) {
  requireOne(secrets)
  let current = secrets
  const rekeyings: (() => void)[] = []

  /** Derives keys now and after every replacement of the secrets. Returns a function that returns the newest keys. */
  function derived<Keys>(derive: (secrets: readonly string[]) => Keys): () => Keys {
    let keys = derive(current)
    rekeyings.push(() => {
      keys = derive(current)
    })
    return () => keys
  }

  return {
    /** @param encoding how encrypted values are written as strings. The default is for values that browsers send. */
    sealer: (purpose: string, encoding = dottedText) =>
      createSealer(
        derived(secrets => deriveKeys(purpose, secrets)),
        encoding
      ),
    hasher: (purpose: string) => createHasher(derived(secrets => hashKeys(purpose, secrets))),
    /**
     * Replaces the secrets, even in sealers and hashers that were created before. The first secret encrypts, and all secrets
     * decrypt.
     */
    replace(secrets: readonly string[]): void {
      requireOne(secrets)
      current = secrets
      for (const rekey of rekeyings) rekey()
    }
  }
}

function createHasher(keys: () => readonly KeyObject[]) {
  const hash = (key: KeyObject, text: string) => createHmac('sha256', key).update(text).digest('base64url')
  return {
    /** Returns the hash of `text` with the newest secret, as 43 characters of base64url. */
    newest: (text: string): string => hash(keys()[0] as KeyObject, text),
    /** Returns the hashes of `text` with all secrets, newest first. */
    all: (text: string): readonly string[] => keys().map(key => hash(key, text))
  }
}

function requireOne(secrets: readonly string[]): void {
  if (secrets.length === 0) throw new TypeError('a keyring needs at least one secret')
}

function createSealer(keys: () => ReturnType<typeof deriveKeys>, encoding: TextEncoding) {
  const nextIv = createIvs()
  return {
    /**
     * Encrypts `plaintext` with the newest secret. Returns a string, which `open` accepts only with the same `context`.
     * @param secondKey a random string that is mixed into the key. Decryption then needs both the secret and this string.
     */
    seal(plaintext: Buffer, context: string, secondKey?: string): string {
      const { id, key } = keys().newest
      const aad = Buffer.from(context)
      return encoding.draw(() => {
        const iv = nextIv()
        const cipher = createCipheriv('aes-256-gcm', combined(key, secondKey), iv)
        cipher.setAAD(aad)
        const ciphertext = cipher.update(plaintext)
        // As for `open`, the result of `final` is not needed.
        cipher.final()
        return Buffer.concat([VERSION_BYTE, id, iv, ciphertext, cipher.getAuthTag()])
      })
    },
    /** Returns the length of the string that `seal` returns. */
    lengthOf: (plaintext: Buffer): number => Math.ceil((4 * (MIN_LENGTH + plaintext.length)) / 3),
    /** True if `sealed` names the key of the newest secret. Does not decrypt it. */
    isNewest: (sealed: string): boolean =>
      encoding.bytesOf(sealed.slice(0, 8)).subarray(1, KEY_ID_END).equals(keys().newest.id),
    /**
     * Returns the plaintext. Returns undefined unless `sealed` was created with one of the secrets, and for the same purpose,
     * context and second key.
     */
    open(sealed: string, context: string, secondKey?: string): Buffer | undefined {
      const bytes = encoding.bytesOf(sealed)
      if (bytes.length < MIN_LENGTH || bytes[0] !== VERSION) return undefined
      const key = keys().byId.get(bytes.readUInt32BE(1))
      // Accept only the string that `seal` returned.
      if (!key || encoding.textOf(bytes) !== sealed) return undefined
      const decipher = createDecipheriv('aes-256-gcm', combined(key, secondKey), bytes.subarray(KEY_ID_END, IV_END), {
        authTagLength: TAG_LENGTH
      })
      decipher.setAAD(Buffer.from(context))
      decipher.setAuthTag(bytes.subarray(-TAG_LENGTH))
      try {
        const plaintext = decipher.update(bytes.subarray(IV_END, -TAG_LENGTH))
        // `final` throws if the authentication tag is wrong. Its result is not needed, because in GCM it contains no plaintext
        // (NIST SP 800-38D section 7.2).
        decipher.final()
        return plaintext
      } catch {
        return undefined
      }
    }
  }
}

/**
 * Returns a function that returns a new random IV of 96 bits, which is safe for up to 2^32 messages with one key (NIST SP 800-38D
 * section 8.3). One call of `randomFillSync` makes many IVs, because a call takes almost as long as an encryption.
 */
function createIvs(): () => Buffer {
  const ivs = Buffer.alloc(IV_LENGTH * IVS_AT_A_TIME)
  let used = ivs.length
  return function nextIv() {
    if (used === ivs.length) {
      randomFillSync(ivs)
      used = 0
    }
    used += IV_LENGTH
    return ivs.subarray(used - IV_LENGTH, used)
  }
}

function deriveKeys(purpose: string, secrets: readonly string[]) {
  const all = secrets.map(secret => deriveKey(purpose, secret))
  return { newest: all[0] as Key, byId: new Map(all.map(({ id, key }) => [id.readUInt32BE(0), key])) }
}

function hashKeys(purpose: string, secrets: readonly string[]): readonly KeyObject[] {
  return secrets.map(secret => deriveKey(`hash, ${purpose}`, secret).key)
}

/** Derives a key from both keys. The second key is the salt, which may be a random value (RFC 5869 section 3.1). */
function combined(key: KeyObject, secondKey: string | undefined): KeyObject {
  if (secondKey === undefined) return key
  return createSecretKey(Buffer.from(hkdfSync('sha256', key, secondKey, `second key v${VERSION}`, 32)))
}

function deriveKey(purpose: string, secret: string): Key {
  const bytes = Buffer.from(hkdfSync('sha256', secret, 'platform-auth-server', `${purpose} v${VERSION}`, 36))
  return { key: createSecretKey(bytes.subarray(0, 32)), id: bytes.subarray(32) }
}
