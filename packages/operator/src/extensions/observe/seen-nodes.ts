/** Notes what becomes of nodes while others run the cluster and this process only observes (adoption.md 2). */
import { counted, labels, type PricePerHour, sumOfPrices } from '@tenon/api'
import type { ReconcileResult } from '@tenon/kube'
import type { CloudProvider } from '@tenon/provider'
import { type Clock, inSlices, type Logger, type Slicing } from '@tenon/runtime'
import type { SingletonSpec } from '../../controller.ts'
import { type Catalogue, CatalogueReader, nodePrice } from '../../disruption/catalogue.ts'
import type { JournalInstance } from '../../journal/entry.ts'
import type { Journal } from '../../journal/journal.ts'
import type { Caches } from '../../state/caches.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import { labelsOf, type StateNode } from '../../state/nodes/state-node.ts'
import { isReschedulable } from '../../state/pods/pods.ts'

interface Dependencies {
  readonly caches: Pick<Caches, 'nodePools'>
  readonly state: Pick<ClusterState, 'isManaged' | 'pods' | 'podsOnNodes' | 'poolCosts' | 'stateNodes'>
  readonly provider: Pick<CloudProvider, 'getInstanceTypes'>
  readonly journal: Pick<Journal, 'decided' | 'note'>
  readonly clock: Pick<Clock, 'now'>
  readonly slicing: Slicing
  readonly logger: Logger
}

/** A node that was noted. */
export interface SeenNode {
  /** Undefined until the instance has a Node. */
  node: string | undefined
  /** Undefined for a node that no NodeClaim launched. */
  readonly claim: string | undefined
  readonly nodePool: string | undefined
  /** Whether it came while this process observes. */
  readonly isNew: boolean
  /** When it was first seen, Unix milliseconds. */
  readonly sinceMs: number
  readonly createdMs: number
  instance: JournalInstance
  /** Reschedulable pods at the time others began to remove it. */
  leavingPods: number | undefined
}

const tickMs = 10_000
/** Readers of the journal take a longer silence for a gap. */
const heartbeatMs = 5 * 60_000
/** From then on a journal whose oldest entries are gone can be read. */
const censusMs = 6 * 60 * 60_000
/** Entries have at most 1000 names. */
const pageNodes = 500
/** Taints of autoscalers on nodes that they are about to remove. */
const leavingTaints: ReadonlySet<string> = new Set([
  'karpenter.sh/disrupted',
  'karpenter.sh/disruption',
  'ToBeDeletedByClusterAutoscaler',
])

/** `observe.shadow`: looks every ten seconds. */
export class SeenNodes implements SingletonSpec {
  readonly name = 'observe.shadow'
  readonly #deps: Dependencies
  readonly #catalogue: CatalogueReader
  /** By provider ID. */
  readonly #nodes = new Map<string, SeenNode>()
  readonly #byName = new Map<string, SeenNode>()
  readonly #afterTick: (() => void)[] = []
  #heartbeatAtMs = Number.NEGATIVE_INFINITY
  #censusAtMs = Number.NEGATIVE_INFINITY

  constructor(deps: Dependencies) {
    this.#deps = deps
    this.#catalogue = new CatalogueReader(deps)
  }

  /** Calls `listener` whenever all nodes that came and went are noted. */
  onTick(listener: () => void): void {
    this.#afterTick.push(listener)
  }

  /** @param name of a Node, or of a NodeClaim without one. */
  get(name: string): SeenNode | undefined {
    return this.#byName.get(name)
  }

