/** Which of the nodes that a decision launched open first (planned-placement.md). */
import { parseResources, type Pod, type Resources } from '@tenon/api'
import { difference, fits, podRequests } from '@tenon/engine'
import type { Caches } from '../../observe/caches.ts'
import type { ClusterState } from '../../state/cluster-state.ts'

/**
 * The claims on whose Nodes no pod would fit that waits for another Node of the batch. The scheduler, which
 * tries every waiting pod as soon as one Node opens, can put nothing there that was not meant for them.
 */
export function nodesWithoutRoom(
  state: PlannedPods & Pick<ClusterState, 'nodeOf'>,
  caches: { readonly nodeClaims: Pick<Caches['nodeClaims'], 'get'> },
  batch: ReadonlySet<string>,
): ReadonlySet<string> {
  const waiting = new Map(
    [...batch].map((name) => [name, waitingFor(state, name).map((pod) => podRequests(pod.spec, pod.status))]),
  )
  const shapes = shapesOf([...waiting])
  const tight = [...waiting].filter(([name, requests]) => {
    const claim = caches.nodeClaims.get({ name })
    const node = claim === undefined ? undefined : state.nodeOf(claim)
    const room = requests.reduce(difference, parseResources(node?.status?.allocatable))
    return ![...shapes.values()].some(({ amounts, names }) => isForOther(names, name) && fits(amounts, room))
  })
  return new Set(tight.map(([name]) => name))
}

interface PlannedPods {
  readonly plans: Pick<ClusterState['plans'], 'podsOf'>
  readonly pods: Pick<ClusterState['pods'], 'unplaced'>
}

interface Shape {
  readonly amounts: Resources
  /** Claims that pods of this shape wait for. */
  readonly names: Set<string>
}

/** Batches are large and pods much alike. */
function shapesOf(waiting: readonly (readonly [string, readonly Resources[]])[]): ReadonlyMap<string, Shape> {
  const shapes = new Map<string, Shape>()
  for (const [name, requests] of waiting) {
    for (const amounts of requests) {
      const key = JSON.stringify(Object.entries(amounts).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      const shape = shapes.get(key) ?? { amounts, names: new Set() }
      shape.names.add(name)
      shapes.set(key, shape)
    }
  }
  return shapes
}

const isForOther = (names: ReadonlySet<string>, name: string): boolean =>
  names.size > (names.has(name) ? 1 : 0)

function waitingFor({ plans, pods }: PlannedPods, name: string): readonly Pod[] {
  return plans.podsOf({ kind: 'claim', name }).flatMap((uid) => pods.unplaced(uid) ?? [])
}
