/**
 * What is known of nodes that were launched for pods and did not run them (reports-2.md 1). They are counted by
 * workload and NodePool, whatever the cause. One may be chance; after the second, nothing is launched there for the
 * workload for an hour, then for two, four, eight and twelve, with one node
 * between. Pods of the workload that start there end
 * that, and so does a change of a NodePool, a node class or a DaemonSet.
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
/** Nodes in a row that have no consequence. */
const freeNodes = 1
/** Of what is older nothing is known. */
const memoryMs = 24 * hour
/** A node that refused a pod may take it later. */
const refusalMs = hour

/**
 * Why a node is useless for a workload. `unused`: it ended without having run a pod of it, while pods that it was
 * launched for waited. `refused`: pods fit, and the scheduler refuses them for a reason that decisions do not know.
 */
type UselessCause = 'unused' | 'refused'

/** The last node that was launched in vain for a workload, as it is kept for the next process. */
export interface UselessNode {
  /** Key of the workload it was launched for. */
  readonly workload: string
  readonly nodePool: string
  readonly node: string
  readonly claim: string
  /** `namespace/name` of a pod it was launched for. */
  readonly pod: string
  readonly cause: UselessCause
  /** What the scheduler says of the pod; empty when it says nothing. */
  readonly words: string
  /** Such nodes in a row. */
  readonly failures: number
  /** When it ended, or was found to be refused; Unix milliseconds. */
  readonly atMs: number
  /** Unix milliseconds: no node of the NodePool is launched for the workload before. */
  readonly untilMs: number
  /** What NodePools, node classes and DaemonSets were like; another text once one has changed. */
  readonly ground: string
}

/** A node that was launched in vain. */
export interface UselessFinding
  extends Pick<UselessNode, 'nodePool' | 'node' | 'claim' | 'cause' | 'words' | 'atMs'> {
  readonly pod: Pod
  /** When the node was bought; Unix milliseconds. NaN when nobody knows. */
  readonly boughtMs: number
  /** Whether pods of the workload run on other nodes of the NodePool: then nothing is held. */
  readonly isServed: boolean
}

/** How much more than it asks for a pod needs by the catalogue, as a factor by resource. */
export type Margins = Readonly<Record<string, number>>

export class NodeEvidence {
  readonly #clock: Pick<Clock, 'now'>
  readonly #caches: WhatNodesAreMadeFrom
  /** By workload, then NodePool. */
  readonly #useless = new Map<string, Map<string, UselessNode>>()
  readonly #margins = new Map<string, { readonly margins: Margins; readonly untilMs: number }>()
  /** By pod UID the host names of nodes that refused it, with when that is forgotten. */
  readonly #refusals = new Map<string, Map<string, number>>()
  readonly #adjusted = new WeakMap<Pod, { readonly text: string; readonly pod: Pod }>()
  /** Workloads known here that have pods waiting. */
  readonly #awaited = new Set<string>()
  /** Undefined where it has to be worked out again. */
  #ground: string | undefined
  /** Names of NodePools of which something new is known. */
  readonly changes: Listeners<string> = new Listeners()

  constructor(caches: WhatNodesAreMadeFrom, clock: Pick<Clock, 'now'>) {
    this.#clock = clock
    this.#caches = caches
    for (const cache of [caches.nodePools, caches.daemonSets, ...caches.nodeClasses])
      cache.onChange(() => {
        this.#ground = undefined
      })
  }