  async run(signal: AbortSignal): Promise<ReconcileResult> {
    const { clock, slicing } = this.#deps
    const nowMs = clock.now()
    const isFirst = this.#censusAtMs === Number.NEGATIVE_INFINITY
    const isCensus = nowMs - this.#censusAtMs >= censusMs
    const isHeartbeat = isCensus || nowMs - this.#heartbeatAtMs >= heartbeatMs
    // Prices of running instances may change; those of new ones are looked up at once.
    const prices = new Prices(
      this.#deps,
      isHeartbeat || this.#hasUnpriced() ? await this.#catalogue.read(signal) : undefined,
    )
    signal.throwIfAborted()
    if (isFirst)
      this.#note('ObservingBegan', 'This process began to observe; what happened before is not known')
    await inSlices(this.#look(prices, isFirst, isHeartbeat), slicing)
    if (isCensus) this.#census(nowMs)
    if (isHeartbeat) {
      this.#heartbeatAtMs = nowMs
      this.#note('Observing', this.#summary())
    }
    for (const listener of this.#afterTick) listener()
    return { kind: 'after', delayMs: tickMs }
  }

  /** Whether a node has to be priced that came since the last look. */
  #hasUnpriced(): boolean {
    const { state } = this.#deps
    return state
      .stateNodes()
      .some(
        (each) =>
          isBought(each) &&
          !this.#nodes.has(each.providerID) &&
          (each.claim === undefined || state.poolCosts.priceOf(each.claim) === undefined),
      )
  }

  *#look(prices: Prices, isFirst: boolean, isRepriced: boolean): Generator<undefined, void, undefined> {
    const all = this.#deps.state.stateNodes()
    const present = new Set<string>()
    for (const stateNode of all) {
      yield
      if (!isBought(stateNode)) continue
      present.add(stateNode.providerID)
      const known = this.#nodes.get(stateNode.providerID)
      if (known === undefined) this.#joined(stateNode, prices, isFirst)
      else this.#update(known, stateNode, prices, isRepriced)
    }
    for (const [providerID, seen] of this.#nodes) if (!present.has(providerID)) this.#left(providerID, seen)
  }

  #joined(stateNode: StateNode, prices: Prices, isFirst: boolean): void {
    const seen: SeenNode = {
      node: stateNode.node?.metadata.name,
      claim: stateNode.claim?.metadata.name,
      nodePool: labelsOf(stateNode)[labels.nodePool],
      isNew: !isFirst,
      sinceMs: this.#deps.clock.now(),
      createdMs: createdMsOf(stateNode),
      instance: prices.of(stateNode),
      leavingPods: undefined,
    }
    this.#nodes.set(stateNode.providerID, seen)
    this.#index(seen)
    // The census that follows has the first ones.
    if (!isFirst) this.#noteNode(seen, 'NodeJoined', `${nameOf(seen)} came: ${typeText(seen)}`)
    this.#watchRemoval(seen, stateNode)
  }

  #update(seen: SeenNode, stateNode: StateNode, prices: Prices, isRepriced: boolean): void {
    seen.node ??= stateNode.node?.metadata.name
    this.#index(seen)
    this.#watchRemoval(seen, stateNode)
    const price = seen.instance.pricePerHour
    const instance = isRepriced || price === undefined ? prices.of(stateNode) : seen.instance
    // A price that cannot be read now is still the last known one.
    if (instance.pricePerHour === undefined || instance.pricePerHour === price) return
    seen.instance = instance
    this.#noteNode(seen, 'NodeRepriced', `${nameOf(seen)} has another price: ${typeText(seen)}`)
  }

  #index(seen: SeenNode): void {
    for (const name of [seen.node, seen.claim]) if (name !== undefined) this.#byName.set(name, seen)
  }

  #watchRemoval(seen: SeenNode, { isMarkedForDeletion, node }: StateNode): void {
    if (seen.leavingPods !== undefined) return
    const isLeaving =
      isMarkedForDeletion || (node?.spec?.taints ?? []).some(({ key }) => leavingTaints.has(key))
    if (!isLeaving) return
    const { state } = this.#deps
    const pods = node === undefined ? [] : state.podsOnNodes.of(node.metadata.name).pods
    seen.leavingPods = pods.filter((pod) => !state.pods.isWellFormed(pod) || isReschedulable(pod)).length
  }

  #left(providerID: string, seen: SeenNode): void {
    this.#nodes.delete(providerID)
    for (const name of [seen.node, seen.claim])
      if (name !== undefined && this.#byName.get(name) === seen) this.#byName.delete(name)
    const { leavingPods } = seen
    this.#deps.journal.note({
      ...objectsOf(seen),
      kind: 'seen',
      reason: 'NodeLeft',
      message: `${nameOf(seen)} is gone${leavingPods === undefined ? ', without notice' : ''}`,
      instances: [seen.instance],
      ...(leavingPods !== undefined && { pods: { count: leavingPods, names: [] } }),
    })
  }

  #noteNode(seen: SeenNode, reason: string, message: string): void {
    const instances = [seen.instance]
    this.#deps.journal.note({ ...objectsOf(seen), kind: 'seen', reason, message, instances })
  }

  #note(reason: string, message: string): void {
    this.#deps.journal.note({ kind: 'seen', reason, message })
  }

  /** All nodes, those of NodeClaims apart, as the names of an entry are of one kind. */
  #census(nowMs: number): void {
    this.#censusAtMs = nowMs
    const all = [...this.#nodes.values()]
    const ofClaims = all.filter(({ claim }) => claim !== undefined)
    const others = all.filter(({ claim }) => claim === undefined)
    // An empty cluster has one page.
    for (const [kind, list] of [['nodeClaims', ofClaims] as const, ['nodes', others] as const])
      for (let at = 0; at < Math.max(list.length, all.length === 0 ? 1 : 0); at += pageNodes) {
        const page = list.slice(at, at + pageNodes)
        this.#deps.journal.note({
          kind: 'seen',
          reason: 'NodesPresent',
          message: `${counted(page.length, 'node')} of ${all.length}`,
          [kind]: page.map(({ claim, node = '' }) => claim ?? node),
          instances: page.map(({ instance }) => instance),
        })
      }
  }

  #summary(): string {
    const prices = Array.from(this.#nodes.values(), ({ instance }) => instance.pricePerHour)
    const { pricePerHour, unpriced } = sumOfPrices(prices)
    const without = unpriced === 0 ? '' : `, ${unpriced} of them without a price`
    return `${counted(prices.length, 'node')} for ${pricePerHour.toFixed(3)} an hour${without}`
  }
}

