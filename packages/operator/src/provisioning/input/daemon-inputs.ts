/** What the engine is told of DaemonSets: one pod of each, as it would be on a new node. */
import {
  containerDefaults,
  type DaemonSet,
  type Pod,
  type PodSpec,
  withContainerDefaults,
  withRequestsFromLimits,
} from '@tenon/api'
import { type DaemonInput, shapeProblems } from '@tenon/engine'
import { type Caches, indexes, servesDevices } from '../../state/caches.ts'
import { createdOf, type LastDaemonPods } from './last-daemon-pods.ts'
import type { ClusterState } from '../../state/cluster-state.ts'

type DaemonCaches = Pick<Caches, 'daemonSets' | 'limitRanges' | 'pods'> & Parameters<typeof servesDevices>[0]

/** One pod per DaemonSet: its newest, else the last there was, else what its template would make. */
export function daemonInputs(
  caches: DaemonCaches,
  state: Pick<ClusterState, 'isWellFormed'>,
  lastPods: Pick<LastDaemonPods, 'of'>,
): readonly DaemonInput[] {
  const areDevicesServed = servesDevices(caches)
  return caches.daemonSets
    .list()
    .filter((daemonSet) => daemonSet.metadata.deletionTimestamp === undefined)
    .flatMap((daemonSet): readonly DaemonInput[] => {
      const { metadata, spec } = daemonSet.spec.template
      const name = `${daemonSet.metadata.namespace ?? ''}/${daemonSet.metadata.name}`
      if (shapeProblems({ apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec }) !== undefined) return []
      const isOne = (pod: Pod) => isControlledBy(pod, daemonSet) && state.isWellFormed(pod)
      const newest =
        newestOf(caches.pods.byIndex(indexes.byOwner, daemonSet.metadata.uid ?? ''), isOne) ??
        lastPods.of(daemonSet)
      const base = newest?.spec ?? completed(caches, daemonSet)
      if (!areDevicesServed && (base.resourceClaims ?? []).length > 0) return []
      const { nodeAffinity, ...otherAffinity } = base.affinity ?? {}
      const required = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution
      const ownPin = newest === undefined ? nodeAffinity : undefined
      const affinity =
        required === undefined ? ownPin : { requiredDuringSchedulingIgnoredDuringExecution: required }
      const { nodeName: _, ...unbound } = base
      return [
        {
          name,
          namespace: daemonSet.metadata.namespace ?? '',
          labels: metadata?.labels ?? {},
          spec: { ...unbound, affinity: { ...otherAffinity, ...(affinity && { nodeAffinity: affinity }) } },
        },
      ]
    })
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
}

/** The first of those that were created last. */
function newestOf(pods: readonly Pod[], isOne: (pod: Pod) => boolean): Pod | undefined {
  let newest: Pod | undefined
  for (const pod of pods) {
    // Asked last, as it takes the longest and there are as many as nodes.
    if (newest !== undefined && createdOf(pod) <= createdOf(newest)) continue
    if (isOne(pod)) newest = pod
  }
  return newest
}

function isControlledBy({ metadata }: Pod, { metadata: { uid } }: DaemonSet): boolean {
  return (metadata.ownerReferences ?? []).some((owner) => owner.controller === true && owner.uid === uid)
}

/** The template's spec as admission would complete it for a pod. */
function completed(
  { limitRanges }: DaemonCaches,
  { metadata: { namespace = '' }, spec }: DaemonSet,
): PodSpec {
  const items = limitRanges
    .byIndex(indexes.byNamespace, namespace)
    .flatMap((range) => range.spec?.limits ?? [])
  return withContainerDefaults(withRequestsFromLimits(spec.template.spec), containerDefaults(items))
}
