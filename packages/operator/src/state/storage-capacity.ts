/** What CSI drivers can still provision, by StorageClass (scheduling.md 8.3). */
import {
  type CsiStorageCapacity,
  labels,
  largestVolume,
  matchesSelector,
  type Node,
  type NodeSelectorRequirement,
  ownValue,
  parseResource,
  type PersistentVolume,
  type StorageClass,
} from '@tenon/api'
import type { ClassCapacity, LocalStorage } from '@tenon/engine'
import type { Clock } from '@tenon/runtime'
import { type Caches, indexes } from './caches.ts'

/** Drivers publish the storage of a new node within this time; until then it is not known to be full. */
const publishMs = 10 * 60_000
/** How long it is remembered what empty nodes of a type have, after the last one. */
const memoryMs = 24 * 3_600_000
/** How long a driver that published nothing is not tried on another node. */
const silenceMs = 3_600_000

interface Remembered {
  readonly bytes: number
  /** Unix milliseconds. */
  readonly untilMs: number
}

type StorageCaches = Pick<
  Caches,
  'csiDrivers' | 'csiNodes' | 'csiStorageCapacities' | 'nodes' | 'persistentVolumes'
>

export class StorageCapacity {
  readonly #caches: StorageCaches
  readonly #clock: Pick<Clock, 'now'>
  /** By StorageClass, then by instance type. */
  readonly #remembered = new Map<string, Map<string, Remembered>>()
  /** Until when a class is taken for one without storage, as its driver publishes nothing; Unix milliseconds. */
  readonly #silentUntilMs = new Map<string, number>()

  constructor(caches: StorageCaches, clock: Pick<Clock, 'now'>) {
    this.#caches = caches
    this.#clock = clock
  }

  /**
   * @param isShared whether several nodes have the same value of a label, which is known before they exist, such as a zone.
   * @returns undefined if the driver of the class does not publish its capacity, or it cannot be read.
   */
  of(storageClass: StorageClass, isShared: (key: string) => boolean): ClassCapacity | undefined {
    const { csiDrivers, csiStorageCapacities } = this.#caches
    const driver = csiDrivers?.get({ name: storageClass.provisioner })
    if (driver?.spec.storageCapacity !== true || csiStorageCapacities?.isSynced !== true) return undefined
    const all = csiStorageCapacities.byIndex(indexes.byStorageClass, storageClass.metadata.name)
    const shared = all.filter((each) => keysOf(each).length > 0 && keysOf(each).every(isShared))
    const ofNodes = all.filter((each) => keysOf(each).length > 0 && !shared.includes(each))
    const hasLocal = ofNodes.length > 0 || shared.length === 0
    return {
      shared: shared.flatMap((each) => {
        const bytes = largestVolume(each)
        return bytes === undefined ? [] : [{ term: termOf(each), bytes }]
      }),
      local: hasLocal ? this.#localStorage(storageClass, ofNodes) : undefined,
    }
  }

