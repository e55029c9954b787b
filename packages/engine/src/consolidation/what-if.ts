/** Simulations of a cluster without some nodes, which share one scheduler state (scheduling.md 14, disruption.md 11). */
import type { NodeInput } from '../input/input.ts'
import { difference, type Resources } from '@tenon/api'
import { CompiledProblem } from '../scheduling/compiled-problem.ts'
import { PackingCache } from '../scheduling/packing/packing-cache.ts'
import { SchedulerState } from '../scheduling/scheduler-state.ts'
import type { TypeReader } from '../scheduling/types/instance-rows.ts'
import type { NodeFill } from '../scheduling/nodes/node-fill.ts'
import type { NodeQueue } from '../scheduling/nodes/node-queue.ts'
import { addTo, type Amounts, amountsFit, takeFrom } from '../scheduling/pods/resource-space.ts'
import type { Scope } from '../scheduling/pod-placing.ts'
import { Simulation } from '../scheduling/simulation.ts'
import type { Problem } from '../scheduling/problem/problem.ts'
import type { CandidateInput, Removal } from './question.ts'
import { savingsOrder } from './savings-order.ts'
import type { SchedulingControl } from '../scheduling/pace.ts'

/** A candidate by indexes of the problem. */
export interface Candidate {
  readonly input: CandidateInput
  readonly node: NodeFill
  /** Indexes of the pods that must move. */
  readonly pods: readonly number[]
}

/** For so few pods, sorting is cheaper than ranking all pods of the problem. */
const fewPods = 64

/** Whether the placements of a simulation are kept in the shared state. */
export type Ending = 'undo' | 'keep'

/**
 * Keeps the pods of all candidates counted on their nodes, and removes only those of the nodes in question.
 * So the cost of a question depends on its pods, not on the size of the cluster.
 */
export class WhatIf {
  readonly compiled: CompiledProblem
  readonly candidates: readonly Candidate[]
  readonly #state: SchedulerState
  readonly #control: SchedulingControl
  /** The rank of each pod in the order in which pods are tried; computed for the first large question. */
  #rank: Int32Array | undefined
  /** Pods of the candidates. */
  readonly #settled = new Set<number>()
  /** Pods that are pending, or on a terminating node. */
  readonly #podsWithoutNode: readonly number[]
  readonly #unreadable: ReadonlyMap<number, string>
  /** Members of groups. */
  readonly #grouped: ReadonlySet<number>
  readonly #poolIndexes: ReadonlyMap<string, number>
  readonly #busy: readonly NodeFill[]
  /** Candidates whose removal was kept. */
  readonly #gone: Candidate[] = []
  #areHomelessPlaced = false

