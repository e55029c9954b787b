/**
 * Models where kube-scheduler puts pods without a nomination: on the node with the most free (or as a scoring strategy
 * says) and the most balanced resources, among few pods of their kind (plugins NodeResourcesFit, NodeResourcesBalancedAllocation
 * and PodTopologySpread with the constraints and weights of the default profile).
 */
import type { ScoredBalance } from '@tenon/api'
import type { FitScoring } from '../input/input.ts'
import type { Amounts } from '../scheduling/pods/resource-space.ts'

/** Pods with equal requests that count as one application for spreading. */
export interface PodKind {
  readonly amounts: Amounts
  /** The least that room for one pod costs, per hour. */
  readonly worth: number
}

/** A node as the scheduler sees it. */
export interface Host {
  readonly free: Amounts
  /** Allocatable CPU and memory, and what else {@link Layout.fit} scores, in its order. */
  readonly total: readonly [cpu: number, memory: number, ...scored: number[]]
  /** Index of the zone. */
  readonly zone: number
  /** Pods of each kind that run there and stay. */
  readonly counts: Int32Array
  /**
   * Its {@link resourceScore} for the first pod of each kind; minus infinity where the pod does not fit or
   * may not run.
   */
  readonly scores: Float64Array
}

export interface Layout {
  /** Positions of CPU and memory in amounts. */
  readonly cpu: number
  readonly memory: number
  readonly zones: number
  readonly balance: ScoredBalance
  /** Absent: the least allocated CPU and memory are best. */
  readonly fit?: FitScore
}

/** How nodes are scored by what is used of them. */
export interface FitScore {
  /** Those that amounts have. */
  readonly resources: readonly {
    /** Position in amounts. */
    readonly at: number
    readonly weight: number
    /** Counts only for pods that request it. */
    readonly isScalar: boolean
  }[]
  /** The score, 0 to 100, of a used share in percent. */
  readonly scoreOf: (usedPercent: number) => number
  /** Whether resources that score 0 do not count. */
  readonly skipsZero: boolean
}

/** @param at position of a resource in amounts; -1 for those that neither pods nor nodes have. */
export function fitScoreOf(
  { type, resources, shape = [] }: FitScoring,
  at: (name: string) => number,
): FitScore {
  const scores = {
    LeastAllocated: (used: number) => most - used,
    MostAllocated: (used: number) => used,
    RequestedToCapacityRatio: (used: number) => scoreAt(shape, used),
  }
  return {
    resources: resources
      .map(({ name, weight }) => ({ at: at(name), weight, isScalar: /\/|^hugepages-/.test(name) }))
      .filter((resource) => resource.at >= 0),
    scoreOf: scores[type],
    skipsZero: type === 'RequestedToCapacityRatio',
  }
}

/** The score of a utilization, linear between the points of a shape and level beyond them. */
function scoreAt(shape: NonNullable<FitScoring['shape']>, utilization: number): number {
  const next = shape.findIndex((point) => utilization <= point.utilization)
  const to = shape[next] ?? shape.at(-1)
  const from = next > 0 ? shape[next - 1] : to
  if (from === undefined || to === undefined) return 0
  const part = from === to ? 0 : (utilization - from.utilization) / (to.utilization - from.utilization)
  return 10 * (from.score + part * (to.score - from.score))
}

function scoreOfUse(
  amounts: Amounts,
  { resources, scoreOf, skipsZero }: FitScore,
  total: Host['total'],
  free: Amounts,
  at: number,
): number {
  let sum = 0
  let weights = 0
  for (let index = 0; index < resources.length; index++) {
    const resource = resources[index] as FitScore['resources'][number]
    const amount = amounts[resource.at] as number
    const all = total[2 + index] as number
    if (all <= 0 || (resource.isScalar && amount === 0)) continue
    const used = most * (1 - ((free[at + resource.at] as number) - amount) / all)
    const score = scoreOf(Math.min(most, Math.max(0, used)))
    if (skipsZero && score <= 0) continue
    sum += resource.weight * score
    weights += resource.weight
  }
  return weights === 0 ? 0 : sum / weights
}

const most = 100

/**
 * kube-scheduler's resource score of a node for one pod; higher is better.
 * @param free holds what is free on the node, from index `at` on.
 * @returns minus infinity when the pod does not fit.
 */
