/** The unschedulable pods that need a new node (cluster-autoscaler.md 3.2). */
import type { Pod } from '@tenon/api'
import type { NodeEntry, Snapshot } from '@tenon/filters'
import { isDaemonSetPod } from './pod-traits.ts'
import { isExpendable } from './classes.ts'
import { controllerOf, kindOf } from './equivalence.ts'

const tpuPrefix = 'cloud-tpus.google.com/'
/** Maximum kinds per controller that are remembered as not fitting. */
const mostKinds = 10

export interface PendingPods {
  readonly pods: readonly Pod[]
  /** The number of controllers with more kinds of pods. */
  readonly overflowing: number
}

/** The last node of each pod in a simulation, by UID. */
export type PlacementHints = Map<string, string>

/** Planned nodes of pods for which nodes were requested, by UID. */
export type PlannedPlaces = ReadonlyMap<string, string>

/**
 * Places pods on existing and upcoming nodes, and keeps them there in the snapshot.
 * @param unschedulable pods of the scheduler, and copies of pods on draining nodes.
 * @param planned are placed before other pods of the same priority. Otherwise others could take their planned room, and
 * no further node would be requested.
 * @returns pods that need another node, highest priority first.
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

/** A node on which the pod fits: its last one, else the first. */
export function placeFor(pod: Pod, snapshot: Snapshot, hint: string | undefined): NodeEntry | undefined {
  const hinted = hint === undefined ? undefined : snapshot.node(hint)
  if (hinted !== undefined && isOpen(hinted) && snapshot.check(pod, hinted) === undefined) return hinted
  return snapshot.find(pod, isOpen)
}

function isOpen(entry: NodeEntry): boolean {
  return !entry.unschedulable
}

/** TPUs are attached by name, not by node, so they are ignored. */
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