  /** @param order in which nodes are tried; by default initialized ones first, then by name. */
  constructor(
    problem: Problem,
    candidates: readonly CandidateInput[],
    reader: TypeReader,
    control: SchedulingControl,
    order?: (a: NodeInput, b: NodeInput) => number,
  ) {
    this.compiled = new CompiledProblem(problem, reader, control.packings ?? new PackingCache(), control)
    this.#control = control
    this.#state = new SchedulerState(this.compiled, order)
    this.#state.observeRelaxations()
    this.#unreadable = this.compiled.unreadable()
    this.#grouped = new Set(problem.podGroups.flatMap(({ members }) => members))
    this.#poolIndexes = new Map(problem.pools.map(({ nodePool }, index) => [nodePool.metadata.name, index]))
    const nodes = new Map(problem.nodes.map(({ name }, index) => [name, index]))
    const pods = new Map(problem.uids.map((uid, index) => [uid, index]))
    this.candidates = candidates.flatMap((input) => {
      const node = nodes.get(input.node)
      if (node === undefined) return []
      return [
        { input, node: this.#state.nodeAt(node), pods: input.pods.flatMap((uid) => pods.get(uid) ?? []) },
      ]
    })
    for (const candidate of this.candidates) {
      for (const pod of candidate.pods) {
        this.#settled.add(pod)
        if (this.#isReadable(pod)) this.#state.topology.record(this.compiled.shapeOf(pod), candidate.node)
      }
    }
    this.#busy = this.#state.nodes.all.filter(({ input }) => input.refusesCandidatePods === true)
    this.#podsWithoutNode = problem.uids.flatMap((_, pod) => (this.#settled.has(pod) ? [] : [pod]))
    this.#state.mark()
  }

  get podsWithoutNode(): readonly number[] {
    return this.#podsWithoutNode
  }

  /** Every node, in the order in which they are tried. */
  get nodes(): NodeQueue {
    return this.#state.nodes
  }

  /** Index of a node in the problem. */
  indexOf(node: NodeFill): number {
    return this.#state.indexOf(node)
  }

  /** Whether only resources, node selection and taints decide where the pod may go. */
  isPlain(pod: number): boolean {
    if (!this.#isReadable(pod) || this.#grouped.has(pod) || this.compiled.problem.volumeClaims.has(pod))
      return false
    const shape = this.compiled.shapeOf(pod)
    const { hostPorts, hasUnknownVolumes, usesDevices, usesResourceClaims, wanted, volumes } = shape
    return (
      hostPorts.length === 0 &&
      !hasUnknownVolumes &&
      !usesResourceClaims &&
      !usesDevices &&
      wanted.host === undefined &&
      volumes.every(({ host }) => host === undefined) &&
      this.#state.topology.isIndifferent(shape)
    )
  }

  /** Whether the pod does not run now, so that nothing is lost if it does not fit. */
  isPending(pod: number): boolean {
    if (this.#settled.has(pod)) return false
    const shape = this.compiled.problem.shapeOf[pod] ?? -1
    const origin = this.compiled.problem.shapes[shape]?.origin ?? 'pending'
    return origin !== 'deleting' && origin !== 'candidate' && origin !== 'starting'
  }

  /**
   * Removes the candidates and places their pods, together with pods that have no node.
   * @param look reads the simulation before it is undone, and decides whether to keep it.
   * @param planned the node that a pod should go to if possible, by index of the pod.
   */
  without<T>(
    candidates: readonly Candidate[],
    look: (simulation: Simulation) => { readonly ending: Ending; readonly value: T },
    planned?: ReadonlyMap<number, number>,
  ): T {
    const state = this.#state
    const podsWithoutNode = this.#areHomelessPlaced ? [] : this.#podsWithoutNode
    const pods = [...podsWithoutNode, ...candidates.flatMap((candidate) => candidate.pods)]
    const readable = pods.filter((pod) => this.#isReadable(pod))
    for (const pod of readable) state.nodes.prepare(this.compiled.shapeOf(pod))
    const mark = state.mark()
    for (const candidate of candidates) {
      for (const pod of candidate.pods)
        if (this.#isReadable(pod)) state.topology.remove(this.compiled.shapeOf(pod), candidate.node)
    }
    for (const { node, input } of candidates) {
      state.exclude(node)
      state.devices?.leave(input.pods)
    }
    const scope: Scope = {
      state,
      pods: this.#inOrder(readable),
      unreadable: new Map(
        pods.flatMap((pod) => {
          const problem = this.#unreadable.get(pod)
          return problem === undefined ? [] : [[pod, problem]]
        }),
      ),
      usageOf: (pool) => this.usageWithout(pool, candidates),
      ...(planned && { planned }),
    }
    let ending: Ending = 'undo'
    try {
      const simulation = new Simulation(this.compiled, 'firstFit', { scope })
      simulation.run(this.#control)
      const looked = look(simulation)
      ending = looked.ending
      return looked.value
    } finally {
      if (ending === 'undo') state.rollback(mark)
      else {
        this.#gone.push(...candidates)
        this.#areHomelessPlaced = true
      }
    }
  }

  /** Calls `run`, and then undoes what its simulations have kept. */
  trial<T>(run: () => T): T {
    const state = this.#state
    // NodeQueue caches which nodes could hold a shape, so it must see them before `run` fills them.
    for (const shape of this.compiled.shapes) if (shape !== undefined) state.nodes.prepare(shape)
    const mark = state.mark()
    const gone = this.#gone.length
    const areHomelessPlaced = this.#areHomelessPlaced
    const value = run()
    state.rollback(mark)
    this.#gone.length = gone
    this.#areHomelessPlaced = areHomelessPlaced
    return value
  }

  /** Pods that run now and would not fit anywhere. Finishing the claims may add more. */
  stranded(simulation: Simulation): readonly number[] {
    return [...simulation.failed, ...simulation.prematurelyPlaced].filter((pod) => !this.isPending(pod))
  }

  /**
   * Whether all pods of some claim fit on nodes under `consolidateAfter`. Only Tenon keeps pods off these nodes;
   * kube-scheduler may bind them there, and the new node stays empty.
   */
  hasClaimForBusyNodes({ claims }: Simulation): boolean {
    if (claims.length === 0) return false
    const rooms = this.#busy.map((node) => ({ node, room: node.remaining.slice() }))
    return claims.some(({ pods }) => {
      const taken: { readonly room: Float64Array; readonly amounts: Amounts }[] = []
      const isHeld = pods.every((pod) => {
        if (!this.isPlain(pod)) return false
        const shape = this.compiled.shapeOf(pod)
        const { amounts } = shape
        const found = rooms.find(
          ({ node, room }) => amountsFit(amounts, room) && this.nodes.suitsLater(node, shape),
        )
        if (found === undefined) return false
        takeFrom(found.room, amounts)
        taken.push({ room: found.room, amounts })
        return true
      })
      if (!isHeld) for (const { room, amounts } of taken) addTo(room, amounts)
      return isHeld
    })
  }

  /** The complete result of a simulation. */
  removal(simulation: Simulation): Removal {
    const { claims, placements, failures } = simulation.outcome()
    return {
      claims,
      placements,
      stranded: new Map([...failures].filter(([pod]) => !this.isPending(pod))),
      isComplete: simulation.isComplete,
    }
  }

  /**
   * The usage of a pool without the candidates, whose share of the limits can be used again.
   * @param pool index in the problem.
   */
  usageWithout(pool: number, candidates: readonly Candidate[]): Resources {
    let usage = this.compiled.problem.pools[pool]?.usage ?? {}
    for (const { input } of [...this.#gone, ...candidates])
      if (this.#poolIndexes.get(input.nodePool) === pool) usage = difference(usage, input.capacity)
    return usage
  }

  #isReadable(pod: number): boolean {
    return this.compiled.isReadable(pod)
  }

  /** Valid pods in the order in which they are tried. */
  #inOrder(pods: readonly number[]): readonly number[] {
    if (this.#rank === undefined && pods.length <= fewPods) return pods.toSorted(this.compiled.inOrder)
    const rank = (this.#rank ??= this.#ranks())
    return pods.toSorted((a, b) => (rank[a] as number) - (rank[b] as number))
  }

  #ranks(): Int32Array {
    const ranks = new Int32Array(this.compiled.problem.shapeOf.length)
    for (const [rank, pod] of this.compiled.order().entries()) ranks[pod] = rank
    return ranks
  }
}

/** In {@link savingsOrder}; ties by node name. */
export function bySavings({ input: a }: Candidate, { input: b }: Candidate): number {
  return savingsOrder(a, b) || (a.node < b.node ? -1 : 1)
}
