/** Filters for changes of Nodes and NodeClaims that controllers of the lifecycle can ignore. */
import type { Condition, Node, NodeClaim } from '@tenon/api'
import type { Change } from '@tenon/kube'
import { type Caches, indexes } from '../caches.ts'
import { isSameValue } from '../same-value.ts'

/** Whether the change is more than a heartbeat. */
export function isMoreThanHeartbeat(change: Change<Node>): boolean {
  if (change.kind !== 'updated') return true
  const { object, old } = change
  const ready = (node: Node) =>
    node.status?.conditions?.find((condition) => condition.type === 'Ready')?.status
  return (
    ready(object) !== ready(old) ||
    !isSameValue(object.spec, old.spec) ||
    !isSameValue(object.metadata.labels, old.metadata.labels) ||
    !isSameValue(object.metadata.finalizers, old.metadata.finalizers) ||
    !isSameValue(object.status?.allocatable, old.status?.allocatable) ||
    object.metadata.deletionTimestamp !== old.metadata.deletionTimestamp
  )
}

export function claimNamesOf({ nodeClaims }: Pick<Caches, 'nodeClaims'>, node: Node): readonly string[] {
  return nodeClaims
    .byIndex(indexes.byProviderId, node.spec?.providerID ?? '')
    .map((claim) => claim.metadata.name)
}

/** Conditions that only disruption sets and reads. */
const ofDisruption: ReadonlySet<string> = new Set(['Consolidatable', 'Drifted'])

/**
 * Whether the change is more than pod events and conditions of disruption. On a busy cluster nearly all changes are those,
 * and the lifecycle ignores them.
 */
export function isLifecycleChange(change: Change<NodeClaim>): boolean {
  if (change.kind !== 'updated') return true
  let answer = answers.get(change)
  if (answer === undefined) {
    answer = differs(change)
    answers.set(change, answer)
  }
  return answer
}

/** Several controllers ask about each change. */
const answers = new WeakMap<Change<NodeClaim>, boolean>()

function differs({ object, old }: Change<NodeClaim> & { readonly kind: 'updated' }): boolean {
  return (
    !isSameValue(object.spec, old.spec) ||
    !isSameValue({ ...object.metadata, resourceVersion: '' }, { ...old.metadata, resourceVersion: '' }) ||
    !isSameValue(lastingOf(object), lastingOf(old))
  )
}

function lastingOf({ status }: NodeClaim): object | undefined {
  if (status === undefined) return undefined
  const { lastPodEventTime: _, conditions, ...rest } = status
  return { ...rest, conditions: Array.isArray(conditions) ? conditions.filter(isLasting) : conditions }
}

/** Conditions may be malformed. */
function isLasting(condition: Partial<Condition> | null): boolean {
  return !ofDisruption.has(condition?.type ?? '')
}
