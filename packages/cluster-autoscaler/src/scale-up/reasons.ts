/** Why a group does not grow for a pod (cluster-autoscaler.md 4.3), as data and as text. */
import type { ExceededQuota } from '../model.ts'

export type SkipReason =
  | { readonly kind: 'notReady' }
  | { readonly kind: 'backoff' }
  | { readonly kind: 'maxSize' }
  | { readonly kind: 'quota'; readonly exceeded: readonly ExceededQuota[] }
  /** The account's instance quota is used up. */
  | { readonly kind: 'instanceQuota' }
  /** A problem of the group's cloud, settings or permissions, or a hold. */
  | { readonly kind: 'fault'; readonly reason: string }
  | { readonly kind: 'maxNodesTotal' }
  | { readonly kind: 'notChosen' }
  /** A scheduler filter rejects the pod on a new node, with its message. */
  | { readonly kind: 'filter'; readonly reasons: readonly string[] }
  /** The filters accept the pod, but no more nodes can be added for it. */
  | { readonly kind: 'noRoom' }

export function renderSkipReason(reason: SkipReason): readonly string[] {
  switch (reason.kind) {
    case 'notReady':
      return ['not ready for scale-up']
    case 'backoff':
      return ['in backoff after failed scale-up']
    case 'maxSize':
      return ['max node group size reached']
    case 'quota':
      return reason.exceeded.map(renderExceeded)
    case 'instanceQuota':
      return ["the cloud's quota of instances is used up"]
    case 'fault':
      return [`not ready for scale-up (${reason.reason})`]
    case 'maxNodesTotal':
      return ['max total nodes in cluster reached']
    case 'notChosen':
      return ['expander dropped the options of all node groups that fit']
    case 'noRoom':
      return ['no more nodes can be added for it']
    case 'filter':
      return reason.reasons
  }
}

/** `exceeded quota: "team", resources: cpu (4 of 40 left)`. */
export function renderExceeded({ quota, resources }: ExceededQuota): string {
  const texts = resources.map(({ name, left }) => (left === undefined ? name : `${name} (${left})`))
  return `exceeded quota: "${quota}", resources: ${texts.join(', ')}`
}

/** Reason by group id. */
export type Refusals = ReadonlyMap<string, SkipReason>

/** Such as `2 Insufficient cpu, 1 max node group size reached`, the most frequent first. */
export function renderRefusals(refusals: Refusals): string {
  const counts = new Map<string, number>()
  for (const reason of refusals.values())
    for (const text of renderSkipReason(reason)) counts.set(text, (counts.get(text) ?? 0) + 1)
  return [...counts]
    .toSorted(([a, first], [b, second]) => second - first || (a < b ? -1 : 1))
    .map(([text, count]) => `${count} ${text}`)
    .join(', ')
}