  #groundNow(): string {
    this.#ground ??= groundOf(this.#caches)
    return this.#ground
  }

  /**
   * Counts a node that was launched in vain.
   * @returns undefined for one that was bought before the last one ended: these are one.
   */
  useless({ pod, boughtMs, isServed, ...finding }: UselessFinding): UselessNode | undefined {
    const workload = workloadOf(pod)
    const now = this.#clock.now()
    const known = this.of(workload, finding.nodePool)
    if (known !== undefined && (boughtMs < known.atMs || known.claim === finding.claim)) return undefined
    // A refusal is known to come again, where an end may be chance.
    const failures = (known?.failures ?? 0) + (finding.cause === 'refused' && known === undefined ? 2 : 1)
    const holdMs =
      failures <= freeNodes || isServed ? 0 : Math.min(longestHoldMs, hour * 2 ** (failures - freeNodes - 1))
    const entry: UselessNode = {
      ...finding,
      workload,
      pod: `${pod.metadata.namespace ?? ''}/${pod.metadata.name}`,
      failures,
      untilMs: now + holdMs,
      ground: this.#groundNow(),
    }
    this.#put(entry)
    this.changes.notify(entry.nodePool)
    return entry
  }

  /** Takes up what an earlier process found out. */
  restore(entry: UselessNode): void {
    if (this.of(entry.workload, entry.nodePool) === undefined) this.#put(entry)
  }

  #put(entry: UselessNode): void {
    const byPool = this.#useless.get(entry.workload) ?? new Map<string, UselessNode>()
    this.#useless.set(entry.workload, byPool.set(entry.nodePool, entry))
  }

  /** A pod got a node of a NodePool: what was found out about its workload there does not hold any more. */
  served(pod: Pod, nodePool: string): void {
    if (this.#useless.size === 0) return
    const workload = workloadOf(pod)
    const byPool = this.#useless.get(workload)
    if (byPool?.delete(nodePool) !== true) return
    if (byPool.size === 0) this.#useless.delete(workload)
    this.changes.notify(nodePool)
  }

  /** What is known of a workload in a NodePool. */
  of(workload: string, nodePool: string): UselessNode | undefined {
    return this.#useless.get(workload)?.get(nodePool)
  }

  /** Everything that is known, in order of workload and NodePool. */
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

  /** Why nothing may be launched for the pod now, in any of the NodePools that it may choose; undefined when something may. */
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
    return this.#clock.now() < untilMs && ground === this.#groundNow()
  }

  #heldPools(pod: Pod): ReadonlyMap<string, UselessNode> {
    const held = new Map<string, UselessNode>()
    if (this.#useless.size === 0) return held
    for (const [pool, entry] of this.#useless.get(workloadOf(pod)) ?? [])
      if (this.isHeld(entry)) held.set(pool, entry)
    return held
  }

  /** Notes whether pods of a workload still wait. */
  await(workload: string, isWaiting: boolean): void {
    if (this.#awaited.has(workload) === isWaiting) return
    if (isWaiting) this.#awaited.add(workload)
    else this.#awaited.delete(workload)
    for (const pool of this.#useless.get(workload)?.keys() ?? []) this.changes.notify(pool)
  }

  /** Whether pods of the workload wait for a node. */
  isAwaited(workload: string): boolean {
    return this.#awaited.has(workload)
  }

  /** A node has less than its type promised: for an hour decisions expect as much of other types. */
  learn(workload: string, margins: Margins): void {
    this.#margins.set(workload, { margins, untilMs: this.#clock.now() + hour })
  }

  /** The scheduler refuses the pod on a node that was meant for it. @param hostname label of the node. */
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

  /** The pod as decisions should see it: with what it needs by the catalogue, and away from nodes and NodePools in vain. */
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

type WhatNodesAreMadeFrom = Pick<Caches, 'daemonSets' | 'nodeClasses' | 'nodePools'>

function groundOf({ daemonSets, nodeClasses, nodePools }: WhatNodesAreMadeFrom): string {
  const texts = [nodePools, daemonSets, ...nodeClasses].map((cache) =>
    cache
      .list()
      .map(({ metadata }) => `${metadata.uid ?? metadata.name}:${metadata.generation ?? 0}`)
      .toSorted(),
  )
  return hashString(JSON.stringify(texts)).toString(36)
}

/** A like type is likely to be short by as much: of two with the same figures the second is no better. */
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

/** The pod, which must not go to nodes with one of these values of the label. */
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
