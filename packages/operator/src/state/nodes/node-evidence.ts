/**
 * Nodes that were launched for pods and did not run them (reports-2.md 1), counted by workload and NodePool. One may be
 * chance; after the second, the NodePool launches nothing for the workload for an hour, then for two, four, eight and
 * twelve, with one node in between. A pod of the workload that starts there ends the hold, and so does a change of a
 * NodePool, a node class or a DaemonSet.
 */
import {
  formatResource,
  hashString,
  labels,
  ownValue,
  parseResource,
  type Pod,
  podRequests,
  type ResourceList,
  setOwn,
} from '@tenon/api'
import { type Clock, Listeners } from '@tenon/runtime'
import type { Caches } from '../caches.ts'
import { workloadOf } from '../pods/workloads.ts'

const hour = 60 * 60_000
const longestHoldMs = 12 * hour
/** Useless nodes in a row without a consequence. */
const freeNodes = 1
const memoryMs = 24 * hour
/** The scheduler may accept a pod later that it rejected on a node. */
const refusalMs = hour

/**
 * Why a node is useless for a workload. `unused`: it was deleted without having run a pod of it, while pods that it was
 * launched for waited. `refused`: pods fit, but the scheduler rejects them for a reason that decisions do not know.
 */
type UselessCause = 'unused' | 'refused'

/** The last useless node of a workload; stored for the next process. */
export interface UselessNode {
  /** Key of the workload it was launched for. */
  readonly workload: string
  readonly nodePool: string
  readonly node: string
  readonly claim: string
  /** `namespace/name` of a pod it was launched for. */
  readonly pod: string
  readonly cause: UselessCause
  /** Message of the scheduler about the pod; empty if there is none. */
  readonly words: string
  /** Useless nodes in a row. */
  readonly failures: number
  /** When it was deleted, or found to be refused; Unix milliseconds. */
  readonly atMs: number
  /** Until then the NodePool launches nothing for the workload; Unix milliseconds. */
  readonly untilMs: number
  /** Hash of the NodePools, node classes and DaemonSets: a change ends the hold. */
  readonly ground: string
}

export interface UselessFinding
  extends Pick<UselessNode, 'nodePool' | 'node' | 'claim' | 'cause' | 'words' | 'atMs'> {
  readonly pod: Pod
  /** When the node was launched; Unix milliseconds, NaN if unknown. */
  readonly boughtMs: number
  /** Whether pods of the workload run on other nodes of the NodePool: then there is no hold. */
  readonly isServed: boolean
}

/** Factors by resource: how much more than its requests a pod needs according to the catalogue. */
export type Margins = Readonly<Record<string, number>>

export class NodeEvidence {
  readonly #clock: Pick<Clock, 'now'>
  readonly #caches: NodeTemplates
  /** By workload, then NodePool. */
  readonly #useless = new Map<string, Map<string, UselessNode>>()
  readonly #margins = new Map<string, { readonly margins: Margins; readonly untilMs: number }>()
  /** By pod UID, hostnames of nodes that refused it, with the expiry. */
  readonly #refusals = new Map<string, Map<string, number>>()
  readonly #adjusted = new WeakMap<Pod, { readonly text: string; readonly pod: Pod }>()
  /** Known workloads with pending pods. */
  readonly #awaited = new Set<string>()
  #ground: string | undefined
  /** Names of NodePools with changed evidence. */
  readonly changes: Listeners<string> = new Listeners()

  constructor(caches: NodeTemplates, clock: Pick<Clock, 'now'>) {
    this.#clock = clock
    this.#caches = caches
    for (const cache of [caches.nodePools, caches.daemonSets, ...caches.nodeClasses])
      cache.onChange(() => {
        this.#ground = undefined
      })
  }

