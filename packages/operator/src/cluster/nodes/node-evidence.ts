/**
 * Nodes that proved useless for the pods they were launched for, and what follows for those pods (reports.md 1).
 * For one workload at most one such node is bought: either the next decision knows what was wrong, or nothing is
 * launched for the workload for a while.
 */
import {
  formatResource,
  labels,
  ownValue,
  parseResource,
  setOwn,
  type Pod,
  type ResourceList,
} from '@tenon/api'
import { podRequests } from '@tenon/engine'
import { type Clock, Listeners } from '@tenon/runtime'
import { dependsOnOthers, workloadOf } from '../pods/workloads.ts'
import { FailureBackoff } from '../failure-backoff.ts'

const minute = 60_000
const hour = 60 * minute
/** Between launches that are worth a try: doubles from a minute to an hour. */
const backoff = { freeFailures: 0, baseMs: minute, capMs: hour, memoryMs: 24 * hour } as const
/** Of a cause that nothing is known about, nothing suggests that it has gone. */
const unexplainedMs = hour
/** Conditions tell whole seconds. */
const precisionMs = 1000
/** A node that took nobody lately may take a pod that it refused. */
const refusalMs = hour

/**
 * Why a node is useless for a pod. `short`: it has less room than it should. `refused`: it has room, and the scheduler
 * does not put the pod there.
 */
type UselessCause = 'short' | 'refused'

/** A node that was launched in vain, as it is kept for the next process. */
export interface UselessNode {
  /** Key of the workload it was launched for. */
  readonly workload: string
  readonly nodePool: string
  readonly node: string
  readonly claim: string
  /** `namespace/name` of a pod it was launched for. */
  readonly pod: string
  readonly cause: UselessCause
  /** What the scheduler says of the pod. */
  readonly words: string
  readonly failures: number
  /** Unix milliseconds: when it was found to be useless. */
  readonly atMs: number
  /** Unix milliseconds: nothing is launched for the workload before. */
  readonly untilMs: number
  /** Unix milliseconds: earlier than `untilMs`, if NodePools or node classes have changed since. */
  readonly probeMs: number
  /** What NodePools and node classes were like. */
  readonly ground: string
  /** By resource how much more than it asks for a pod needs by the catalogue, as a factor. */
  readonly margins: Readonly<Record<string, number>>
}

/**
 * What decisions know of why a node is useless for a pod. `none`: they would put the pod there. `present`: they know no
 * place for it there now, which may pass. `lasting`: they know what keeps it away, and launch no such node again.
 */
export type Knowledge = 'none' | 'present' | 'lasting'

/** What is known when a node is found to be useless. */
export interface UselessFinding
  extends Pick<UselessNode, 'nodePool' | 'node' | 'claim' | 'cause' | 'words' | 'margins'> {
  readonly pod: Pod
  readonly knowledge: Knowledge
  /** When the node was bought, if that is known; Unix milliseconds. */
  readonly boughtMs: number | undefined
}

export class NodeEvidence {
  readonly #clock: Pick<Clock, 'now' | 'monotonic'>
  readonly #failures: FailureBackoff
  /** By key of the workload the last one. */
  readonly #useless = new Map<string, UselessNode>()
  /** By key of the workload the claims that were found to be useless for it. */
  readonly #found = new Map<string, Set<string>>()
  /** By pod UID the host names of nodes that refused it, with when that is forgotten. */
  readonly #refusals = new Map<string, Map<string, number>>()
  readonly #adjusted = new WeakMap<Pod, { readonly text: string; readonly pod: Pod }>()
  /** Since when the pods of a workload are decided about again, by its key; Unix milliseconds. */
  readonly #liftedMs = new Map<string, number>()
  /** Workloads known here that have pods waiting. */
  readonly #awaited = new Set<string>()
  #ground = ''
  #onTrial: ReadonlyMap<string, number> = new Map()
  /** Names of NodePools of which something new is known. */
  readonly changes: Listeners<string> = new Listeners()

