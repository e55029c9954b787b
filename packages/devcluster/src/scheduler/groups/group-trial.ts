/**
 * Places the pods of a group on trial: later ones see the earlier ones, and everything is undone at the end (gangs.md
 * 5.3).
 */
import type { ResourceClaim } from '@tenon/api'
import type { Random } from '@tenon/runtime'
import {
  type ClusterView,
  consumerOf,
  cpuSlot,
  type DeviceIndex,
  memorySlot,
  type NodeEntry,
  PodCycle,
} from '@tenon/filters'
import type { Diagnosis, Placer } from '../placement.ts'
import type { Nominations } from '../queue/nominations.ts'
import type { QueuedPod } from '../queue/scheduling-queue.ts'

type View = ClusterView & { readonly devices: DeviceIndex }

interface PlacedMember {
  readonly queued: QueuedPod
  readonly entry: NodeEntry
}

interface RefusedMember {
  readonly queued: QueuedPod
  readonly cycle: PodCycle
  readonly diagnosis: Diagnosis
}

/** The result of a trial. */
export interface Trial {
  readonly placed: readonly PlacedMember[]
  readonly refused: readonly RefusedMember[]
  /** The use of the nodes after it; 0 to 1. */
  readonly fullness: number
}

interface Dependencies {
  readonly view: View
  readonly placer: Placer
  readonly nominations: Nominations
  readonly random: Random
}

export class GroupTrials {
  readonly #deps: Dependencies
  /**
   * Random order of pods: kube-scheduler takes it from a map, and keeps it for every attempt (gangs.md 5.3).
   */
  readonly #ranks = new WeakMap<QueuedPod, number>()

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** In the order of attempts: by priority, then random but stable. */
  inOrder(members: readonly QueuedPod[]): readonly QueuedPod[] {
    return members.toSorted(
      (a, b) => b.facts.priority - a.facts.priority || this.#rankOf(a) - this.#rankOf(b),
    )
  }

  #rankOf(queued: QueuedPod): number {
    const known = this.#ranks.get(queued)
    if (known !== undefined) return known
    const rank = this.#deps.random.uint32()
    this.#ranks.set(queued, rank)
    return rank
  }

  /**
   * Tries the pods in this order, one in each step. Until the last step they are placed on trial.
   * @param nodes default: all.
   * @param onRefused called for each pod that does not fit, while those before it are placed.
   */
  *run(
    members: readonly QueuedPod[],
    nodes: readonly NodeEntry[] | undefined,
    onRefused: (refused: RefusedMember) => void = () => {},
  ): Generator<undefined, Trial, undefined> {
    const { placer, nominations, view } = this.#deps
    const placed: PlacedMember[] = []
    const refused: RefusedMember[] = []
    const undo: (() => void)[] = []
    for (const queued of members) {
      yield
      const cycle = new PodCycle(queued.facts, view)
      const placement = placer.place(cycle, nodes)
      if (placement.kind === 'none') {
        const one = { queued, cycle, diagnosis: placement.diagnosis }
        refused.push(one)
        onRefused(one)
        continue
      }
      // The group's placement is decided anew in any case.
      nominations.remove(queued.facts.uid)
      undo.push(this.#assume(cycle, placement.entry))
      placed.push({ queued, entry: placement.entry })
    }
    const fullness = fullnessOf(nodes ?? [])
    for (const each of undo.toReversed()) each()
    return { placed, refused, fullness }
  }

  /** @returns a function that undoes it. */
  #assume(cycle: PodCycle, entry: NodeEntry): () => void {
    const { facts } = cycle
    const { index, devices } = this.#deps.view
    const allocated = cycle.usesDevices ? cycle.devicesOn(entry) : []
    const claims = 'reasons' in allocated ? [] : allocated
    const before = new Map(
      claims.map(({ claim }) => [claim, devices.claim(facts.namespace, claim.metadata.name)]),
    )
    index.assign(facts, entry.name)
    for (const { claim, allocation } of claims) {
      const { status = {} } = claim
      const consumer = consumerOf(claim, facts.pod)
      const reservedFor = [...(status.reservedFor ?? []), consumer]
      const assumed: ResourceClaim = {
        ...claim,
        status: { ...status, ...(allocation && { allocation }), reservedFor },
      }
      devices.setClaim(assumed)
    }
    return () => {
      for (const [claim, known] of before)
        if (known === undefined) devices.removeClaim(claim)
        else devices.setClaim(known)
      index.release(facts.uid)
    }
  }
}

function fullnessOf(nodes: readonly NodeEntry[]): number {
  const shares = [cpuSlot, memorySlot].map((slot) => {
    const sum = (amounts: (entry: NodeEntry) => number | undefined) =>
      nodes.reduce((total, entry) => total + (amounts(entry) ?? 0), 0)
    const all = sum(({ allocatable }) => allocatable[slot])
    return all === 0 ? 0 : sum(({ requested }) => requested[slot]) / all
  })
  return shares.reduce((total, share) => total + share, 0) / shares.length
}
