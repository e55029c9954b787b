/** What a flag of Cluster Autoscaler is. */
import type { FlagDefinition, FlagKind } from '@tenon/api/flags'

/**
 * What a flag does here (cluster-autoscaler.md 8): `S` works; `A` is accepted and changes nothing; `W` is accepted
 * with a warning that it has no effect.
 */
export type FlagClass = 'S' | 'A' | 'W'

export interface AutoscalerFlag extends FlagDefinition {
  /** Without dashes before it. One that ends with `*` stands for all that begin so. */
  readonly flag: string
  readonly class: FlagClass
  /** Of class `W`: `changed` warns for values other than the default only. */
  readonly warns?: 'given' | 'changed'
}

/** Flags that belong together in the help. */
export interface FlagGroup {
  readonly title: string
  readonly flags: readonly AutoscalerFlag[]
}

type Short = readonly [flag: string, kind: FlagKind, fallback: string, meaning: string]

export function working(...flags: readonly Short[]): readonly AutoscalerFlag[] {
  return flags.map(([flag, kind, fallback, meaning]) => ({ flag, kind, fallback, meaning, class: 'S' }))
}

export function accepted(...flags: readonly Short[]): readonly AutoscalerFlag[] {
  return flags.map(([flag, kind, fallback, meaning]) => ({ flag, kind, fallback, meaning, class: 'A' }))
}

/** Warned about whenever they are given. */
export function withoutEffect(...flags: readonly Short[]): readonly AutoscalerFlag[] {
  return flags.map(([flag, kind, fallback, meaning]) => ({ flag, kind, fallback, meaning, class: 'W' }))
}

/** Warned about when they ask for anything but the default. */
export function withoutEffectIfChanged(...flags: readonly Short[]): readonly AutoscalerFlag[] {
  return withoutEffect(...flags).map((each) => ({ ...each, warns: 'changed' }))
}