  constructor(clock: Pick<Clock, 'now' | 'monotonic'>) {
    this.#clock = clock
    this.#failures = new FailureBackoff(clock, backoff)
  }

  /** By key of the workload for how many of its pods there are nodes that may yet take them, when last looked at. */
  get onTrial(): ReadonlyMap<string, number> {
    return this.#onTrial
  }

  /** Notes the same. */
  try(onTrial: ReadonlyMap<string, number>): void {
    this.#onTrial = onTrial
  }

  /** Notes what NodePools and node classes are like now. */
  stand(ground: string): void {
    this.#ground = ground
  }

  /**
   * A node was launched for the pod, is there, and does not take it. One that was bought before another was found
   * says nothing about what was learned from that one, and so has no consequences of its own.
   */
  useless({ pod, knowledge, boughtMs, ...finding }: UselessFinding): UselessNode {
    const workload = workloadOf(pod)
    const now = this.#clock.now()
    const known = this.#useless.get(workload)
    const isNew = !this.isFound(workload, finding.claim)
    this.#found.set(workload, (this.#found.get(workload) ?? new Set()).add(finding.claim))
    if (known !== undefined && isNew && boughtMs !== undefined && boughtMs <= known.atMs)
      return { ...known, ...finding }
    this.#failures.note([workload])
    const probeMs = now + this.#failures.leftMs(workload)
    const failures = this.#failures.failures(workload)
    // Learning is believed once: a second such node shows that it did not help. Others in the way may move.
    const isLearned = (finding.cause === 'short' || knowledge === 'lasting') && failures === 1
    const mayPass = knowledge !== 'none' && finding.cause === 'refused' && dependsOnOthers(pod.spec)
    const entry: UselessNode = {
      ...finding,
      workload,
      pod: `${pod.metadata.namespace ?? ''}/${pod.metadata.name}`,
      failures,
      atMs: now,
      untilMs: isLearned ? now : mayPass ? probeMs : Math.max(probeMs, now + unexplainedMs),
      probeMs: isLearned ? now : probeMs,
      ground: this.#ground,
    }
    this.#useless.set(workload, entry)
    this.#liftedMs.delete(workload)
    this.changes.notify(entry.nodePool)
    return entry
  }

  /** When a workload was first seen to be decided about again; Unix milliseconds. */
  liftedMs(workload: string): number {
    const sinceMs = this.#liftedMs.get(workload) ?? this.#clock.now()
    this.#liftedMs.set(workload, sinceMs)
    return sinceMs
  }

