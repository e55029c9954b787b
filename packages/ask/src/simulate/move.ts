/** Where the pods of some nodes would run without these nodes (adoption.md 1, 2). */
import {
  karpenterKinds,
  kinds,
  type KubeObject,
  labels,
  meetsNodeSelectorTerm,
  type Node,
  type NodePool,
  ownValue,
  type Pod,
  type PricePerHour,
  sumOfPrices,
  untoleratedTaint,
} from '@tenon/api'
import { renderPodReason } from '@tenon/engine'
import { emptyMemory, isReschedulable } from '@tenon/operator/objects'
import { ofKind, pricedInstances } from '../cost/priced.ts'
import type { Snapshot } from '../snapshot/snapshot.ts'
import { Study } from '../study/study.ts'
import { waiting } from './changes.ts'
import { type AddedNodes, gathered, type SimulatedPrice } from './simulate.ts'

/** What a plan changes besides the nodes that go. */
export interface Relaxations {
  /** Changes each pod before it is placed anew. */
  readonly relaxPod?: (pod: Pod) => Pod
  readonly relaxPool?: (pool: NodePool) => NodePool
}

export interface MoveOptions {
  /** Names of the nodes that go. */
  readonly leaving: ReadonlySet<string>
  /** Nodes that come before, such as those of a node group that grows. */
  readonly coming?: readonly Node[]
  /** NodePool that launches nothing. */
  readonly pausedPool?: string
}

/** The cluster after pods have moved. Pods that wait for a node now are in none of the figures. */
export interface Move {
  /** `namespace/name` of pods that move to nodes that exist or come, and the node. */
  readonly onNodes: ReadonlyMap<string, string>
  /** New nodes of NodePools. */
  readonly added: readonly AddedNodes[]
  /** `namespace/name` of pods that no node would take, and why. */
  readonly homeless: ReadonlyMap<string, string>
  /** Of the nodes that go; of those that come. */
  readonly priceBefore: SimulatedPrice
  readonly priceAfter: SimulatedPrice
}

/** Milliseconds for the decision: nobody is blocked by it, and pods that are not decided about keep their nodes. */
const decisionMs = 60_000

/** Decides about the pods of nodes as if these were gone. Nothing is written. */
export async function simulateMove(
  snapshot: Snapshot,
  { leaving, coming = [], pausedPool }: MoveOptions,
): Promise<Move> {
  const going = ofKind(snapshot, kinds.node).filter(({ metadata }) => leaving.has(metadata.name))
  const podsOf = Map.groupBy(
    ofKind(snapshot, kinds.pod).filter(isReschedulable),
    ({ spec }) => spec.nodeName ?? '',
  )
  const after = withoutNodes(
    { ...snapshot, objects: [...snapshot.objects, ...coming] },
    going.map((node) => ({ node, pods: podsOf.get(node.metadata.name) ?? [] })),
    { relaxPool: (pool) => (pool.metadata.name === pausedPool ? withoutLaunches(pool) : pool) },
  )
  const study = await Study.open(after)
  try {
    const { input, result } = await study.decide(decisionMs)
    const claims = [...result.claims, ...result.deferred.map(({ claim }) => claim)]
    const others = ofKind(after, kinds.node).filter(
      ({ metadata, spec }) =>
        ownValue(metadata.labels, labels.nodePool) === undefined && spec?.unschedulable !== true,
    )
    const leftOut = [...input.ignored, ...input.refused].filter(({ pod }) => !fitsOther(others, pod))
    return {
      onNodes: new Map(result.placements.map(({ pod, node }) => [keyOf(pod), node])),
      added: gathered(claims),
      homeless: new Map([
        ...result.failures.map(({ pod, reason }) => [keyOf(pod), renderPodReason(reason)] as const),
        ...leftOut.map(({ pod, reason }) => [keyOf(pod), reason] as const),
        ...result.undecided.map((pod) => [keyOf(pod), 'there was no time to decide about it'] as const),
      ]),
      priceBefore: sumOfPrices(pricesOf(snapshot, going)),
      priceAfter: sumOfPrices([
        ...pricesOf(snapshot, coming),
        ...claims.map(({ pricePerHour }) => pricePerHour),
      ]),
    }
  } finally {
    await study.close()
  }
}

function pricesOf(snapshot: Snapshot, nodes: readonly Node[]): readonly PricePerHour[] {
  return pricedInstances({ ...snapshot, objects: nodes }).map(({ pricePerHour }) => pricePerHour)
}

/**
 * The engine leaves out pods that want no node of a NodePool: kube-scheduler may have another one for them.
 * @param nodes that are schedulable, and of no NodePool.
 */
function fitsOther(nodes: readonly Node[], { spec }: Pod): boolean {
  const required = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution
  return nodes.some(
    ({ metadata, spec: node }) =>
      untoleratedTaint(node?.taints ?? [], spec.tolerations) === undefined &&
      Object.entries(spec.nodeSelector ?? {}).every(
        ([key, value]) => ownValue(metadata.labels, key) === value,
      ) &&
      (required?.nodeSelectorTerms.some((term) =>
        meetsNodeSelectorTerm(term, metadata.name, metadata.labels),
      ) ??
        true),
  )
}

function withoutLaunches(pool: NodePool): NodePool {
  return { ...pool, spec: { ...pool.spec, limits: { ...pool.spec.limits, nodes: '0' } } }
}

/** The snapshot without nodes. Their pods wait, and nothing else does. */
export function withoutNodes(
  snapshot: Snapshot,
  going: readonly { readonly node: Node; readonly pods: readonly Pod[] }[],
  { relaxPod = (pod) => pod, relaxPool = (pool) => pool }: Relaxations,
): Snapshot {
  const names = new Set(going.map(({ node }) => node.metadata.name))
  const ids = new Set(going.map(({ node }) => node.spec?.providerID ?? ''))
  const moving = new Set<KubeObject>(going.flatMap(({ pods }) => pods))
  const objects = snapshot.objects.flatMap((object): readonly KubeObject[] => {
    if (isOf(object, kinds.pod)) {
      const pod = object as Pod
      if (moving.has(pod)) return [waiting(relaxPod(unbound(pod)))]
      const { nodeName = '' } = pod.spec
      return nodeName === '' || names.has(nodeName) ? [] : [pod]
    }
    if (isOf(object, kinds.node)) return names.has(object.metadata.name) ? [] : [staysFor(object)]
    if (isOf(object, karpenterKinds.nodeClaim)) {
      const { providerID = '' } =
        (object as { readonly status?: { readonly providerID?: string } }).status ?? {}
      return providerID !== '' && ids.has(providerID) ? [] : [staysFor(object)]
    }
    if (isOf(object, karpenterKinds.nodePool)) return [relaxPool(object as NodePool)]
    return [object]
  })
  const { groupVersions } = snapshot.memory
  return { ...snapshot, objects, memory: { ...emptyMemory, groupVersions } }
}

function isOf(object: KubeObject, { kind }: { readonly kind: string }): boolean {
  return object.kind === kind
}

/** A node that is being deleted is paid for until then, so a plan has it like any other. */
function staysFor<T extends KubeObject>(object: T): T {
  const { deletionTimestamp: _, ...metadata } = object.metadata
  return { ...object, metadata }
}

function unbound(pod: Pod): Pod {
  const { nodeName: _, ...spec } = pod.spec
  const { deletionTimestamp: __, ...metadata } = pod.metadata
  return { ...pod, metadata, spec }
}

function keyOf({ metadata }: Pod): string {
  return `${metadata.namespace ?? ''}/${metadata.name}`
}
