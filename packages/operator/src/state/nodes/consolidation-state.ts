/** What consolidation depends on: a version of the cluster, and nodes that were just filled (cluster-state.md 8). */
import type { KubeObject, Node, NodeClaim, NodePool, Pod } from '@tenon/api'
import type { Change } from '@tenon/kube'
import type { Clock } from '@tenon/runtime'
import type { Caches } from '../caches.ts'
import { isTerminal } from '../pods/pods.ts'

/** The version changes at least this often. */
const lifetimeMs = 5 * 60_000

export interface StateNodeView {
  readonly isInitialized: boolean
  /** Whether its objects are being deleted. */
  readonly isLeaving: boolean
}

export interface StateNodeKnowledge {
  /** Undefined if the instance is not tracked. */
  readonly stateNode: (key: string) => StateNodeView | undefined
  readonly isManaged: (claim: NodeClaim | NodePool) => boolean
}

/** A version that changes whenever consolidation may have become possible. */
export class ConsolidationState {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #instances = new Map<string, StateNodeView>()
  #version = 0
  #changedMs: number

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock
    this.#changedMs = clock.monotonic()
  }

  bump(): void {
    this.#version++
    this.#changedMs = this.#clock.monotonic()
  }

  /** There is a new version every five minutes anyway. */
  read(): number {
    if (this.#clock.monotonic() - this.#changedMs >= lifetimeMs) this.bump()
    return this.#version
  }

  follow(
    { pods, nodes, nodeClaims, nodePools }: Pick<Caches, 'pods' | 'nodes' | 'nodeClaims' | 'nodePools'>,
    { stateNode, isManaged }: StateNodeKnowledge,
  ): void {
    pods.onChange((change) => {
      if (change.kind === 'deleted' || isNewlyBound(change)) this.bump()
    })
    const seeNode = (key: string, isGone: boolean): void => {
      const before = this.#instances.get(key)
      const now = stateNode(key)
      if (now === undefined) this.#instances.delete(key)
      else this.#instances.set(key, now)
      const isChanged = now?.isInitialized !== before?.isInitialized || now?.isLeaving !== before?.isLeaving
      if (isChanged || (isGone && before !== undefined)) this.bump()
    }
    nodes.onChange((change) => {
      const key = keyOfNode(change.object)
      const old = change.kind === 'updated' ? keyOfNode(change.old) : key
      if (old !== key) seeNode(old, true)
      seeNode(key, change.kind === 'deleted')
    })
    nodeClaims.onChange((change) => {
      const key = keyOfClaim(change.object)
      const old = change.kind === 'updated' ? keyOfClaim(change.old) : key
      if (old !== key && old !== '') seeNode(old, true)
      if (key !== '' && isManaged(change.object)) seeNode(key, change.kind === 'deleted')
    })
    nodePools.onChange((change) => {
      if (isManaged(change.object) && isNewGeneration(change)) this.bump()
    })
  }
}

/** Provider ID of the Node's instance, else the Node's name. */
export function keyOfNode({ spec, metadata }: Node): string {
  const providerID = spec?.providerID ?? ''
  return providerID === '' ? metadata.name : providerID
}

const keyOfClaim = ({ status }: NodeClaim) => status?.providerID ?? ''

function isNewlyBound(change: Change<Pod>): boolean {
  const nodeName = nodeNameOf(change.object)
  if (nodeName === '' || isTerminal(change.object)) return false
  return change.kind !== 'updated' || nodeNameOf(change.old) !== nodeName
}

function nodeNameOf({ spec }: Pod): string {
  const { nodeName } = (spec as Partial<Pod['spec']> | null | undefined) ?? {}
  return nodeName ?? ''
}

function isNewGeneration(change: Change<KubeObject>): boolean {
  return change.kind !== 'updated' || change.object.metadata.generation !== change.old.metadata.generation
}

/** How long pods that have just started are left alone, beyond consolidateAfter. */
const settleMs = 15 * 60_000
/** However many pods arrive, a node is not left alone for longer. */
const longestMs = 60 * 60_000
const memoryMs = 24 * 60 * 60_000

/**
 * Nodes that a decision has just launched, or filled, for pods. A decision does not know in which order nodes join and
 * where the scheduler binds pods, so a search a minute later may find a cheaper set of nodes. Moving pods that have just
 * started is worse than waiting, unless pods have left the node since: that is a new situation.
 */
export class RecentlyFilledNodes {
  readonly #clock: Pick<Clock, 'now'>
  /** When a decision last placed pods on the node, by name of its claim. */
  readonly #filled = new Map<string, number>()

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock
  }

  /** A decision has placed pods on the claim. */
  fill(claim: string): void {
    const now = this.#clock.now()
    for (const [name, atMs] of this.#filled) if (now - atMs >= memoryMs) this.#filled.delete(name)
    this.#filled.set(claim, now)
  }

  /** A pod has left the node. */
  loosen(claim: string): void {
    this.#filled.delete(claim)
  }

  /** Whether a decision has placed pods on the claim, and none has left since. */
  has(claim: string): boolean {
    return this.#filled.has(claim)
  }

  /**
   * Milliseconds for which its pods are left alone; 0 if they may be moved.
   * @param sinceMs when a pod last arrived.
   * @param afterMs consolidateAfter of the NodePool.
   */
  leftMs(claim: string, sinceMs: number, afterMs: number): number {
    const filledMs = this.#filled.get(claim)
    if (filledMs === undefined) return 0
    const untilMs = Math.min(sinceMs + settleMs, filledMs + longestMs) + afterMs
    return Math.max(0, untilMs - this.#clock.now())
  }
}
