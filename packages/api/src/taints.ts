import type { Taint, Toleration } from './objects.ts'

/**
 * Whether a toleration covers a taint (scheduling.md 7.1). An empty key covers every key. `Gt` and `Lt` require
 * both values to be 64-bit integers in canonical decimal form, with the taint's greater (less) than the
 * toleration's.
 */
export function tolerates(toleration: Toleration, taint: Taint): boolean {
  // Clients may send an empty effect instead of none; the type does not allow it.
  if ((toleration.effect ?? '') !== '' && toleration.effect !== taint.effect) return false
  if ((toleration.key ?? '') !== '' && toleration.key !== taint.key) return false
  const wanted = toleration.value ?? ''
  const value = taint.value ?? ''
  const { operator } = toleration
  if (operator === 'Exists') return true
  if (operator === 'Gt' || operator === 'Lt') return isPast(value, wanted, operator)
  // An empty operator means `Equal` as well; an unknown one covers nothing.
  return ((operator ?? '') === '' || operator === 'Equal') && value === wanted
}

function isPast(value: string, bound: string, operator: 'Gt' | 'Lt'): boolean {
  const [number, limit] = [canonicalInteger(value), canonicalInteger(bound)]
  if (number === undefined || limit === undefined) return false
  return operator === 'Gt' ? number > limit : number < limit
}

const int64Max = 9_223_372_036_854_775_807n

function canonicalInteger(text: string): bigint | undefined {
  if (!/^(0|-?[1-9]\d*)$/.test(text)) return undefined
  const number = BigInt(text)
  return number > int64Max || number < -int64Max - 1n ? undefined : number
}

/** The first taint that these tolerations do not cover; PreferNoSchedule taints are ignored. */
export function untoleratedTaint(
  taints: readonly Taint[],
  tolerations: readonly Toleration[] | undefined,
): Taint | undefined {
  return taints.find(
    (taint) =>
      taint.effect !== 'PreferNoSchedule' &&
      !(tolerations ?? []).some((toleration) => tolerates(toleration, taint)),
  )
}

/** Compares key and effect, but not the value (lifecycle.md 1). */
export function sameTaint(a: Pick<Taint, 'key' | 'effect'>, b: Pick<Taint, 'key' | 'effect'>): boolean {
  return a.key === b.key && a.effect === b.effect
}

/** `key[=value]:effect`, as users write it. */
export function taintText(taint: Taint): string {
  return `${taint.key}${taint.value === undefined || taint.value === '' ? '' : `=${taint.value}`}:${taint.effect}`
}

const ephemeral: readonly Pick<Taint, 'key' | 'effect'>[] = [
  { key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' },
  { key: 'node.kubernetes.io/not-ready', effect: 'NoExecute' },
  { key: 'node.kubernetes.io/unreachable', effect: 'NoSchedule' },
  { key: 'node.cloudprovider.kubernetes.io/uninitialized', effect: 'NoSchedule' },
  { key: 'karpenter.sh/unregistered', effect: 'NoExecute' },
]

/** Taints that a starting node has temporarily (lifecycle.md 3.4). */
export function isKnownEphemeralTaint(taint: Taint): boolean {
  return taint.key.startsWith('readiness.k8s.io/') || ephemeral.some((known) => sameTaint(known, taint))
}
