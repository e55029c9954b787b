/** CSI drivers that nodes lack although pods with their volumes need them (scheduling.md 8.1). */
import { type CsiDriver, type CsiNode, labels, type Node, ownValue } from '@tenon/api'
import type { MissingDrivers } from '@tenon/engine'
import type { Clock } from '@tenon/runtime'
import type { Caches } from '../caches.ts'
import { labelsOf, type StateNode } from './state-node.ts'

/** Node plugins start after the node is ready, and are away for a moment while they are updated. */
const graceMs = 3 * 60_000
/** How long it is remembered that nodes of a pool lacked a driver; then one more node may try. */
const memoryMs = 3_600_000

/** A node of a NodePool that has started. */
interface Observed {
  readonly pool: string
  readonly instanceType: string
  readonly drivers: ReadonlySet<string>
  /** Since when the node lacks a driver; Unix milliseconds. */
  readonly lackedSinceMs: ReadonlyMap<string, number>
}

interface Remembered {
  readonly pool: string
  readonly instanceType: string
  readonly driver: string
  /** Unix milliseconds. */
  readonly untilMs: number
}

type DriverCaches = Pick<Caches, 'csiDrivers' | 'csiNodes' | 'nodes'>

/**
 * A started node that lacks a driver for three minutes refuses pods with its volumes. New nodes are expected to have the
 * drivers that nodes of their NodePool and instance type have; while none is known, those of any node of the NodePool;
 * else every driver. So a driver that is not installed costs one node, not one after the other.
 */
export class VolumeDrivers {
  readonly #caches: DriverCaches
  readonly #clock: Pick<Clock, 'now'>
  /** Drivers whose CSIDriver asks for it. */
  readonly #required = new Set<string>()
  /** By Node name. */
  readonly #observed = new Map<string, Observed>()
  #remembered: readonly Remembered[] = []

  constructor(caches: DriverCaches, clock: Pick<Clock, 'now'>) {
    this.#caches = caches
    this.#clock = clock
  }

  follow(): void {
    const { nodes, csiNodes, csiDrivers } = this.#caches
    csiDrivers?.onChange(({ kind, object }) => {
      const { name } = object.metadata
      if (kind !== 'deleted' && isRequired(object)) this.#required.add(name)
      else this.#required.delete(name)
      for (const node of nodes.list()) this.#observe(node, csiNodes.get({ name: node.metadata.name }))
    })
    csiNodes.onChange(({ kind, object }) => {
      const { name } = object.metadata
      const node = nodes.get({ name })
      if (node !== undefined) this.#observe(node, kind === 'deleted' ? undefined : object)
    })
    nodes.onChange((change) => {
      const { name } = change.object.metadata
      if (change.kind === 'deleted') this.#forget(name)
      else if (change.kind !== 'updated' || change.old.metadata.labels !== change.object.metadata.labels)
        this.#observe(change.object, csiNodes.get({ name }))
    })
  }

  /** Drivers that an instance lacks; of a starting one those that it is expected to lack. */
  missingOn(state: StateNode): readonly string[] {
    if (this.#required.size === 0) return []
    if (state.node !== undefined && state.isInitialized) {
      const observed = this.#observed.get(state.node.metadata.name)
      return observed === undefined
        ? []
        : [...this.#required].filter((driver) => this.#lacks(observed, driver))
    }
    const { [labels.nodePool]: pool = '', [labels.instanceType]: instanceType = '' } = labelsOf(state)
    return this.#expectedIn(pool)(instanceType)
  }

  /** Drivers that new nodes of a NodePool will lack; undefined if they will lack none. */
  missingIn(pool: string, instanceTypes: readonly { readonly name: string }[]): MissingDrivers | undefined {
    if (this.#required.size === 0) return undefined
    const expectedOf = this.#expectedIn(pool)
    const missing = instanceTypes.flatMap(({ name }) => {
      const drivers = expectedOf(name)
      return drivers.length === 0 ? [] : [[name, drivers] as const]
    })
    return missing.length === 0 ? undefined : Object.fromEntries(missing)
  }

  /** Drivers that new nodes of a NodePool will lack, by name of the instance type. */
  #expectedIn(pool: string): (instanceType: string) => readonly string[] {
    const now = this.#clock.now()
    const nodes = [...this.#observed.values()].filter((each) => each.pool === pool)
    const evidence = [...this.#required].map((driver) => ({
      driver,
      typesWith: typesOf(nodes.filter(({ drivers }) => drivers.has(driver))),
      typesWithout: typesOf([
        ...nodes.filter((each) => this.#lacks(each, driver)),
        ...this.#remembered.filter(
          (each) => each.pool === pool && each.driver === driver && each.untilMs > now,
        ),
      ]),
    }))
    return (instanceType) =>
      evidence
        .filter(({ typesWith, typesWithout }) =>
          typesWith.size === 0
            ? typesWithout.size > 0
            : !typesWith.has(instanceType) && typesWithout.has(instanceType),
        )
        .map(({ driver }) => driver)
  }

  #lacks({ lackedSinceMs }: Observed, driver: string): boolean {
    const sinceMs = lackedSinceMs.get(driver)
    return sinceMs !== undefined && this.#clock.now() - sinceMs >= graceMs
  }

  #observe(node: Node, csiNode: CsiNode | undefined): void {
    const { name, labels: own } = node.metadata
    const pool = ownValue(own, labels.nodePool) ?? ''
    if (this.#required.size === 0 || (pool !== '' && ownValue(own, labels.initialized) !== 'true')) {
      this.#observed.delete(name)
      return
    }
    const before = this.#observed.get(name)
    const drivers = new Set((csiNode?.spec.drivers ?? []).map((driver) => driver.name))
    const lacked = [...this.#required].filter((driver) => !drivers.has(driver))
    const now = this.#clock.now()
    const lackedSinceMs = new Map(
      lacked.map((driver) => [driver, before?.lackedSinceMs.get(driver) ?? now] as const),
    )
    const instanceType = ownValue(own, labels.instanceType) ?? ''
    this.#observed.set(name, { pool, instanceType, drivers, lackedSinceMs })
    this.#remembered = this.#remembered.filter((each) => each.pool !== pool || !drivers.has(each.driver))
  }

  #forget(name: string): void {
    const observed = this.#observed.get(name)
    this.#observed.delete(name)
    if (observed === undefined || observed.pool === '') return
    const { pool, instanceType } = observed
    const now = this.#clock.now()
    const lacked = [...observed.lackedSinceMs.keys()].filter((driver) => this.#lacks(observed, driver))
    const isNew = (each: Remembered) =>
      each.pool !== pool || each.instanceType !== instanceType || !lacked.includes(each.driver)
    this.#remembered = [
      ...this.#remembered.filter((each) => each.untilMs > now && isNew(each)),
      ...lacked.map((driver) => ({ pool, instanceType, driver, untilMs: now + memoryMs })),
    ]
  }
}

function isRequired({ spec }: CsiDriver): boolean {
  return spec.preventPodSchedulingIfMissing === true
}

function typesOf(nodes: readonly Pick<Observed, 'instanceType'>[]): ReadonlySet<string> {
  return new Set(nodes.map(({ instanceType }) => instanceType))
}
