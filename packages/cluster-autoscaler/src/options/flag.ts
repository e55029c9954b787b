/** What a flag is. */

/**
 * What a flag does here (cluster-autoscaler.md 8): `S` works; `A` is accepted and changes nothing; `W` is accepted
 * with a warning that it has no effect.
 */
export type FlagClass = 'S' | 'A' | 'W'

/** `texts` may be given several times, each adding one; `commas` is a list with commas between. */
export type FlagKind = 'boolean' | 'integer' | 'number' | 'duration' | 'text' | 'texts' | 'commas'

export interface FlagDefinition {
  /** Without dashes before it. One that ends with `*` stands for all that begin so. */
  readonly name: string
  readonly kind: FlagKind
  /** As on a command line; empty for an empty text or list. */
  readonly fallback: string
  readonly class: FlagClass
  /** A sentence for the help. */
  readonly meaning: string
  /** Of class `W`: `changed` warns for values other than the default only. */
  readonly warns?: 'given' | 'changed'
}

/** Flags that belong together in the help. */
export interface FlagGroup {
  readonly title: string
  readonly flags: readonly FlagDefinition[]
}

type Short = readonly [name: string, kind: FlagKind, fallback: string, meaning: string]

export function working(...flags: readonly Short[]): readonly FlagDefinition[] {
  return flags.map(([name, kind, fallback, meaning]) => ({ name, kind, fallback, meaning, class: 'S' }))
}

export function accepted(...flags: readonly Short[]): readonly FlagDefinition[] {
  return flags.map(([name, kind, fallback, meaning]) => ({ name, kind, fallback, meaning, class: 'A' }))
}

/** Warned about whenever they are given. */
export function withoutEffect(...flags: readonly Short[]): readonly FlagDefinition[] {
  return flags.map(([name, kind, fallback, meaning]) => ({ name, kind, fallback, meaning, class: 'W' }))
}

/** Warned about when they ask for anything but the default. */
export function withoutEffectIfChanged(...flags: readonly Short[]): readonly FlagDefinition[] {
  return withoutEffect(...flags).map((flag) => ({ ...flag, warns: 'changed' }))
}