export function resourceScore(
  amounts: Amounts,
  { cpu, memory, balance, fit }: Omit<Layout, 'zones'>,
  total: Host['total'],
  free: Amounts,
  at = 0,
): number {
  for (let i = 0; i < amounts.length; i++)
    if ((amounts[i] as number) > (free[at + i] as number)) return Number.NEGATIVE_INFINITY
  const [cores, bytes] = total
  const cpuLeft = ((free[at + cpu] as number) - (amounts[cpu] as number)) / cores
  const memoryLeft = ((free[at + memory] as number) - (amounts[memory] as number)) / bytes
  const fitting =
    fit === undefined ? (most * (cpuLeft + memoryLeft)) / 2 : scoreOfUse(amounts, fit, total, free, at)
  const after = evenness(cpuLeft, memoryLeft)
  if (balance === 'use') return fitting + after
  const before = evenness((free[at + cpu] as number) / cores, (free[at + memory] as number) / bytes)
  return fitting + (3 * most) / 4 + (after - before) / 2
}

function evenness(cpuLeft: number, memoryLeft: number): number {
  return most * (1 - Math.abs(cpuLeft - memoryLeft) / 2)
}

const spreadWeight = 2
/** `maxSkew` minus one of the default constraints, for zones and hosts. */
const zoneSlack = 4
const hostSlack = 2

/** Facts about hosts, one array per fact, as they are read again and again. */
interface Columns {
  readonly zones: Int32Array
  /** By kind. */
  readonly counts: readonly Int32Array[]
  readonly scores: readonly Float64Array[]
  /** By kind: the hosts that may run it and have room for a first pod of it. */
  readonly roomy: readonly Int32Array[]
  /** By kind, then by zone: pods on all hosts. */
  readonly inZone: readonly Float64Array[]
}

function columnsOf(kinds: readonly PodKind[], { zones }: Layout, hosts: readonly Host[]): Columns {
  const ofHosts = new Int32Array(hosts.length)
  for (let at = 0; at < hosts.length; at++) ofHosts[at] = (hosts[at] as Host).zone
  const counts: Int32Array[] = []
  const scores: Float64Array[] = []
  const roomy: Int32Array[] = []
  const inZone: Float64Array[] = []
  // Plain loops: building arrays from lists takes ten times as long, and this runs for each search.
  for (let kind = 0; kind < kinds.length; kind++) {
    const ownCounts = new Int32Array(hosts.length)
    const ownScores = new Float64Array(hosts.length)
    const open = new Int32Array(hosts.length)
    const sums = new Float64Array(zones)
    let opened = 0
    for (let at = 0; at < hosts.length; at++) {
      const host = hosts[at] as Host
      const count = host.counts[kind] as number
      const score = host.scores[kind] as number
      ownCounts[at] = count
      ownScores[at] = score
      sums[host.zone] = (sums[host.zone] as number) + count
      if (score !== Number.NEGATIVE_INFINITY) open[opened++] = at
    }
    counts.push(ownCounts)
    scores.push(ownScores)
    roomy.push(open.subarray(0, opened))
    inZone.push(sums)
  }
  return { zones: ofHosts, counts, scores, roomy, inZone }
}

export interface PlaceOptions {
  /** Random differences from kube-scheduler's score, to test how stable a plan is. */
  readonly noise?: (() => number) | undefined
  /** Receives for each kind the positions in `hosts` of the nodes that its pods go to. */
  readonly homes?: number[][]
  /** Stop once pods of more than this worth do not fit. */
  readonly mostMissing?: number
}

export class SchedulerModel {
  readonly #kinds: readonly PodKind[]
  readonly #round: Round
  /** Work done so far, in hosts compared for a pod. */
  spent = 0

  /**
   * @param kinds in the order in which their pods are placed.
   * @param hosts every host that may occur.
   */
  constructor(kinds: readonly PodKind[], layout: Layout, hosts: readonly Host[]) {
    this.#kinds = kinds
    this.#round = new Round(hosts, columnsOf(kinds, layout, hosts), layout)
  }

