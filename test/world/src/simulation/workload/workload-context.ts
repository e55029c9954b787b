/** What every kind of workload uses. */
import type { KubeObject, ResourceType } from '@tenon/api'
import { ApiError } from '@tenon/devcluster'
import { type Clock, integerBetween, type Random, unit } from '@tenon/runtime'
import type { World } from '../../world.ts'
import type { WorldCloud } from '../cloud/world-cloud.ts'
import type { EventLog } from '../event-log.ts'
import { isLarge, type WorkloadKind } from '../story.ts'

/** On pods that fit no pool: that they are pending is not a failure. */
export const unsatisfiableLabel = 'world.tenon.sh/unsatisfiable'

/** On claims whose finalizers a user removed: their instances may be left behind. */
export const abandonedAnnotation = 'world.tenon.sh/abandoned'

/** Random choices of one kind of workload. */
export class Dice {
  readonly #random: Random

  constructor(random: Random) {
    this.#random = random
  }

  /** Both bounds are included. */
  between(low: number, high: number): number {
    return integerBetween(this.#random, Math.ceil(low), Math.max(Math.ceil(low), Math.floor(high)))
  }

  chance(probability: number): boolean {
    return unit(this.#random) < probability
  }

  oneOf<T>(values: readonly [T, ...T[]]): T {
    return values[this.between(0, values.length - 1)] ?? values[0]
  }

  /** An element, or undefined if the list is empty. */
  pick<T>(values: readonly T[]): T | undefined {
    return values[this.between(0, values.length - 1)]
  }
}

/** Acts for one kind of workload as a cluster administrator, on virtual time, until the calm phase. */
export class WorkloadContext {
  readonly world: World
  readonly cloud: WorldCloud
  readonly dice: Dice
  /** Number of nodes that the whole workload usually fills. */
  readonly nodes: number
  /** All kinds that the seed draws, including those that the story omits. */
  readonly drawn: ReadonlySet<WorkloadKind>
  readonly #clock: Clock
  readonly #log: EventLog
  readonly #isOver: () => boolean

  constructor(parts: {
    readonly world: World
    readonly cloud: WorldCloud
    readonly dice: Dice
    readonly nodes: number
    readonly drawn: ReadonlySet<WorkloadKind>
    readonly clock: Clock
    readonly log: EventLog
    readonly isOver: () => boolean
  }) {
    this.world = parts.world
    this.cloud = parts.cloud
    this.dice = parts.dice
    this.nodes = parts.nodes
    this.drawn = parts.drawn
    this.#clock = parts.clock
    this.#log = parts.log
    this.#isOver = parts.isOver
  }

  get nowMs(): number {
    return this.#clock.monotonic()
  }

  create(type: ResourceType, object: KubeObject): void {
    this.act(`create ${type.plural}/${object.metadata.name}`, () => {
      this.world.cluster.server.local.create(type, object)
    })
  }

  patch(type: ResourceType, name: string, patch: object, namespace?: string): void {
    this.act(`patch ${type.plural}/${name} ${JSON.stringify(patch)}`, () => {
      this.world.cluster.server.local.patch(type, namespace, name, patch)
    })
  }

  delete(type: ResourceType, name: string, namespace?: string): void {
    this.act(`delete ${type.plural}/${name}`, () => {
      this.world.cluster.server.local.delete(type, namespace, name, { propagationPolicy: 'Background' })
    })
  }

  /** Does something that the cluster may reject, as it may reject a user's request. */
  act(text: string, work: () => void): void {
    try {
      work()
      this.#log.record('workload', text)
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      this.#log.record('workload', `${text}: ${error.code}`)
    }
  }

  /** Once, after about `minutes`, unless the calm phase begins before. */
  later(minutes: number, work: () => void): void {
    this.#clock.after(minutes * 60_000, () => {
      if (!this.#isOver()) work()
    })
  }

  /** Repeatedly until the calm phase, with random pauses; twelve times as long in large worlds. */
  every(leastMinutes: number, mostMinutes: number, work: () => void): void {
    // Each change in a large world affects many objects: with 200 nodes 13 times as many as usual.
    const scale = isLarge(this) ? 720 : 60
    const seconds = this.dice.between(leastMinutes * scale, mostMinutes * scale)
    this.later(seconds / 60, () => {
      work()
      this.every(leastMinutes, mostMinutes, work)
    })
  }
}