  #currentGround(): string {
    this.#ground ??= groundOf(this.#caches)
    return this.#ground
  }

  /**
   * Counts a useless node.
   * @returns undefined for one that was launched before the last one ended: these count as one.
   */
  useless({ pod, boughtMs, isServed, ...finding }: UselessFinding): UselessNode | undefined {
    const workload = workloadOf(pod)
    const now = this.#clock.now()
    const known = this.of(workload, finding.nodePool)
    if (known !== undefined && (boughtMs < known.atMs || known.claim === finding.claim)) return undefined
    // A refusal will repeat; a deletion may be chance.
    const failures = (known?.failures ?? 0) + (finding.cause === 'refused' && known === undefined ? 2 : 1)
    const holdMs =
      failures <= freeNodes || isServed ? 0 : Math.min(longestHoldMs, hour * 2 ** (failures - freeNodes - 1))
    const entry: UselessNode = {
      ...finding,
      workload,
      pod: `${pod.metadata.namespace ?? ''}/${pod.metadata.name}`,
      failures,
      untilMs: now + holdMs,
      ground: this.#currentGround(),
    }
    this.#put(entry)
    this.changes.notify(entry.nodePool)
    return entry
  }

  restore(entry: UselessNode): void {
    if (this.of(entry.workload, entry.nodePool) === undefined) this.#put(entry)
  }

  #put(entry: UselessNode): void {
    const byPool = this.#useless.get(entry.workload) ?? new Map<string, UselessNode>()
    this.#useless.set(entry.workload, byPool.set(entry.nodePool, entry))
  }

  /** A pod runs on a node of the NodePool, which ends the hold of its workload. */
  served(pod: Pod, nodePool: string): void {
    if (this.#useless.size === 0) return
    const workload = workloadOf(pod)
    const byPool = this.#useless.get(workload)
    if (byPool?.delete(nodePool) !== true) return
    if (byPool.size === 0) this.#useless.delete(workload)
    this.changes.notify(nodePool)
  }

  of(workload: string, nodePool: string): UselessNode | undefined {
    return this.#useless.get(workload)?.get(nodePool)
  }

  /** By workload and NodePool. */
  all(): readonly UselessNode[] {
    const now = this.#clock.now()
    for (const [workload, byPool] of this.#useless) {
      for (const [pool, { untilMs }] of byPool) if (now - untilMs >= memoryMs) byPool.delete(pool)
      if (byPool.size === 0) this.#useless.delete(workload)
    }
    const key = ({ workload, nodePool }: UselessNode) => `${workload}/${nodePool}`
    return [...this.#useless.values()]
      .flatMap((byPool) => [...byPool.values()])
      .toSorted((a, b) => (key(a) < key(b) ? -1 : 1))
  }

  /** The hold that ends first if all NodePools of the pod are held; else undefined. */
  holdOn(pod: Pod): UselessNode | undefined {
    const held = this.#heldPools(pod)
    if (held.size === 0) return undefined
    const chosen = pod.spec.nodeSelector?.[labels.nodePool]
    const choice =
      chosen === undefined ? this.#caches.nodePools.list().map(({ metadata }) => metadata.name) : [chosen]
    if (choice.some((pool) => !held.has(pool))) return undefined
    return [...held.values()].toSorted((a, b) => a.untilMs - b.untilMs)[0]
  }

  isHeld({ untilMs, ground }: UselessNode): boolean {
    return this.#clock.now() < untilMs && ground === this.#currentGround()
  }

  #heldPools(pod: Pod): ReadonlyMap<string, UselessNode> {
    const held = new Map<string, UselessNode>()
    if (this.#useless.size === 0) return held
    for (const [pool, entry] of this.#useless.get(workloadOf(pod)) ?? [])
      if (this.isHeld(entry)) held.set(pool, entry)
    return held
  }

  /** Sets whether pods of a workload are pending. */
  await(workload: string, isWaiting: boolean): void {
    if (this.#awaited.has(workload) === isWaiting) return
    if (isWaiting) this.#awaited.add(workload)
    else this.#awaited.delete(workload)
    for (const pool of this.#useless.get(workload)?.keys() ?? []) this.changes.notify(pool)
  }

  isAwaited(workload: string): boolean {
    return this.#awaited.has(workload)
  }

  /** A node has less than its type says: for an hour decisions assume the same of other types. */
  learn(workload: string, margins: Margins): void {
    this.#margins.set(workload, { margins, untilMs: this.#clock.now() + hour })
  }

  /** The scheduler rejects the pod on the node that was launched for it. @param hostname label of the node. */
  refuse(uid: string, hostname: string): void {
    const nodes = this.#refusals.get(uid) ?? new Map<string, number>()
    this.#refusals.set(uid, nodes.set(hostname, this.#clock.now() + refusalMs))
  }

  forget(uid: string): void {
    this.#refusals.delete(uid)
  }

  #refusing(uid: string): readonly string[] {
    const nodes = this.#refusals.get(uid)
    if (nodes === undefined) return []
    const now = this.#clock.now()
    for (const [node, untilMs] of nodes) if (untilMs <= now) nodes.delete(node)
    if (nodes.size === 0) this.#refusals.delete(uid)
    return [...nodes.keys()]
  }

  /** The pod for decisions: with margins, and with anti-affinity to useless nodes and held NodePools. */
  adjusted(pod: Pod): Pod {
    if (this.#useless.size + this.#refusals.size + this.#margins.size === 0) return pod
    const margins = this.#marginsOf(pod)
    const nodes = this.#refusing(pod.metadata.uid ?? '')
    const pools = [...this.#heldPools(pod).keys()]
    if (margins === undefined && nodes.length === 0 && pools.length === 0) return pod
    const text = JSON.stringify([margins, nodes, pools])
    const known = this.#adjusted.get(pod)
    if (known?.text === text) return known.pod
    let adjusted = margins === undefined ? pod : withMargins(pod, margins)
    if (nodes.length > 0) adjusted = awayFrom(adjusted, labels.hostname, nodes)
    if (pools.length > 0) adjusted = awayFrom(adjusted, labels.nodePool, pools)
    this.#adjusted.set(pod, { text, pod: adjusted })
    return adjusted
  }

  #marginsOf(pod: Pod): Margins | undefined {
    if (this.#margins.size === 0) return undefined
    const workload = workloadOf(pod)
    const known = this.#margins.get(workload)
    if (known === undefined) return undefined
    if (known.untilMs > this.#clock.now()) return known.margins
    this.#margins.delete(workload)
    return undefined
  }
}

type NodeTemplates = Pick<Caches, 'daemonSets' | 'nodeClasses' | 'nodePools'>

function groundOf({ daemonSets, nodeClasses, nodePools }: NodeTemplates): string {
  const texts = [nodePools, daemonSets, ...nodeClasses].map((cache) =>
    cache
      .list()
      .map(({ metadata }) => `${metadata.uid ?? metadata.name}:${metadata.generation ?? 0}`)
      .toSorted(),
  )
  return hashString(JSON.stringify(texts)).toString(36)
}

/** Adds the margins as overhead: another type with the same figures would be too small, too. */
function withMargins(pod: Pod, margins: Margins): Pod {
  const requests = podRequests(pod.spec)
  const overhead: Record<string, string> = { ...pod.spec.overhead }
  for (const [name, factor] of Object.entries(margins)) {
    const requested = ownValue(requests, name) ?? 0
    if (requested === 0) continue
    const more = Math.ceil(requested * (factor - 1))
    setOwn(overhead, name, formatResource(name, amountIn(overhead, name) + more))
  }
  return { ...pod, spec: { ...pod.spec, overhead } }
}

function amountIn(list: ResourceList, name: string): number {
  return parseResource(name, ownValue(list, name) ?? '0')
}

/** Adds a required NotIn to every node selector term. */
function awayFrom(pod: Pod, key: string, values: readonly string[]): Pod {
  const { affinity } = pod.spec
  const required = affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution
  const not = { key, operator: 'NotIn' as const, values: [...values] }
  const nodeSelectorTerms = (required?.nodeSelectorTerms ?? [{}]).map((term) => ({
    ...term,
    matchExpressions: [...(term.matchExpressions ?? []), not],
  }))
  const nodeAffinity = {
    ...affinity?.nodeAffinity,
    requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms },
  }
  return { ...pod, spec: { ...pod.spec, affinity: { ...affinity, nodeAffinity } } }
}

/** Why a node was useless for pods like one, and what happens now. */
export function uselessText(entry: UselessNode): string {
  const why =
    entry.cause === 'unused'
      ? 'ended without having run it'
      : 'has room for it, but the scheduler rejects the pod there'
  const words = entry.words === '' ? '' : `: ${entry.words}`
  const then =
    entry.untilMs <= entry.atMs
      ? 'another node may be launched'
      : `no other node of NodePool ${entry.nodePool} is launched for such pods before ${new Date(entry.untilMs).toISOString().replace(/\.\d+Z$/, 'Z')}`
  return `Node ${entry.node} (NodeClaim ${entry.claim}) was launched for pod ${entry.pod} and ${why}; ${then}${words}`
}
