import { createHash } from 'node:crypto'

export interface Person {
  /** The id has twelve capital letters and digits, like a user id of the platform. */
  readonly id: string
  readonly name: string
  readonly givenName: string
  /** Undefined if the name is a single word. */
  readonly familyName: string | undefined
  readonly userName: string
  readonly email: string
}

/** The sign-in page has a button for each of these names. It also accepts any other name. */
export const offeredPeople = ['Ada Lovelace', 'Grace Hopper', 'Zaha Hadid', 'Antoni Gaudí', 'Kenzō Tange'] as const

export type People = ReturnType<typeof createPeople>

/** Remembers the people who signed in. When there are more than `maxPeople`, the least recently used are evicted. */
export function createPeople(maxPeople = 10_000) {
  const recent = new Map<string, Person>()

  function markUsed(person: Person): Person {
    recent.delete(person.id)
    recent.set(person.id, person)
    for (const id of recent.keys()) {
      if (recent.size <= maxPeople) break
      recent.delete(id)
    }
    return person
  }

  return {
    /** Returns the person with this name. The case of the letters does not matter. */
    signIn: (name: string) => markUsed(personNamed(name)),
    find(id: string) {
      const person = recent.get(id)
      return person && markUsed(person)
    }
  }
}

/** Normalizes a typed name: composed letters (NFC), single spaces, no control characters. */
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
