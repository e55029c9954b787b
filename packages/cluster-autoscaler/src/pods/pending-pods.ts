/** The pods that need a node: what is left of the unschedulable ones (cluster-autoscaler.md 3.2). */
import type { Pod } from '@tenon/api'
import type { NodeEntry, Snapshot } from '@tenon/filters'
import { isDaemonSetPod } from './pod-traits.ts'
import { isExpendable } from './classes.ts'
import { controllerOf, kindOf } from './equivalence.ts'

const tpuPrefix = 'cloud-tpus.google.com/'
/** Most kinds of one controller's pods that are remembered as finding no place. */
const mostKinds = 10

export interface PendingPods {
  readonly pods: readonly Pod[]
  /** Controllers whose pods are of too many kinds to remember all. */
  readonly overflowing: number
}

/** Where each pod found a place last, by UID. */
export type PlacementHints = Map<string, string>

/** Where pods go for which nodes were asked for, by UID. */
export type PlannedPlaces = ReadonlyMap<string, string>

/**
 * Puts pods on nodes that are there or on their way; they stay there in the snapshot.
 * @param unschedulable pods of the scheduler, and copies of those whose node is being drained.
 * @param planned comes before other pods of the same priority: who comes first may not take the room that was meant
 *   for others, as no further node would be asked for if all went where they were planned.
 * @returns those that need another node, the most important first.
 */
export function* pendingPods(
  unschedulable: readonly Pod[],
  snapshot: Snapshot,
  hints: PlacementHints,
  planned: PlannedPlaces,
  priorityCutoff: number,
): Generator<void, PendingPods> {
  const turnOf = ({ metadata: { uid = '' } }: Pod) => (planned.has(uid) ? 0 : 1)
  const wanted = unschedulable
    .filter((pod) => !isExpendable(pod, priorityCutoff))
    .map(withoutTpus)
    .toSorted((a, b) => (b.spec.priority ?? 0) - (a.spec.priority ?? 0) || turnOf(a) - turnOf(b))
  const refused = new Map<string, Set<string>>()
  const overflowing = new Set<string>()
  const left: Pod[] = []
  const places: PlacementHints = new Map()
  for (const pod of wanted) {
    const uid = pod.metadata.uid ?? ''
    const controller = controllerOf(pod)
    const kinds = controller === undefined ? undefined : refused.get(controller)
    const isRefused = kinds?.has(kindOf(pod)) ?? false
    const entry = isRefused ? undefined : placeFor(pod, snapshot, planned.get(uid) ?? hints.get(uid))
    if (entry !== undefined) {
      snapshot.assign(pod, entry.name)
      places.set(uid, entry.name)
    } else {
      left.push(pod)
      if (controller !== undefined && !isRefused) {
        const known = kinds ?? new Set<string>()
        if (known.size < mostKinds) refused.set(controller, known.add(kindOf(pod)))
        else overflowing.add(controller)
      }
    }
    yield
  }
  hints.clear()
  for (const [uid, name] of places) hints.set(uid, name)
  return { pods: left.filter((pod) => !isDaemonSetPod(pod)), overflowing: overflowing.size }
}

/** A node that takes the pod: the one where it was last, else the first. */
export function placeFor(pod: Pod, snapshot: Snapshot, hint: string | undefined): NodeEntry | undefined {
  const hinted = hint === undefined ? undefined : snapshot.node(hint)
  if (hinted !== undefined && isOpen(hinted) && snapshot.check(pod, hinted) === undefined) return hinted
  return snapshot.find(pod, isOpen)
}

function isOpen(entry: NodeEntry): boolean {
  return !entry.unschedulable
}

/** TPUs are attached by name, not by node: they do not count. */
function withoutTpus(pod: Pod): Pod {
  const has = pod.spec.containers.some(({ resources }) =>
    Object.keys({ ...resources?.requests, ...resources?.limits }).some((name) => name.startsWith(tpuPrefix)),
  )
  if (!has) return pod
  const without = (list: Readonly<Record<string, string>> | undefined) =>
    Object.fromEntries(Object.entries(list ?? {}).filter(([name]) => !name.startsWith(tpuPrefix)))
  const containers = pod.spec.containers.map((each) => ({
    ...each,
    resources: {
      ...each.resources,
      requests: without(each.resources?.requests),
      limits: without(each.resources?.limits),
    },
  }))
  return { ...pod, spec: { ...pod.spec, containers } }
}
