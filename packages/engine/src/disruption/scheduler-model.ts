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
  /** 1 for each kind whose rules allow the node. */
  readonly takes: Uint8Array
}

export interface Layout {
  /** Where CPU and memory are in amounts. */
  readonly cpu: number
  readonly memory: number
  readonly zones: number
}

const most = 100
const spreadWeight = 2
/** `maxSkew` less one of the default constraints, for zones and hosts. */
const zoneSlack = 4
const hostSlack = 2

export class SchedulerModel {
  readonly #kinds: readonly PodKind[]
  readonly #layout: Layout
  #room = new Float64Array(0)
  /** Work done so far: hosts compared for pods. */
  spent = 0

  /** @param kinds in the order in which their pods come. */
  constructor(kinds: readonly PodKind[], layout: Layout) {
    this.#kinds = kinds
    this.#layout = layout
  }

  /**
   * Places so many pods of each kind, one kind after the other.
   * @param noise how much the scheduler may see otherwise: added to the score of a host.
   * @param homes takes for each kind the hosts of its pods, by index.
   * @returns worth of the pods that found no place.
   */
  place(
    hosts: readonly Host[],
    counts: Int32Array,
    noise: (() => number) | undefined,
    homes?: number[][],
  ): number {
    const round = new Round(hosts, this.#layout, this.#roomOf(hosts))
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

  /** What is free on the hosts, one after the other, for one round to change. */
  #roomOf(hosts: readonly Host[]): Float64Array {
    const size = hosts[0]?.free.length ?? 0
    if (this.#room.length < hosts.length * size) this.#room = new Float64Array(2 * hosts.length * size)
    for (let index = 0; index < hosts.length; index++)
      this.#room.set((hosts[index] as Host).free, index * size)
    return this.#room
  }
}

/** One round: the pods of all kinds find places. Arrays are by host unless they say otherwise. */
class Round {
  readonly #hosts: readonly Host[]
  readonly #layout: Layout
  /** Amounts of a host. */
  readonly #size: number
  readonly #free: Float64Array
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

  constructor(hosts: readonly Host[], layout: Layout, free: Float64Array) {
    this.#hosts = hosts
    this.#layout = layout
    this.#size = hosts[0]?.free.length ?? 0
    this.#free = free
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
    this.#opened = 0
    for (let index = 0; index < this.#hosts.length; index++) {
      const host = this.#hosts[index] as Host
      const there = host.counts[kindIndex] as number
      this.#alike[index] = there
      inZone[host.zone] = (inZone[host.zone] as number) + there
      if (host.takes[kindIndex] !== 1) continue
      const rated = this.#rate(index, kind)
      if (rated === Number.NEGATIVE_INFINITY) continue
      this.#resources[index] = rated
      this.#open[this.#opened++] = index
    }
  }

  /** Puts one pod of the kind on a host. @returns its index; -1 when there is no place. */
  place(kind: PodKind, noise: (() => number) | undefined): number {
    this.#crowd()
    const place = this.#bestPlace(noise)
    if (place < 0) return -1
    const best = this.#open[place] as number
    const { zone } = this.#hosts[best] as Host
    const from = best * this.#size
    for (let i = 0; i < this.#size; i++)
      this.#free[from + i] = (this.#free[from + i] as number) - (kind.amounts[i] as number)
    this.#alike[best] = (this.#alike[best] as number) + 1
    this.#inZone[zone] = (this.#inZone[zone] as number) + 1
    const rated = this.#rate(best, kind)
    this.#resources[best] = rated
    if (rated === Number.NEGATIVE_INFINITY) {
      this.#open.copyWithin(place, place + 1, this.#opened)
      this.#opened--
    }
    return best
  }

  /** How crowded each host is by pods of the kind. */
  #crowd(): void {
    for (let zone = 0; zone < this.#zoneTerms.length; zone++)
      this.#zoneTerms[zone] = (this.#inZone[zone] as number) * this.#zoneWeight + zoneSlack
    let least = Number.POSITIVE_INFINITY
    let greatest = 0
    for (let place = 0; place < this.#opened; place++) {
      const index = this.#open[place] as number
      const zoneTerm = this.#zoneTerms[(this.#hosts[index] as Host).zone] as number
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

  #rate(index: number, { amounts }: PodKind): number {
    const { cpu, memory } = this.#layout
    const free = this.#free
    const from = index * this.#size
    for (let i = 0; i < this.#size; i++)
      if ((amounts[i] as number) > (free[from + i] as number)) return Number.NEGATIVE_INFINITY
    const [cores, bytes] = (this.#hosts[index] as Host).total
    const cpuLeft = ((free[from + cpu] as number) - (amounts[cpu] as number)) / cores
    const memoryLeft = ((free[from + memory] as number) - (amounts[memory] as number)) / bytes
    return (most * (cpuLeft + memoryLeft)) / 2 + most * (1 - Math.abs(cpuLeft - memoryLeft) / 2)
  }
}
