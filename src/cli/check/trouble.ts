/** Why there is no connection, told apart by the code that Node gives, each with what to do about it. */

export interface Place {
  readonly host: string
  /** Where the address was set; undefined for the built-in one. */
  readonly setting: string | undefined
  readonly timeoutSeconds: number
}

export interface Trouble {
  readonly message: string
  readonly next: string
}

export function connectionTrouble(code: string | undefined, place: Place): Trouble {
  const found = kinds.find(({ codes }) => code !== undefined && codes.test(code))
  return (found ?? other).says(place, code !== undefined && /^[A-Z0-9_]{1,60}$/.test(code) ? code : 'unknown reason')
}

interface Kind {
  readonly codes: RegExp
  readonly says: (place: Place, code: string) => Trouble
}

const inSetting = ({ setting }: Place) => (setting === undefined ? '' : ` in ${setting}`)

const kinds: readonly Kind[] = [
  {
    codes: /^ENOTFOUND$/,
    says: (place, code) => ({
      message: `DNS does not know the name of ${place.host} (${code}).`,
      next: `Check the name${inSetting(place)}, and whether this machine resolves others.`
    })
  },
  {
    codes: /^EAI_/,
    says: ({ host }, code) => ({
      message: `DNS did not answer when asked for ${host} (${code}).`,
      next: 'Check the DNS servers of this machine or container.'
    })
  },
  {
    codes: /^ECONNREFUSED$/,
    says: (place, code) => ({
      message: `${place.host} refuses connections (${code}).`,
      next: `Check host and port${inSetting(place)}; if they are right, nothing runs there or a firewall turns you away.`
    })
  },
  {
    codes: /^E(NET|HOST)UNREACH$/,
    says: ({ host }, code) => ({
      message: `No route leads to ${host} (${code}).`,
      next: 'Check the network and the firewall of this machine.'
    })
  },
  {
    codes: /^ETIMEDOUT$/,
    says: ({ host, timeoutSeconds }) => ({
      message: `${host} did not answer within ${timeoutSeconds} s.`,
      next: 'Check whether a firewall lets this machine out; the server goes straight, not through HTTPS_PROXY.'
    })
  },
  {
    codes: /^(ECONNRESET|ECONNABORTED|EPIPE)$/,
    says: ({ host }, code) => ({
      message: `${host} cut the connection (${code}).`,
      next: 'Check again; if it stays so, look for a firewall or proxy in between.'
    })
  },
  {
    codes: /^CERT_HAS_EXPIRED$/,
    says: ({ host }, code) => ({
      message: `The certificate of ${host} has expired (${code}).`,
      next: 'Check the clock of this machine; if it is right, whoever runs that host must renew the certificate.'
    })
  },
  {
    codes: /^CERT_NOT_YET_VALID$/,
    says: ({ host }, code) => ({
      message: `The certificate of ${host} is not valid yet (${code}).`,
      next: 'Check the clock of this machine; most likely it is slow.'
    })
  },
  {
    codes: /^ERR_TLS_CERT_ALTNAME_INVALID$/,
    says: (place, code) => ({
      message: `The certificate of ${place.host} is made out to another name (${code}).`,
      next: `Check the host${inSetting(place)}; if it is right, something else answers in its place.`
    })
  },
  {
    codes: /CERT|^UNABLE_TO_/,
    says: ({ host }, code) => ({
      message: `This machine does not trust the certificate of ${host} (${code}).`,
      next: 'If your own authority or an inspecting proxy signed it, name its certificate in NODE_EXTRA_CA_CERTS.'
    })
  },
  {
    codes: /^EPROTO$|^ERR_SSL_/,
    says: (place, code) => ({
      message: `${place.host} does not speak TLS as expected (${code}).`,
      next: `Check scheme and port${inSetting(place)}: TLS needs a port that speaks it.`
    })
  }
]

const other: Kind = {
  codes: /./,
  says: (place, code) => ({
    message: `There is no connection to ${place.host} (${code}).`,
    next: `Check the address${inSetting(place)} and the network of this machine.`
  })
}
