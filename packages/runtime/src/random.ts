import { randomBytes } from 'node:crypto'

/** A source of random numbers; passed as an argument, so that a run can be repeated from a seed. */
export interface Random {
  /** A uniformly distributed integer in [0, 2^32). */
  uint32(): number
  /** Derives an independent source from this one and `label`; forks do not affect each other. */
  fork(label: string): Random
}

/** Cryptographically strong randomness of the host; required for tokens and keys. */
export class SystemRandom implements Random {
  uint32(): number {
    return randomBytes(4).readUInt32LE()
  }

  fork(): Random {
    return this
  }
}

/** A reproducible source (splitmix32 over a hashed seed). Not for secrets, except in simulations. */
export class SeededRandom implements Random {
  readonly #seed: number
  #state: number

  constructor(seed: number | string) {
    this.#seed = hash(String(seed))
    this.#state = this.#seed
  }

  uint32(): number {
    this.#state = (this.#state + 0x9e3779b9) | 0
    let z = this.#state
    z = Math.imul(z ^ (z >>> 16), 0x21f0aaad)
    z = Math.imul(z ^ (z >>> 15), 0x735a2d97)
    return (z ^ (z >>> 15)) >>> 0
  }

  fork(label: string): Random {
    return new SeededRandom(`${this.#seed}/${label}`)
  }
}

/** A float in [0, 1). */
export function unit(random: Random): number {
  return random.uint32() / 0x1_0000_0000
}

/** An integer in [low, high], both inclusive. */
export function integerBetween(random: Random, low: number, high: number): number {
  return low + Math.floor(unit(random) * (high - low + 1))
}

/** `length` characters drawn uniformly from `alphabet`. */
export function randomString(random: Random, length: number, alphabet: string): string {
  let text = ''
  for (let i = 0; i < length; i++) text += alphabet[integerBetween(random, 0, alphabet.length - 1)]
  return text
}

/** A random (version 4) UUID, lower case. */
export function uuid(random: Random): string {
  const bytes = Buffer.alloc(16)
  for (let i = 0; i < 16; i += 4) bytes.writeUInt32LE(random.uint32(), i)
  bytes[6] = ((bytes[6] as number) & 0x0f) | 0x40
  bytes[8] = ((bytes[8] as number) & 0x3f) | 0x80
  const hex = bytes.toString('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}

function hash(text: string): number {
  let h = 0x811c9dc5
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193)
  return h >>> 0
}
