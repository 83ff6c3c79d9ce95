/** Explains from Node's error code why a connection failed, and gives advice. */

export interface Place {
  readonly host: string
  /** The setting that contains the address, or undefined for a built-in address. */
  readonly setting: string | undefined
  readonly timeoutSeconds: number
}

export interface Explanation {
  readonly message: string
  readonly next: string
}

export function explainConnectionError(code: string | undefined, place: Place): Explanation {
  const found = kinds.find(({ codes }) => code !== undefined && codes.test(code))
  return (found ?? other).explain(place, code !== undefined && /^[A-Z0-9_]{1,60}$/.test(code) ? code : 'unknown reason')
}

interface Kind {
  readonly codes: RegExp
  readonly explain: (place: Place, code: string) => Explanation
}

const inSetting = ({ setting }: Place) => (setting === undefined ? '' : ` in ${setting}`)

const kinds: readonly Kind[] = [
  {
    codes: /^ENOTFOUND$/,
    explain: (place, code) => ({
      message: `DNS does not know the name of ${place.host} (${code}).`,
      next: `Check the name${inSetting(place)}, and whether this machine can resolve other names.`
    })
  },
  {
    codes: /^EAI_/,
    explain: ({ host }, code) => ({
      message: `DNS did not answer the query for ${host} (${code}).`,
      next: 'Check the DNS servers of this machine or container.'
    })
  },
  {
    codes: /^ECONNREFUSED$/,
    explain: (place, code) => ({
      message: `${place.host} refuses connections (${code}).`,
      next: `Check host and port${inSetting(place)}. If they are right, no server listens there or a firewall rejects the connection.`
    })
  },
  {
    codes: /^E(NET|HOST)UNREACH$/,
    explain: ({ host }, code) => ({
      message: `There is no network route to ${host} (${code}).`,
      next: 'Check the network and the firewall of this machine.'
    })
  },
  {
    codes: /^ETIMEDOUT$/,
    explain: ({ host, timeoutSeconds }) => ({
      message: `${host} did not answer within ${timeoutSeconds} s.`,
      next: 'Check whether a firewall blocks the connection, or whether this machine needs a proxy (HTTPS_PROXY).'
    })
  },
  {
    codes: /^(ECONNRESET|ECONNABORTED|EPIPE)$/,
    explain: ({ host }, code) => ({
      message: `${host} closed the connection (${code}).`,
      next: 'Check again. If the problem persists, look for a firewall or proxy between this machine and that host.'
    })
  },
  {
    codes: /^CERT_HAS_EXPIRED$/,
    explain: ({ host }, code) => ({
      message: `The certificate of ${host} has expired (${code}).`,
      next: 'Check the clock of this machine. If the clock is right, the operator of that host must renew the certificate.'
    })
  },
  {
    codes: /^CERT_NOT_YET_VALID$/,
    explain: ({ host }, code) => ({
      message: `The certificate of ${host} is not valid yet (${code}).`,
      next: 'Check the clock of this machine, which is probably slow.'
    })
  },
  {
    codes: /^ERR_TLS_CERT_ALTNAME_INVALID$/,
    explain: (place, code) => ({
      message: `The certificate of ${place.host} is for another name (${code}).`,
      next: `Check the host${inSetting(place)}. If the host is right, another server answers in its place.`
    })
  },
  {
    codes: /CERT|^UNABLE_TO_/,
    explain: ({ host }, code) => ({
      message: `This machine does not trust the certificate of ${host} (${code}).`,
      next: 'If your own authority or an inspecting proxy signed it, set NODE_EXTRA_CA_CERTS to the file of its certificate.'
    })
  },
  {
    codes: /^EPROTO$|^ERR_SSL_/,
    explain: (place, code) => ({
      message: `${place.host} does not speak TLS as expected (${code}).`,
      next: `Check scheme and port${inSetting(place)}. The port must speak TLS.`
    })
  }
]

const other: Kind = {
  codes: /./,
  explain: (place, code) => ({
    message: `The connection to ${place.host} failed (${code}).`,
    next: `Check the address${inSetting(place)} and the network of this machine.`
  })
}