  /**
   * Places a number of pods of each kind, one kind after the other.
   * @param hosts indexes of the hosts that exist; an index may occur several times.
   * @returns the worth of the pods that do not fit.
   */
  place(
    hosts: readonly number[],
    counts: Int32Array,
    { noise, homes, mostMissing = Number.POSITIVE_INFINITY }: PlaceOptions = {},
  ): number {
    const round = this.#round
    round.reset(hosts)
    this.spent += 10 * hosts.length
    let missing = 0
    for (let index = 0; index < this.#kinds.length; index++) {
      const count = counts[index] as number
      if (count === 0) continue
      const kind = this.#kinds[index] as PodKind
      round.begin(kind, index)
      for (let placed = 0; placed < count; placed++) {
        this.spent += hosts.length
        const best = round.place(kind, noise)
        if (best < 0) {
          missing += (count - placed) * kind.worth
          if (missing > mostMissing) return missing
          break
        }
        homes?.[index]?.push(best)
      }
    }
    return missing
  }
}

/**
 * Places pods on one set of hosts; reused for set after set. "Position" is an index in that set, "index" one
 * in the list of all hosts.
 */
class Round {
  /** All hosts, by index. */
  readonly #known: readonly Host[]
  readonly #columns: Columns
  readonly #layout: Layout
  /** Length of a host's amounts. */
  readonly #size: number
  #hosts: readonly number[] = []
  /** By index: how often the host occurs in the set, and its first position or -1. */
  readonly #times: Int32Array
  readonly #firsts: Int32Array
  /** The next position of the same host; -1 after the last. */
  #nexts = new Int32Array(0)
  /** Hosts that got pods and occur more than once. */
  #odd: number[] = []
  /** By index: whether any pod that stays runs there. */
  readonly #hasPods: Uint8Array
  /** What is free on hosts that got pods, one host after the other. */
  #free = new Float64Array(0)
  /** By position: offset in `#free`; -1 for hosts that got no pod. */
  #slots = new Int32Array(0)
  #slotted = 0
  #resources = new Float64Array(0)
  #alike = new Float64Array(0)
  #crowds = new Float64Array(0)
  /** Positions with room for one more pod of the kind, in order. */
  #open = new Int32Array(0)
  #opened = 0
  /** By zone: pods of the kind. */
  readonly #inZone: Float64Array
  readonly #zoneTerms: Float64Array
  readonly #zoneWeight: number
  #hostWeight = 0
  #least = 0
  #greatest = 0

  constructor(known: readonly Host[], columns: Columns, layout: Layout) {
    this.#known = known
    this.#columns = columns
    this.#layout = layout
    this.#size = known[0]?.free.length ?? 0
    this.#times = new Int32Array(known.length)
    this.#firsts = new Int32Array(known.length)
    this.#hasPods = Uint8Array.from(known, ({ counts }) => (counts.some((count) => count > 0) ? 1 : 0))
    this.#inZone = new Float64Array(layout.zones)
    this.#zoneTerms = new Float64Array(layout.zones)
    this.#zoneWeight = Math.log(layout.zones + 2)
  }

  /** Starts with another set of hosts, none of which has got pods. */
  reset(hosts: readonly number[]): void {
    const { length } = hosts
    if (this.#slots.length < length) this.#grow(2 * length)
    this.#hosts = hosts
    this.#slots.fill(-1, 0, length)
    this.#slotted = 0
    this.#hostWeight = Math.log(length + 2)
    this.#locate(hosts)
  }

  #locate(hosts: readonly number[]): void {
    const times = this.#times.fill(0)
    const firsts = this.#firsts.fill(-1)
    for (let place = hosts.length - 1; place >= 0; place--) {
      const host = hosts[place] as number
      this.#nexts[place] = firsts[host] as number
      firsts[host] = place
      times[host] = (times[host] as number) + 1
    }
    this.#odd = []
    for (let host = 0; host < times.length; host++)
      if (times[host] !== 1 && this.#hasPods[host] === 1) this.#odd.push(host)
  }

  #grow(hosts: number): void {
    this.#free = new Float64Array(hosts * this.#size)
    this.#slots = new Int32Array(hosts)
    this.#nexts = new Int32Array(hosts)
    this.#resources = new Float64Array(hosts)
    this.#alike = new Float64Array(hosts)
    this.#crowds = new Float64Array(hosts)
    this.#open = new Int32Array(hosts)
  }

