import type { Taint, Toleration } from './objects.ts'

/** Whether one toleration covers one taint (Kubernetes' rule; an empty key with Exists covers all). */
export function tolerates(toleration: Toleration, taint: Taint): boolean {
  // Clients send an empty effect for none; the type does not know it.
  if ((toleration.effect ?? '') !== '' && toleration.effect !== taint.effect) return false
  const operator = toleration.operator ?? 'Equal'
  if (toleration.key === undefined || toleration.key === '') return operator === 'Exists'
  if (toleration.key !== taint.key) return false
  return operator === 'Exists' || (toleration.value ?? '') === (taint.value ?? '')
}

/** The first taint that keeps a pod with these tolerations away for good; PreferNoSchedule never does. */
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

/** Same key and effect; values are not compared (lifecycle.md 1). */
export function sameTaint(a: Pick<Taint, 'key' | 'effect'>, b: Pick<Taint, 'key' | 'effect'>): boolean {
  return a.key === b.key && a.effect === b.effect
}

/** `key[=value]:effect` as users write taints. */
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

/** Taints a starting node carries for a while (lifecycle.md 3.4). */
export function isKnownEphemeralTaint(taint: Taint): boolean {
  return taint.key.startsWith('readiness.k8s.io/') || ephemeral.some((known) => sameTaint(known, taint))
}
