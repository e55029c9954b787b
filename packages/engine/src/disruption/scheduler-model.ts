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
    const { cpu, memory, zones } = this.#layout
    const free = hosts.map((host) => host.free.slice())
    this.spent += 10 * hosts.length
    const resources = new Float64Array(hosts.length)
    const alike = new Float64Array(hosts.length)
    const inZone = new Float64Array(zones)
    const zoneWeight = Math.log(zones + 2)
    const hostWeight = Math.log(hosts.length + 2)
    let missing = 0
    const rate = (index: number, { amounts }: PodKind) => {
      const rest = free[index] as Amounts
      for (let i = 0; i < amounts.length; i++)
        if ((amounts[i] as number) > (rest[i] as number)) return Number.NEGATIVE_INFINITY
      const [cores, bytes] = (hosts[index] as Host).total
      const cpuLeft = ((rest[cpu] as number) - (amounts[cpu] as number)) / cores
      const memoryLeft = ((rest[memory] as number) - (amounts[memory] as number)) / bytes
      return (most * (cpuLeft + memoryLeft)) / 2 + most * (1 - Math.abs(cpuLeft - memoryLeft) / 2)
    }
    for (const [kindIndex, kind] of this.#kinds.entries()) {
      const count = counts[kindIndex] as number
      if (count === 0) continue
      inZone.fill(0)
      for (const [index, host] of hosts.entries()) {
        alike[index] = host.counts[kindIndex] as number
        inZone[host.zone] = (inZone[host.zone] as number) + alike[index]
        resources[index] = host.takes[kindIndex] === 1 ? rate(index, kind) : Number.NEGATIVE_INFINITY
      }
      const crowd = (index: number) =>
        Math.round(
          (inZone[(hosts[index] as Host).zone] as number) * zoneWeight +
            zoneSlack +
            (alike[index] as number) * hostWeight +
            hostSlack,
        )
      for (let placed = 0; placed < count; placed++) {
        this.spent += hosts.length
        let least = Number.POSITIVE_INFINITY
        let greatest = 0
        for (let index = 0; index < hosts.length; index++) {
          if (resources[index] === Number.NEGATIVE_INFINITY) continue
          const crowded = crowd(index)
          if (crowded < least) least = crowded
          if (crowded > greatest) greatest = crowded
        }
        let best = -1
        let bestScore = Number.NEGATIVE_INFINITY
        for (let index = 0; index < hosts.length; index++) {
          if (resources[index] === Number.NEGATIVE_INFINITY) continue
          const spread = (most * (greatest + least - crowd(index))) / greatest
          const score = (resources[index] as number) + spreadWeight * spread + (noise?.() ?? 0)
          if (score <= bestScore) continue
          bestScore = score
          best = index
        }
        if (best < 0) {
          missing += (count - placed) * kind.worth
          break
        }
        const { zone } = hosts[best] as Host
        const rest = free[best] as Amounts
        for (let i = 0; i < rest.length; i++) rest[i] = (rest[i] as number) - (kind.amounts[i] as number)
        alike[best] = (alike[best] as number) + 1
        inZone[zone] = (inZone[zone] as number) + 1
        resources[best] = rate(best, kind)
        homes?.[kindIndex]?.push(best)
      }
    }
    return missing
  }
}