  /** Takes up what an earlier process found out. */
  restore(entry: UselessNode): void {
    if (this.#useless.has(entry.workload)) return
    this.#useless.set(entry.workload, entry)
    this.#failures.restore(entry.workload, entry.failures, Math.max(0, entry.probeMs - this.#clock.now()))
  }

  /**
   * A pod of the workload got a node: what was found out before does not hold any more.
   * @param boundMs when it did, in whole seconds; Unix milliseconds.
   */
  served(workload: string, boundMs: number): void {
    const entry = this.#useless.get(workload)
    if (entry === undefined || boundMs + precisionMs <= entry.atMs) return
    this.#drop(workload)
    this.#failures.forget([workload])
    this.changes.notify(entry.nodePool)
  }

  /** Whether this claim was found to be useless for the workload. */
  isFound(workload: string, claim: string): boolean {
    return this.#useless.get(workload)?.claim === claim || this.#found.get(workload)?.has(claim) === true
  }

  /** What is known of a workload; undefined when nothing counts. */
  of(workload: string): UselessNode | undefined {
    return this.#useless.get(workload)
  }

  /** Everything that is known, in order of the workload's key. Of what is too old nothing is known. */
  all(): readonly UselessNode[] {
    const now = this.#clock.now()
    for (const [workload, { untilMs }] of this.#useless)
      if (now - untilMs >= backoff.memoryMs) this.#drop(workload)
    return [...this.#useless.values()].toSorted((a, b) => (a.workload < b.workload ? -1 : 1))
  }

  get isEmpty(): boolean {
    return this.#useless.size === 0
  }

  /** Why nothing may be launched for the pod now; undefined when something may. */
  holdOn(pod: Pod): UselessNode | undefined {
    if (this.#useless.size === 0) return undefined
    const entry = this.#useless.get(workloadOf(pod))
    return entry !== undefined && this.isHeld(entry) ? entry : undefined
  }

  isHeld({ untilMs, probeMs, ground }: UselessNode): boolean {
    const now = this.#clock.now()
    return now < untilMs && (now < probeMs || ground === this.#ground)
  }

  /** Notes whether pods of a workload still wait. */
  await(workload: string, isWaiting: boolean): void {
    if (this.#awaited.has(workload) === isWaiting) return
    if (isWaiting) this.#awaited.add(workload)
    else this.#awaited.delete(workload)
    const entry = this.#useless.get(workload)
    if (entry !== undefined) this.changes.notify(entry.nodePool)
  }

  /** Whether pods of the workload wait for a node. */
  isAwaited(workload: string): boolean {
    return this.#awaited.has(workload)
  }

  /** The scheduler refuses the pod on a node that was meant for it. @param hostname label of the node. */
  refuse(uid: string, hostname: string): void {
    const nodes = this.#refusals.get(uid) ?? new Map<string, number>()
    this.#refusals.set(uid, nodes.set(hostname, this.#clock.now() + refusalMs))
  }

  forget(uid: string): void {
    this.#refusals.delete(uid)
  }

  /** Host names of the nodes that are not to be planned for the pod, as it was refused there. */
  refusing(uid: string): readonly string[] {
    const nodes = this.#refusals.get(uid)
    if (nodes === undefined) return []
    const now = this.#clock.now()
    for (const [node, untilMs] of nodes) if (untilMs <= now) nodes.delete(node)
    if (nodes.size === 0) this.#refusals.delete(uid)
    return [...nodes.keys()]
  }

  /** The pod as decisions should see it: with what it needs by the catalogue, and not on nodes that refused it. */
  adjusted(pod: Pod): Pod {
    if (this.#useless.size + this.#refusals.size === 0) return pod
    const margins = this.#useless.size === 0 ? undefined : this.#marginsOf(workloadOf(pod))
    const nodes = this.refusing(pod.metadata.uid ?? '')
    if (margins === undefined && nodes.length === 0) return pod
    const text = JSON.stringify([margins, nodes])
    const known = this.#adjusted.get(pod)
    if (known?.text === text) return known.pod
    const roomy = margins === undefined ? pod : withMargins(pod, margins)
    const adjusted = nodes.length === 0 ? roomy : elsewhere(roomy, nodes)
    this.#adjusted.set(pod, { text, pod: adjusted })
    return adjusted
  }

  #drop(workload: string): void {
    this.#useless.delete(workload)
    this.#found.delete(workload)
    this.#awaited.delete(workload)
    this.#liftedMs.delete(workload)
  }

  #marginsOf(workload: string): UselessNode['margins'] | undefined {
    const entry = this.#useless.get(workload)
    if (entry === undefined || this.#clock.now() - entry.atMs >= unexplainedMs) return undefined
    return Object.keys(entry.margins).length === 0 ? undefined : entry.margins
  }
}

/** A like type is likely to be short by as much: of two with the same figures the second is no better. */
function withMargins(pod: Pod, margins: UselessNode['margins']): Pod {
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

/** The pod, which must not go to the nodes with these host names. */
function elsewhere(pod: Pod, hostnames: readonly string[]): Pod {
  const { affinity } = pod.spec
  const required = affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution
  const not = { key: labels.hostname, operator: 'NotIn' as const, values: [...hostnames] }
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
