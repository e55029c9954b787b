/** DaemonSets in the engine's input: one pod of each, as it would be on a new node. */
import {
  containerDefaults,
  controllerOf,
  type DaemonSet,
  type Pod,
  type PodSpec,
  withContainerDefaults,
  withRequestsFromLimits,
} from '@tenon/api'
import { type DaemonInput, shapeProblems } from '@tenon/engine'
import { type Caches, indexes, servesDevices } from '../../state/caches.ts'
import { isDaemonPod } from '../../state/pods/pods.ts'
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
    // Last, as it is the most expensive check and there is a pod on every node.
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

interface LastPod {
  readonly pod: Pod
  /** Of the DaemonSet when the pod was first seen: another template makes other pods. */
  readonly generation: number
}

/**
 * The last pod of each DaemonSet. A webhook may set requests that the template does not show, and the pods are gone with
 * the last node just when the next one is decided about.
 */
export class LastDaemonPods {
  readonly #caches: Pick<Caches, 'daemonSets'>
  /** By UID of the DaemonSet. */
  readonly #last = new Map<string, LastPod>()

  constructor(caches: Pick<Caches, 'daemonSets' | 'pods'>, state: Pick<ClusterState, 'isWellFormed'>) {
    this.#caches = caches
    caches.pods.onChange(({ object }) => {
      if (state.isWellFormed(object) && isDaemonPod(object)) this.#see(object)
    })
    caches.daemonSets.onChange(({ kind, object }) => {
      if (kind === 'deleted') this.#last.delete(object.metadata.uid ?? '')
    })
  }

  #see(pod: Pod): void {
    const owner = controllerOf(pod)
    if (owner === undefined) return
    const known = this.#last.get(owner.uid)
    if (known !== undefined && known.pod.metadata.uid === pod.metadata.uid) {
      this.#last.set(owner.uid, { ...known, pod })
      return
    }
    if (known !== undefined && createdOf(pod) < createdOf(known.pod)) return
    const { namespace = '' } = pod.metadata
    const daemonSet = this.#caches.daemonSets.get({ namespace, name: owner.name })
    if (daemonSet?.metadata.uid === owner.uid)
      this.#last.set(owner.uid, { pod, generation: daemonSet.metadata.generation ?? 0 })
  }

  /** Undefined if no pod was seen since the template changed. */
  of({ metadata: { uid = '', generation = 0 } }: DaemonSet): Pod | undefined {
    const last = this.#last.get(uid)
    return last?.generation === generation ? last?.pod : undefined
  }
}

const createdOf = ({ metadata }: Pod): string => metadata.creationTimestamp ?? ''
