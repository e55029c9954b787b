/** Finds unneeded nodes, and since when they are unneeded (cluster-autoscaler.md 6.1 to 6.3). */
import type { Node } from '@tenon/api'
import type { SnapshotMark } from '@tenon/filters'
import type { LoopView, NodeGroupIndex } from '../../model.ts'
import { type ScaleDownOptions, scaleDownOptionsOf } from '../../options/options.ts'
import { isNodeReady } from '../../registry/node-state.ts'
import { DisruptionBudgets } from '../drain/disruption-budgets.ts'
import { type Drain, emptinessOf } from '../drain/node-drain.ts'
import type { DrainContext } from '../drain/rules.ts'
import { softTaintOf, taintTimeMs } from '../nodes/taints.ts'
import type { Utilization } from '../nodes/utilization.ts'
import type { UnremovableNode } from '../reasons.ts'
import { candidatesOf } from './candidates.ts'
import { eligibilityOf } from './eligibility.ts'
import { removableLimit } from './limits.ts'
import { PlacementHints } from './placement-hints.ts'
import { removalOf } from './removal.ts'
import { UnneededTimers } from './unneeded-timers.ts'
import { UnremovableMemory } from './unremovable-memory.ts'

export interface PlannerInput {
  readonly view: Pick<LoopView, 'nowMs' | 'index' | 'snapshot' | 'lookups'>
  /** Registered nodes, except those that the snapshot shows as upcoming. */
  readonly nodes: readonly Node[]
  /** Names of nodes that this process deletes, or has deleted but with an existing Node. */
  readonly goingNodes: ReadonlySet<string>
  /** By group id: until when it is left alone. */
  readonly delayedUntilMs: ReadonlyMap<string, number>
  /** Checked between nodes; once true, what was found so far is the plan. */
  readonly shouldStop: () => boolean
}

/** A node that could be removed now. */
export interface UnneededNode {
  readonly node: Node
  readonly groupId: string
  readonly sinceMs: number
  readonly isReady: boolean
  readonly utilization: Utilization
  readonly drain: Drain
  /** Whether a PodDisruptionBudget only allows its pods to be evicted one after the other. */
  readonly isRisky: boolean
}

export interface Plan {
  readonly unneeded: readonly UnneededNode[]
  readonly unremovable: readonly UnremovableNode[]
  /** Whether candidates were skipped, for lack of time or because enough were found. */
  readonly isCut: boolean
  /** How long the longest skipped candidate has been skipped in every loop; 0 if none was. */
  readonly longestSkipMs: number
}

type Found = Omit<UnneededNode, 'sinceMs'>

export class Planner {
  readonly #options: ScaleDownOptions
  readonly #memory: UnremovableMemory
  readonly #timers = new UnneededTimers()
  readonly #hints = new PlacementHints()
  readonly #skipped = new SkippedNodes()
  #shortestIntervalMs: number
  #lastMs: number | undefined

  constructor(options: ScaleDownOptions) {
    this.#options = options
    this.#memory = new UnremovableMemory(options.unremovableNodeRecheckTimeoutMs)
    this.#shortestIntervalMs = options.unneededTimeMs
  }