/** Whether there is an instance: it costs before its Node joins. */
function isBought({ claim, node }: StateNode): boolean {
  return node !== undefined || claim?.metadata.labels?.[labels.instanceType] !== undefined
}

/** Unix milliseconds, in whole seconds. */
export function createdMsOf({ claim, node }: Pick<StateNode, 'claim' | 'node'>): number {
  const createdMs = Date.parse((claim ?? node)?.metadata.creationTimestamp ?? '')
  return Number.isNaN(createdMs) ? 0 : createdMs
}

function objectsOf({ claim, node, nodePool }: SeenNode) {
  return {
    ...(nodePool !== undefined && { nodePool }),
    ...(claim !== undefined && { nodeClaims: [claim] }),
    ...(node !== undefined && { nodes: [node] }),
  }
}

function nameOf({ claim, node }: SeenNode): string {
  return node === undefined ? `NodeClaim ${claim ?? ''}` : `Node ${node}`
}

function typeText({ instance: { instanceType, pricePerHour } }: SeenNode): string {
  return `${instanceType ?? 'unknown type'}, ${pricePerHour === undefined ? 'price unknown' : `${pricePerHour.toFixed(4)} an hour`}`
}

/** Prices of instances, whoever launched them. */
class Prices {
  readonly #costs: Pick<ClusterState['poolCosts'], 'priceOf'>
  readonly #catalogue: Catalogue | undefined

  /** @param catalogue undefined where known prices will do. */
  constructor({ state }: Pick<Dependencies, 'state'>, catalogue: Catalogue | undefined) {
    this.#costs = state.poolCosts
    this.#catalogue = catalogue
  }

  of(stateNode: StateNode): JournalInstance {
    const tags = labelsOf(stateNode)
    const instanceType = tags[labels.instanceType]
    const pricePerHour =
      (stateNode.claim && this.#costs.priceOf(stateNode.claim)) ?? this.#listed(instanceType, tags)
    return {
      ...(instanceType !== undefined && { instanceType }),
      ...(pricePerHour !== undefined && { pricePerHour }),
    }
  }

  /** Without a label a node is on demand. */
  #listed(instanceType = '', tags: Readonly<Record<string, string>>): PricePerHour {
    const bought = { [labels.capacityType]: 'on-demand', ...tags }
    for (const { types } of this.#catalogue?.values() ?? []) {
      const price = nodePrice(types.get(instanceType), bought)
      if (price !== undefined) return price
    }
    return undefined
  }
}