  /** The next pods are of this kind. */
  begin(kind: PodKind, kindIndex: number): void {
    const counts = this.#columns.counts[kindIndex] as Int32Array
    this.#countInZones(counts, kindIndex)
    const scores = this.#columns.scores[kindIndex] as Float64Array
    const roomy = this.#columns.roomy[kindIndex] as Int32Array
    this.#opened = 0
    let last = -1
    let isInOrder = true
    for (let each = 0; each < roomy.length; each++) {
      const host = roomy[each] as number
      for (let place = this.#firsts[host] as number; place >= 0; place = this.#nexts[place] as number) {
        const slot = this.#slots[place] as number
        const rated = slot < 0 ? (scores[host] as number) : this.#rate(this.#known[host] as Host, slot, kind)
        if (rated === Number.NEGATIVE_INFINITY) continue
        this.#resources[place] = rated
        this.#alike[place] = counts[host] as number
        this.#open[this.#opened++] = place
        isInOrder &&= place > last
        last = place
      }
    }
    if (!isInOrder) this.#open.subarray(0, this.#opened).sort()
  }

  #countInZones(counts: Int32Array, kindIndex: number): void {
    const { zones, inZone } = this.#columns
    this.#inZone.set(inZone[kindIndex] as Float64Array)
    for (const host of this.#odd) {
      const zone = zones[host] as number
      const others = ((this.#times[host] as number) - 1) * (counts[host] as number)
      this.#inZone[zone] = (this.#inZone[zone] as number) + others
    }
  }

  /**
   * Places one pod of the kind.
   * @returns the position of its host; -1 if no host has room.
   */
  place(kind: PodKind, noise: (() => number) | undefined): number {
    this.#crowd()
    const place = this.#bestPlace(noise)
    if (place < 0) return -1
    const best = this.#open[place] as number
    const host = this.#known[this.#hosts[best] as number] as Host
    const { zone } = host
    const slot = this.#slotOf(best, host)
    const from = slot * this.#size
    for (let i = 0; i < this.#size; i++)
      this.#free[from + i] = (this.#free[from + i] as number) - (kind.amounts[i] as number)
    this.#alike[best] = (this.#alike[best] as number) + 1
    this.#inZone[zone] = (this.#inZone[zone] as number) + 1
    const rated = this.#rate(host, slot, kind)
    this.#resources[best] = rated
    if (rated === Number.NEGATIVE_INFINITY) {
      this.#open.copyWithin(place, place + 1, this.#opened)
      this.#opened--
    }
    return best
  }

  /** Computes the spreading score of each host for the kind. */
  #crowd(): void {
    const { zones } = this.#columns
    for (let zone = 0; zone < this.#zoneTerms.length; zone++)
      this.#zoneTerms[zone] = (this.#inZone[zone] as number) * this.#zoneWeight + zoneSlack
    let least = Number.POSITIVE_INFINITY
    let greatest = 0
    for (let place = 0; place < this.#opened; place++) {
      const index = this.#open[place] as number
      const zoneTerm = this.#zoneTerms[zones[this.#hosts[index] as number] as number] as number
      const crowded = Math.round(zoneTerm + (this.#alike[index] as number) * this.#hostWeight + hostSlack)
      this.#crowds[index] = crowded
      if (crowded < least) least = crowded
      if (crowded > greatest) greatest = crowded
    }
    this.#least = least
    this.#greatest = greatest
  }

  /** Index in `#open` of the host with the highest score. */
  #bestPlace(noise: (() => number) | undefined): number {
    const greatest = this.#greatest
    const sum = greatest + this.#least
    let bestPlace = -1
    let bestScore = Number.NEGATIVE_INFINITY
    for (let place = 0; place < this.#opened; place++) {
      const index = this.#open[place] as number
      const spread = (most * (sum - (this.#crowds[index] as number))) / greatest
      const score = (this.#resources[index] as number) + spreadWeight * spread + (noise?.() ?? 0)
      if (score <= bestScore) continue
      bestScore = score
      bestPlace = place
    }
    return bestPlace
  }

  #slotOf(index: number, { free }: Host): number {
    let slot = this.#slots[index] as number
    if (slot >= 0) return slot
    slot = this.#slotted++
    this.#slots[index] = slot
    this.#free.set(free, slot * this.#size)
    return slot
  }

  #rate({ total }: Host, slot: number, { amounts }: PodKind): number {
    return resourceScore(amounts, this.#layout, total, this.#free, slot * this.#size)
  }
}