  /** Computes the plan step by step. The snapshot is reverted at the end. */
  *update(input: PlannerInput): Generator<undefined, Plan, undefined> {
    const { nowMs, snapshot } = input.view
    this.#observeInterval(nowMs)
    this.#memory.forgetExpired(nowMs)
    const mark = snapshot.mark()
    try {
      const { found, unremovable, isCut, marks } = yield* this.#search(input)
      // Reverted removal by removal: all at once would block the event loop.
      for (const before of marks.toReversed()) {
        snapshot.revert(before)
        yield
      }
      const nodes = found.map(({ node }) => node)
      this.#timers.update(nodes, nowMs)
      this.#hints.turn()
      const unneeded = found.map((each) => ({ ...each, sinceMs: this.#timers.sinceMs(each.node) ?? nowMs }))
      return { unneeded, unremovable, isCut, longestSkipMs: this.#skipped.longestMs(nowMs) }
    } finally {
      snapshot.revert(mark)
    }
  }

  /** Forgets since when nodes are unneeded. */
  clear(): void {
    this.#timers.clear()
  }

  /** Restores timers of an earlier process from candidate taints, up to `--node-deletion-candidate-ttl`. */
  restore(nodes: readonly Node[], nowMs: number): void {
    const ttlMs = this.#options.nodeDeletionCandidateTtlMs
    if (ttlMs <= 0) return
    for (const node of nodes) {
      const taint = softTaintOf(node)
      const sinceMs = taint && taintTimeMs(taint)
      if (sinceMs !== undefined && sinceMs <= nowMs && nowMs - sinceMs < ttlMs)
        this.#timers.restore(node, sinceMs)
    }
  }

  *#search(input: PlannerInput): Generator<undefined, Search, undefined> {
    const { view, goingNodes } = input
    const isGoing = ({ metadata: { name } }: Node) =>
      goingNodes.has(name) || view.index.hasInstance.get(name) === false
    const present = input.nodes.filter((node) => !isGoing(node))
    const drain = drainContext(view, this.#options)
    const candidates = yield* candidatesOf({
      nodes: present,
      index: view.index,
      delayedUntilMs: input.delayedUntilMs,
      wasUnneeded: (node) => this.#timers.sinceMs(node) !== undefined,
      emptinessOf: ({ metadata: { name } }) =>
        emptinessOf(
          [...(view.snapshot.node(name)?.pods.values() ?? [])].map(({ pod }) => pod),
          drain,
        ),
    })
    const going = input.nodes.filter(isGoing)
    const search: Search = {
      found: [],
      unremovable: [
        ...candidates.others,
        ...going.map((node) => refusedNode(node, { kind: 'CurrentlyBeingDeleted' })),
      ],
      isCut: false,
      marks: [],
    }
    const destinations = new Set(present.map(({ metadata }) => metadata.name))
    const context = { snapshot: view.snapshot, drain, destinations, hints: this.#hints }
    const limit = this.#limit(view.index)
    const eligible = yield* this.#eligible(candidates.nodes, input, search.unremovable)
    let looked = 0
    for (const { node, utilization } of eligible) {
      if (search.found.length >= limit || input.shouldStop()) {
        search.isCut = true
        break
      }
      looked++
      search.marks.push(view.snapshot.mark())
      const removal = yield* removalOf(node, context)
      if (removal.kind === 'unremovable') {
        this.#memory.remember(node, removal.reason, view.nowMs)
        search.unremovable.push(refusedNode(node, removal.reason))
      } else {
        const groupId = view.index.groupOf.get(node.metadata.name) ?? ''
        const { drain: ofNode, isRisky } = removal
        search.found.push({ node, groupId, utilization, isRisky, isReady: isNodeReady(node), drain: ofNode })
      }
      yield
    }
    this.#skipped.update(
      eligible.slice(looked).map(({ node }) => node.metadata.name),
      view.nowMs,
    )
    return search
  }

  /** Candidates that are worth a simulation. All are checked first, before a removal changes the snapshot. */
  *#eligible(
    nodes: readonly Node[],
    input: PlannerInput,
    unremovable: UnremovableNode[],
  ): Generator<undefined, readonly Eligible[], undefined> {
    const { nowMs, snapshot, lookups, index } = input.view
    const context = {
      nowMs,
      snapshot,
      deviceUse: lookups.deviceUse,
      recentlyUnremovable: (node: Node) => this.#memory.recall(node, nowMs),
    }
    const eligible: Eligible[] = []
    for (const node of nodes) {
      yield
      const own = index.options.get(index.groupOf.get(node.metadata.name) ?? '')
      const options = scaleDownOptionsOf(this.#options, own)
      const answer = eligibilityOf(node, { ...context, options })
      if (answer.kind === 'refused') unremovable.push(refusedNode(node, answer.reason))
      else eligible.push({ node, utilization: answer.utilization })
    }
    return eligible
  }

  #limit({ options }: NodeGroupIndex): number {
    const times = [...options.values()].map(({ scaleDownUnneededMs = 0 }) => scaleDownUnneededMs)
    return removableLimit({
      unneededCount: this.#timers.size,
      parallelism: this.#options.maxParallelism,
      unneededTimeMs: Math.max(this.#options.unneededTimeMs, ...times),
      shortestIntervalMs: this.#shortestIntervalMs,
    })
  }

  #observeInterval(nowMs: number): void {
    if (this.#lastMs !== undefined) {
      const interval = Math.max(0, nowMs - this.#lastMs)
      this.#shortestIntervalMs = Math.min(this.#shortestIntervalMs, interval)
    }
    this.#lastMs = nowMs
  }
}

interface Eligible {
  readonly node: Node
  readonly utilization: Utilization
}

interface Search {
  readonly found: Found[]
  readonly unremovable: UnremovableNode[]
  isCut: boolean
  /** Of the snapshot, before each removal. */
  readonly marks: SnapshotMark[]
}

function drainContext(view: PlannerInput['view'], options: ScaleDownOptions): DrainContext {
  const { controllerOf, disruptionBudgets } = view.lookups
  return { nowMs: view.nowMs, options, controllerOf, budgets: new DisruptionBudgets(disruptionBudgets) }
}

function refusedNode(node: Node, reason: UnremovableNode['reason']): UnremovableNode {
  return { nodeName: node.metadata.name, reason }
}

/** Since when candidates have been skipped in every loop for lack of time (cluster-autoscaler.md 7.3). */
class SkippedNodes {
  #sinceMs: ReadonlyMap<string, number> = new Map()

  /** @param names of the nodes that this loop skipped. */
  update(names: readonly string[], nowMs: number): void {
    this.#sinceMs = new Map(names.map((name) => [name, this.#sinceMs.get(name) ?? nowMs]))
  }

  /** The longest time of all; 0 if none was skipped. */
  longestMs(nowMs: number): number {
    return [...this.#sinceMs.values()].reduce((longest, sinceMs) => Math.max(longest, nowMs - sinceMs), 0)
  }
}