  /** Undefined if the driver has run on a node for ten minutes and published nothing for any. */
  #localStorage(
    storageClass: StorageClass,
    capacities: readonly CsiStorageCapacity[],
  ): LocalStorage | undefined {
    const { nodes, persistentVolumes } = this.#caches
    const now = this.#clock.now()
    const byHost = new Map<string, number>()
    const all = nodes.list()
    const settled = all.filter(
      ({ metadata }) => now - Date.parse(metadata.creationTimestamp ?? '') >= publishMs,
    )
    for (const node of settled) byHost.set(hostOf(node), 0)
    const nodesOf = byLabel(all)
    const provisioned = sizesByLabel(
      persistentVolumes.list().filter(({ spec }) => spec.csi?.driver === storageClass.provisioner),
    )
    const { name } = storageClass.metadata
    for (const capacity of capacities) {
      const free = largestVolume(capacity)
      const [key, value] = Object.entries(capacity.nodeTopology?.matchLabels ?? {})[0] ?? []
      if (free === undefined || key === undefined || value === undefined) continue
      const whenEmpty = free + (provisioned.get(`${key}=${value}`) ?? 0)
      for (const node of nodesOf(key, value)) {
        if (!matchesSelector(capacity.nodeTopology, node.metadata.labels ?? {})) continue
        const host = hostOf(node)
        byHost.set(host, Math.max(byHost.get(host) ?? 0, free))
        this.#remember(name, ownValue(node.metadata.labels, labels.instanceType) ?? '', whenEmpty)
      }
    }
    const users = settled.filter((node) => this.#runs(node, storageClass.provisioner))
    if (capacities.length === 0 && this.#isSilent(name, users)) return undefined
    for (const { metadata } of users)
      this.#remember(name, ownValue(metadata.labels, labels.instanceType) ?? '', 0)
    return { byHost, byType: this.#byType(name) }
  }

  /** @param users nodes that have run the driver for long without a word from it. */
  #isSilent(storageClass: string, users: readonly Node[]): boolean {
    const now = this.#clock.now()
    if (users.length > 0) this.#silentUntilMs.set(storageClass, now + silenceMs)
    return (this.#silentUntilMs.get(storageClass) ?? 0) > now
  }

  #runs({ metadata: { name } }: Node, driver: string): boolean {
    return this.#caches.csiNodes.get({ name })?.spec.drivers?.some((each) => each.name === driver) === true
  }

  #remember(storageClass: string, instanceType: string, bytes: number): void {
    const known = this.#remembered.get(storageClass) ?? new Map<string, Remembered>()
    const now = this.#clock.now()
    const before = known.get(instanceType)
    const most = before !== undefined && before.untilMs > now ? Math.max(before.bytes, bytes) : bytes
    known.set(instanceType, { bytes: most, untilMs: now + memoryMs })
    this.#remembered.set(storageClass, known)
  }

  #byType(storageClass: string): ReadonlyMap<string, number> {
    const known = this.#remembered.get(storageClass) ?? new Map<string, Remembered>()
    const now = this.#clock.now()
    for (const [type, { untilMs }] of known) if (untilMs <= now) known.delete(type)
    return new Map([...known].map(([type, { bytes }]) => [type, bytes]))
  }
}

function keysOf({ nodeTopology }: CsiStorageCapacity): readonly string[] {
  const { matchLabels = {}, matchExpressions = [] } = nodeTopology ?? {}
  return [...Object.keys(matchLabels), ...matchExpressions.map(({ key }) => key)]
}

function termOf({ nodeTopology }: CsiStorageCapacity): readonly NodeSelectorRequirement[] {
  const { matchLabels = {}, matchExpressions = [] } = nodeTopology ?? {}
  return [
    ...Object.entries(matchLabels).map(
      ([key, value]): NodeSelectorRequirement => ({ key, operator: 'In', values: [value] }),
    ),
    ...matchExpressions,
  ]
}

function hostOf({ metadata }: Node): string {
  return ownValue(metadata.labels, labels.hostname) ?? metadata.name
}

/** Nodes by label; a key is indexed when it is asked for first. */
function byLabel(nodes: readonly Node[]): (key: string, value: string) => readonly Node[] {
  const known = new Map<string, ReadonlyMap<string | undefined, readonly Node[]>>()
  return (key, value) => {
    const ofKey = known.get(key) ?? Map.groupBy(nodes, ({ metadata }) => ownValue(metadata.labels, key))
    known.set(key, ofKey)
    return ofKey.get(value) ?? []
  }
}

/** Bytes of volumes by the label (`key=value`) of the only node that reaches them. */
function sizesByLabel(volumes: readonly PersistentVolume[]): ReadonlyMap<string, number> {
  const sizes = new Map<string, number>()
  for (const { spec } of volumes) {
    const size = parseResource('storage', spec.capacity?.['storage'] ?? '0')
    for (const { matchExpressions = [] } of spec.nodeAffinity?.required?.nodeSelectorTerms ?? [])
      for (const { key, operator, values = [] } of matchExpressions) {
        const [value, ...others] = values
        if (operator !== 'In' || value === undefined || others.length > 0) continue
        const at = `${key}=${value}`
        sizes.set(at, (sizes.get(at) ?? 0) + size)
      }
  }
  return sizes
}
