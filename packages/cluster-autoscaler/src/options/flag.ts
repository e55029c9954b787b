/** The definition of a Cluster Autoscaler flag. */
import type { FlagDefinition, FlagKind } from '@tenon/api/flags'

/**
 * The effect of a flag here (cluster-autoscaler.md 8): `S` works; `A` is accepted without effect; `W` is accepted with
 * a warning that it has no effect.
 */
export type FlagClass = 'S' | 'A' | 'W'

export interface AutoscalerFlag extends FlagDefinition {
  /** Without dashes. A name that ends with `*` stands for all with this prefix. */
  readonly flag: string
  readonly class: FlagClass
  /** For class `W`: `changed` only warns for values other than the default. */
  readonly warns?: 'given' | 'changed'
  /** The cloud that reads it; with another one it is accepted, with a warning unless it is `quiet` there. */
  readonly only?: { readonly cloud: string; readonly elsewhere: 'warns' | 'quiet' }
  /** The cloud that does not read it, and why. */
  readonly except?: { readonly cloud: string; readonly reason: string }
}

/** A section of the help. */
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

/** Flags with a warning whenever they are given. */
export function withoutEffect(...flags: readonly Short[]): readonly AutoscalerFlag[] {
  return flags.map(([flag, kind, fallback, meaning]) => ({ flag, kind, fallback, meaning, class: 'W' }))
}

/** Flags with a warning when their value is not the default. */
export function withoutEffectIfChanged(...flags: readonly Short[]): readonly AutoscalerFlag[] {
  return withoutEffect(...flags).map((each) => ({ ...each, warns: 'changed' }))
}

/** Whether a cloud reads a flag. */
export function isRead({ only, except }: AutoscalerFlag, cloud: string): boolean {
  return (only === undefined || only.cloud === cloud) && except?.cloud !== cloud
}
