/**
 * Where the Kubernetes scheduler puts pods that nobody steers: on the node with the most room, its use in
 * balance, among few of their kind (plugins NodeResourcesFit, NodeResourcesBalancedAllocation and
 * PodTopologySpread with the constraints and weights of the default profile).
 */
import type { Amounts } from '../provisioning/resource-space.ts'

/** Pods that ask for the same and belong together. */
export interface PodKind {
  readonly amounts: Amounts
  /** What the room for one of them costs at least, per hour. */
  readonly worth: number
}

/** A node as the scheduler sees it. */
export interface Host {
  readonly free: Amounts
  /** CPU and memory that pods may ask for in all. */
  readonly total: readonly [cpu: number, memory: number]
  /** Index of the zone. */
  readonly zone: number
  /** How many pods of each kind run there and stay. */
  readonly counts: Int32Array
  /** Its {@link resourceScore} for the first pod of each kind; minus infinity where rules forbid the node, too. */
  readonly scores: Float64Array
}

export interface Layout {
  /** Where CPU and memory are in amounts. */
  readonly cpu: number
  readonly memory: number
  readonly zones: number
}

const most = 100

/**
 * What the scheduler thinks of the resources of a node for one pod: more is better.
 * @param free from `at` on, what is free on the node, in the order of the amounts.
 * @returns minus infinity when there is no room.
 */
export function resourceScore(
  amounts: Amounts,
  { cpu, memory }: Pick<Layout, 'cpu' | 'memory'>,
  [cores, bytes]: Host['total'],
  free: Amounts,
  at = 0,
): number {
  for (let i = 0; i < amounts.length; i++)
    if ((amounts[i] as number) > (free[at + i] as number)) return Number.NEGATIVE_INFINITY
  const cpuLeft = ((free[at + cpu] as number) - (amounts[cpu] as number)) / cores
  const memoryLeft = ((free[at + memory] as number) - (amounts[memory] as number)) / bytes
  return (most * (cpuLeft + memoryLeft)) / 2 + most * (1 - Math.abs(cpuLeft - memoryLeft) / 2)
}

const spreadWeight = 2
/** `maxSkew` less one of the default constraints, for zones and hosts. */
const zoneSlack = 4
const hostSlack = 2

/** The hosts as columns, each by host: they are asked for the same things over and over. */
interface Columns {
  readonly zones: Int32Array
  /** By kind. */
  readonly counts: readonly Int32Array[]
  readonly scores: readonly Float64Array[]
}

export class SchedulerModel {
  readonly #kinds: readonly PodKind[]
  readonly #layout: Layout
  readonly #hosts: readonly Host[]
  readonly #columns: Columns
  #room = new Float64Array(0)
  /** Work done so far: hosts compared for pods. */
  spent = 0

  /**
   * @param kinds in the order in which their pods come.
   * @param hosts all there may be.
   */
  constructor(kinds: readonly PodKind[], layout: Layout, hosts: readonly Host[]) {
    this.#kinds = kinds
    this.#layout = layout
    this.#hosts = hosts
    this.#columns = {
      zones: Int32Array.from(hosts, ({ zone }) => zone),
      counts: kinds.map((_, kind) => Int32Array.from(hosts, ({ counts }) => counts[kind] as number)),
      scores: kinds.map((_, kind) => Float64Array.from(hosts, ({ scores }) => scores[kind] as number)),
    }
  }

  /**
   * Places so many pods of each kind, one kind after the other.
   * @param hosts those that are there, by index; one may be there several times.
   * @param noise how much the scheduler may see otherwise: added to the score of a host.
   * @param homes takes for each kind the places in `hosts` of where its pods go.
   * @returns worth of the pods that found no place.
   */
  place(
    hosts: readonly number[],
    counts: Int32Array,
    noise: (() => number) | undefined,
    homes?: number[][],
  ): number {
    const round = new Round(hosts, this.#hosts, this.#columns, this.#layout, this.#roomFor(hosts.length))
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
          break
        }
        homes?.[index]?.push(best)
      }
    }
    return missing
  }

  /** Memory for what is free on the hosts that get pods. */
  #roomFor(hosts: number): Float64Array {
    const size = hosts * (this.#hosts[0]?.free.length ?? 0)
    if (this.#room.length < size) this.#room = new Float64Array(2 * size)
    return this.#room
  }
}

/** One round: the pods of all kinds find places. Arrays are by place of the host unless they say otherwise. */
class Round {
  readonly #hosts: readonly number[]
  /** By index. */
  readonly #known: readonly Host[]
  readonly #columns: Columns
  readonly #layout: Layout
  /** Amounts of a host. */
  readonly #size: number
  /** What is still free on hosts that have got pods, one after the other. */
  readonly #free: Float64Array
  /** Place there of each host; -1 of those that have got none. */
  readonly #slots: Int32Array
  #slotted = 0
  readonly #resources: Float64Array
  readonly #alike: Float64Array
  readonly #crowds: Float64Array
  /** Hosts with room for one more of the kind, in order. */
  readonly #open: Int32Array
  #opened = 0
  /** By zone. */
  readonly #inZone: Float64Array
  readonly #zoneTerms: Float64Array
  readonly #zoneWeight: number
  readonly #hostWeight: number
  #least = 0
  #greatest = 0

  constructor(
    hosts: readonly number[],
    known: readonly Host[],
    columns: Columns,
    layout: Layout,
    free: Float64Array,
  ) {
    this.#hosts = hosts
    this.#known = known
    this.#columns = columns
    this.#layout = layout
    this.#size = known[0]?.free.length ?? 0
    this.#free = free
    this.#slots = new Int32Array(hosts.length).fill(-1)
    this.#resources = new Float64Array(hosts.length)
    this.#alike = new Float64Array(hosts.length)
    this.#crowds = new Float64Array(hosts.length)
    this.#open = new Int32Array(hosts.length)
    this.#inZone = new Float64Array(layout.zones)
    this.#zoneTerms = new Float64Array(layout.zones)
    this.#zoneWeight = Math.log(layout.zones + 2)
    this.#hostWeight = Math.log(hosts.length + 2)
  }

  /** Pods of this kind come next. */
  begin(kind: PodKind, kindIndex: number): void {
    const inZone = this.#inZone
    inZone.fill(0)
    const { zones } = this.#columns
    const counts = this.#columns.counts[kindIndex] as Int32Array
    const scores = this.#columns.scores[kindIndex] as Float64Array
    this.#opened = 0
    for (let place = 0; place < this.#hosts.length; place++) {
      const host = this.#hosts[place] as number
      const there = counts[host] as number
      this.#alike[place] = there
      const zone = zones[host] as number
      inZone[zone] = (inZone[zone] as number) + there
      const first = scores[host] as number
      if (first === Number.NEGATIVE_INFINITY) continue
      const slot = this.#slots[place] as number
      const rated = slot < 0 ? first : this.#rate(this.#known[host] as Host, slot, kind)
      if (rated === Number.NEGATIVE_INFINITY) continue
      this.#resources[place] = rated
      this.#open[this.#opened++] = place
    }
  }

  /** Puts one pod of the kind on a host. @returns its place; -1 when there is no place. */
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

  /** How crowded each host is by pods of the kind. */
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

  /** Place among the open hosts of the one with the highest score. */
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
