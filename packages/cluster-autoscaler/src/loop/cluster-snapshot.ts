/** The snapshot of a loop (cluster-autoscaler.md 2.3, 2.7). */
import type { Node, Pod } from '@tenon/api'
import { DeviceIndex, type PodReader, Snapshot } from '@tenon/filters'
import type { ClusterCache, DeviceObjects, NodeTemplate } from '../model.ts'
import { readyOf } from '../registry/node-state.ts'
import { nodeLike } from '../templates/node-templates.ts'

/** Node plugins of CSI drivers start after the node is ready; so long it is assumed that all will. */
const driversStartMs = 3 * 60_000
/** Nodes and pods between two checks of the clock. */
const atOnce = 100

/** @param placed pods by the node that they are bound to or nominated for. */
export function* buildSnapshot(
  nodes: readonly Node[],
  placed: ReadonlyMap<string, readonly Pod[]>,
  reader: PodReader,
  cluster: Pick<ClusterCache, 'namespaces' | 'volumes' | 'devices'>,
  nowMs: number,
): Generator<void, Snapshot> {
  const devices = deviceIndexOf(cluster.devices())
  const snapshot = new Snapshot({
    reader,
    volumes: cluster.volumes(),
    namespaces: cluster.namespaces(),
    ...(devices !== undefined && { devices }),
  })
  let count = 0
  for (const node of nodes) {
    const readySinceMs = Date.parse(readyOf(node)?.lastTransitionTime ?? '')
    snapshot.setNode(node, nowMs - readySinceMs < driversStartMs ? {} : undefined)
    if (++count % atOnce === 0) yield
  }
  for (const [name, pods] of placed) {
    for (const pod of pods) {
      snapshot.assign(pod, name)
      if (++count % atOnce === 0) yield
    }
  }
  return snapshot
}

/** Undefined if no pod can need it, so that nothing is spent on it, or if classes cannot be read. */
function deviceIndexOf(objects: DeviceObjects | undefined): DeviceIndex | undefined {
  if (objects?.classes === undefined) return undefined
  const serveResources = objects.classes.some(({ spec }) => (spec.extendedResourceName ?? '') !== '')
  if (objects.claims.length === 0 && !serveResources) return undefined
  const index = new DeviceIndex()
  for (const slice of objects.slices) index.setSlice(slice)
  for (const each of objects.classes) index.setClass(each)
  for (const claim of objects.claims) index.setClaim(claim)
  return index
}

/** What upcoming nodes are added for. */
export interface AwaitedNodes {
  readonly groupId: string
  readonly template: NodeTemplate
  readonly count: number
}

/** The placeholder name of a group's upcoming node. */
export function awaitedName(groupId: string, index: number): string {
  return `upcoming-node-${index}-of-${groupId}`
}

/**
 * Adds upcoming nodes, so that pods can be placed on them.
 * @returns their names.
 */
export function addAwaited(
  snapshot: Snapshot,
  { groupId, template, count }: AwaitedNodes,
): readonly string[] {
  return Array.from({ length: count }, (_, index) => {
    const name = awaitedName(groupId, index)
    const { node, pods, ...parts } = nodeLike(template, name, true)
    snapshot.setNode(node, parts)
    for (const pod of pods) snapshot.assign(pod, name)
    return name
  })
}

/** Pods by the node that they are bound to or nominated for. */
export function podsByNode(scheduled: readonly Pod[], nominated: readonly Pod[]): Map<string, Pod[]> {
  const byNode = new Map<string, Pod[]>()
  const add = (pod: Pod, name: string) => {
    const list = byNode.get(name)
    if (list === undefined) byNode.set(name, [pod])
    else list.push(pod)
  }
  for (const pod of scheduled) add(pod, pod.spec.nodeName ?? '')
  for (const pod of nominated) add(pod, pod.status?.nominatedNodeName ?? '')
  return byNode
}
