/** Which changes of Nodes matter to the life of their claims, and which claims those are. */
import type { Node } from '@tenon/api'
import type { Change } from '@tenon/kube'
import { type Caches, indexes } from '../caches.ts'
import { isSameValue } from '../same-value.ts'

/** Whether a change tells of more than heartbeats, which mean nothing for the life of a claim. */
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

/** Names of the claims of a Node. */
export function claimNamesOf({ nodeClaims }: Pick<Caches, 'nodeClaims'>, node: Node): readonly string[] {
  return nodeClaims
    .byIndex(indexes.byProviderId, node.spec?.providerID ?? '')
    .map((claim) => claim.metadata.name)
}
