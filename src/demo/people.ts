import { createHash } from 'node:crypto'

export interface Person {
  /** Twelve capital letters and digits, as the platform's user ids are. */
  readonly id: string
  readonly name: string
  readonly givenName: string
  /** A name of one word has none. */
  readonly familyName: string | undefined
  readonly userName: string
  readonly email: string
}

/** Offered on the sign-in page with one click; any other name works as well. */
export const offeredPeople = ['Ada Lovelace', 'Grace Hopper', 'Zaha Hadid', 'Antoni Gaudí', 'Kenzō Tange'] as const

export interface People {
  /** The person behind a name as it was typed; the same name in any case and spacing is the same person. */
  signIn(name: string): Person
  find(id: string): Person | undefined
}

/** Everybody who signed in, the longest unseen forgotten first when there are too many. */
export function createPeople(most = 10_000): People {
  const seen = new Map<string, Person>()

  function see(person: Person): Person {
    seen.delete(person.id)
    seen.set(person.id, person)
    for (const id of seen.keys()) {
      if (seen.size <= most) break
      seen.delete(id)
    }
    return person
  }

  return {
    signIn: name => see(personNamed(name)),
    find(id) {
      const person = seen.get(id)
      return person && see(person)
    }
  }
}

/** A typed name in one form: no control characters, single spaces, composed letters. */
export function tidyName(typed: string): string {
  return typed
    .normalize('NFC')
    .replace(/[\p{Cc}\s]+/gu, ' ')
    .trim()
}

function personNamed(name: string): Person {
  const id = idOf(name)
  const [givenName = name, ...others] = name.split(' ')
  const userName = asciiWords(name).join('.') || id.toLowerCase()
  return {
    id,
    name,
    givenName,
    familyName: others.join(' ') || undefined,
    userName,
    email: `${userName}@example.com`
  }
}

function idOf(name: string): string {
  const digest = createHash('sha256').update(name.toLowerCase()).digest('hex').slice(0, 16)
  return BigInt(`0x${digest}`).toString(36).toUpperCase().padStart(12, '0').slice(-12)
}

function asciiWords(name: string): string[] {
  return (
    name
      .normalize('NFKD')
      .replace(/\p{M}/gu, '')
      .toLowerCase()
      .match(/[a-z0-9]+/g) ?? []
  )
}
