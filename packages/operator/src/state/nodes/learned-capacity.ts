/**
 * Real capacity of instance types, learned from Nodes (reports.md 1, "Learned capacity"). The hypervisor keeps some of the
 * memory, a kubelet reserves more than its class says, an image allows fewer pods: the catalogue does not know. The smallest
 * figures of all instances count, for a day even of deleted ones.
 */
import {
  hashString,
  isConditionTrue,
  labels,
  type Node,
  type NodeClaim,
  type NodeClass,
  type NodePool,
  ownValue,
  parseResources,
  type InstanceType,
  type Resources,
} from '@tenon/api'
import {
  allocatableOf,
  correctedType,
  type InstanceFigures,
  type Shortfall,
  shortfallOf,
} from '@tenon/engine'
import { type Clock, Listeners, perObject } from '@tenon/runtime'
import type { Caches } from '../caches.ts'
import type { ClusterState } from '../cluster-state.ts'
import { isNodeReady } from './state-node.ts'

/** On NodeClaims: hash of the node class at launch, which determines what an instance reserves. */
export const nodeClassSettingsAnnotation = 'tenon.sh/node-class-settings'
/** How long figures are remembered after the last instance. */
const memoryMs = 24 * 3_600_000
/**
 * How long a type must be too small before that is reported: a provider that corrects its own types from Nodes needs a
 * moment after a start.
 */
const settlingMs = 10_000
/** Known when a kubelet first reports. Devices come later, and their number changes with their health. */
const learned: ReadonlySet<string> = new Set(['cpu', 'memory', 'ephemeral-storage', 'pods'])

/** Memoized: types and figures keep their identity as long as nothing changes. */
const shortfallFrom = perObject((figures: InstanceFigures) =>
  perObject((type: InstanceType) => shortfallOf(type, figures) ?? null),
)

interface LearnedFigures extends InstanceFigures {
  /** Image of the instances; empty if unknown. */
  readonly image: string
  /** Launch of the youngest instance; Unix milliseconds. */
  readonly launchedMs: number
}

/** Figures of deleted instances. */
export interface RememberedFigures extends LearnedFigures {
  /** Expiry; Unix milliseconds. */
  readonly untilMs: number
}

/** A type whose instances have less than it says. */
export interface Correction {
  readonly type: InstanceType
  readonly shortfall: Shortfall
  readonly figures: LearnedFigures
  /** When it is forgotten, Unix milliseconds; undefined while such instances exist. */
  readonly untilMs?: number
}

interface LastingCorrections {
  readonly corrections: readonly Correction[]
  /** When to call again, if there are younger corrections. */
  readonly recheckMs?: number
}

type NodeClassRef = NodePool['spec']['template']['spec']['nodeClassRef']

/** Allocatable resources of a type: by the catalogue, and of its instances. */
interface Yield {
  readonly said: Resources
  readonly found: Resources
}

interface Group {
  /** By claim name. */
  readonly instances: Map<string, LearnedFigures>
  remembered: RememberedFigures | undefined
  /** Sum of the above; undefined after a change. */
  figures?: LearnedFigures & { readonly untilMs?: number }
}

/** Keyed by node class, hash of its settings, and instance type. */
export class LearnedCapacity {
  readonly #caches: Pick<Caches, 'nodes' | 'nodeClaims' | 'nodeClasses'>
  readonly #state: Pick<ClusterState, 'claimOf' | 'nodeOf'>
  readonly #clock: Pick<Clock, 'now'>
  readonly #groups = new Map<string, Group>()
  /** Key of the group by claim name. */
  readonly #keys = new Map<string, string>()
  readonly #settings = new WeakMap<NodeClass, string>()
  /** Corrected types keep their identity, as decisions memoize by type. */
  readonly #corrected = new WeakMap<InstanceType, { readonly text: string; readonly type: InstanceType }>()
  /** Since when types are known to be smaller, by NodePool and type; Unix milliseconds. */
  readonly #since = new Map<string, ReadonlyMap<string, number>>()
  readonly changes: Listeners<void> = new Listeners()

  constructor(
    caches: Pick<Caches, 'nodes' | 'nodeClaims' | 'nodeClasses'>,
    state: Pick<ClusterState, 'claimOf' | 'nodeOf'>,
    clock: Pick<Clock, 'now'>,
  ) {
    this.#caches = caches
    this.#state = state
    this.#clock = clock
  }

  follow(): void {
    this.#caches.nodeClaims.onChange(({ kind, object }) => {
      if (kind === 'deleted') this.#gone(object.metadata.name)
      else this.#see(object)
    })
    this.#caches.nodes.onChange((change) => {
      if (change.kind === 'updated' && saysTheSame(change.old, change.object)) return
      const claim = this.#state.claimOf(change.object)
      if (claim !== undefined) this.#see(claim)
    })
  }

  /** Hash of the spec of the node class; empty if it does not exist. */
  settingsOf(ref: NodeClassRef): string {
    const cache = this.#caches.nodeClasses.find(
      ({ type }) => type.group === ref.group && type.kind === ref.kind,
    )
    const nodeClass = cache?.get({ name: ref.name })
    if (nodeClass === undefined) return ''
    let hash = this.#settings.get(nodeClass)
    if (hash === undefined) {
      hash = hashString(JSON.stringify(sorted((nodeClass as { readonly spec?: unknown }).spec))).toString(36)
      this.#settings.set(nodeClass, hash)
    }
    return hash
  }

  /** Types reduced to the size of their instances; correct ones keep their identity. */
  corrected(pool: NodePool, types: readonly InstanceType[]): readonly InstanceType[] {
    if (this.#groups.size === 0) return types
    return types.map((type) => {
      const correction = this.#correctionOf(pool, type)
      return correction === undefined ? type : this.#correctedType(type, correction.figures)
    })
  }

  /**
   * More pessimistic, for voluntary moves: a type without known instances is reduced like the most similar known type.
   * @param catalogue uncorrected types of the pool.
   */
  expected(
    pool: NodePool,
    types: readonly InstanceType[],
    catalogue: readonly InstanceType[],
  ): readonly InstanceType[] {
    const ref = pool.spec.template.spec.nodeClassRef
    const settings = this.settingsOf(ref)
    const seen = new Map<string, Yield>()
    for (const type of catalogue) {
      const figures = this.figuresOf(ref, settings, type.name)
      if (figures !== undefined)
        seen.set(type.name, { said: allocatableOf(type), found: figures.allocatable })
    }
    if (seen.size === 0) return types
    const yields = [...seen.values()]
    return types.map((type) => {
      const allocatable = seen.has(type.name) ? undefined : likelyOf(allocatableOf(type), yields)
      return allocatable === undefined ? type : this.#correctedType(type, { capacity: {}, allocatable })
    })
  }

  /** Types of a pool that are smaller than the catalogue says, by name. */
  corrections(pool: NodePool, types: readonly InstanceType[]): readonly Correction[] {
    return types
      .flatMap((type) => this.#correctionOf(pool, type) ?? [])
      .toSorted((a, b) => (a.type.name < b.type.name ? -1 : 1))
  }

  /**
   * Corrections that have been found for ten seconds of calls, or whose type is in `kept`.
   * @param kept names of types.
   */
  lasting(pool: NodePool, types: readonly InstanceType[], kept: ReadonlySet<string>): LastingCorrections {
    const now = this.#clock.now()
    const all = this.corrections(pool, types)
    const { name } = pool.metadata
    const before = this.#since.get(name)
    const since = new Map(all.map(({ type }) => [type.name, before?.get(type.name) ?? now]))
    if (since.size > 0) this.#since.set(name, since)
    else this.#since.delete(name)
    const corrections = all.filter(
      ({ type }) => kept.has(type.name) || now - (since.get(type.name) ?? now) >= settlingMs,
    )
    return corrections.length === all.length ? { corrections } : { corrections, recheckMs: settlingMs }
  }

  figuresOf(ref: NodeClassRef, settings: string, type: string): Group['figures'] | undefined {
    const group = this.#groups.get(keyOf(ref, settings, type))
    if (group === undefined) return undefined
    this.#expire(group)
    const figures = group.figures ?? summedUp(group)
    if (figures !== undefined) group.figures = figures
    return figures
  }

  /** Restores figures of an earlier process, whose instances may be gone. */
  restore(ref: NodeClassRef, settings: string, type: string, figures: RememberedFigures): void {
    const group = this.#group(keyOf(ref, settings, type))
    group.remembered = merged(group.remembered, figures)
    delete group.figures
  }

  get knowsInstances(): boolean {
    return this.#groups.size > 0
  }

  /** Expiry of figures whose last instance is deleted now; Unix milliseconds. */
  memoryEndMs(): number {
    return this.#clock.now() + memoryMs
  }

  #correctionOf(pool: NodePool, type: InstanceType): Correction | undefined {
    const ref = pool.spec.template.spec.nodeClassRef
    const figures = this.figuresOf(ref, this.settingsOf(ref), type.name)
    const shortfall = figures === undefined ? null : shortfallFrom(figures)(type)
    if (figures === undefined || shortfall === null) return undefined
    const { untilMs } = figures
    return { type, shortfall, figures, ...(untilMs !== undefined && { untilMs }) }
  }

  #correctedType(type: InstanceType, { capacity, allocatable }: InstanceFigures): InstanceType {
    const text = JSON.stringify([capacity, allocatable])
    const last = this.#corrected.get(type)
    if (last?.text === text) return last.type
    const corrected = correctedType(type, { capacity, allocatable })
    this.#corrected.set(type, { text, type: corrected })
    return corrected
  }

  #see(claim: NodeClaim): void {
    const { name } = claim.metadata
    const node = this.#state.nodeOf(claim)
    const figures = node === undefined ? undefined : believable(node, claim)
    if (figures === undefined) return
    const key = this.#keyOf(claim, node)
    const before = this.#keys.get(name)
    if (key === undefined || (before !== undefined && before !== key)) this.#gone(name)
    if (key === undefined) return
    const { instances } = this.#group(key)
    if (isSame(instances.get(name), figures)) return
    instances.set(name, figures)
    delete this.#group(key).figures
    this.#keys.set(name, key)
    this.changes.notify()
  }

  /** Undefined if the instance says nothing about new ones. */
  #keyOf(claim: NodeClaim, node: Node | undefined): string | undefined {
    const ref = claim.spec.nodeClassRef
    const type = node?.metadata.labels?.[labels.instanceType] ?? claim.metadata.labels?.[labels.instanceType]
    if (type === undefined || type === '') return undefined
    const noted = claim.metadata.annotations?.[nodeClassSettingsAnnotation]
    if (noted !== undefined) return keyOf(ref, noted, type)
    // Launched by an earlier version, without the annotation: unless drifted, it is as new ones would be.
    return isConditionTrue(claim, 'Drifted') ? undefined : keyOf(ref, this.settingsOf(ref), type)
  }

  #gone(name: string): void {
    const key = this.#keys.get(name)
    const group = this.#groups.get(key ?? '')
    const figures = group?.instances.get(name)
    this.#keys.delete(name)
    if (group === undefined || figures === undefined) return
    group.instances.delete(name)
    group.remembered = merged(group.remembered, { ...figures, untilMs: this.memoryEndMs() })
    delete group.figures
    this.changes.notify()
  }

  #group(key: string): Group {
    const group = this.#groups.get(key) ?? { instances: new Map(), remembered: undefined }
    this.#groups.set(key, group)
    return group
  }

  #expire(group: Group): void {
    if (group.remembered === undefined || group.remembered.untilMs > this.#clock.now()) return
    group.remembered = undefined
    delete group.figures
  }
}

function summedUp({ instances, remembered }: Group): Group['figures'] | undefined {
  const newest = newestOf(instances.values())
  if (newest === undefined) return remembered
  const alike = [...instances.values()].filter(({ image }) => image === newest.image)
  const old = remembered?.image === newest.image ? [remembered] : []
  return { ...smallest([...alike, ...old]), image: newest.image, launchedMs: newest.launchedMs }
}

/**
 * Figures of a Node; undefined until its kubelet has reported Ready. A missing or zero resource is unknown.
 */
function believable(node: Node, claim: NodeClaim): LearnedFigures | undefined {
  if (node.metadata.labels?.[labels.registered] !== 'true') return undefined
  if (node.metadata.labels[labels.initialized] !== 'true' && !isNodeReady(node)) return undefined
  const allocatable = known(parseResources(node.status?.allocatable))
  // A capacity below allocatable is wrong, such as that of simulated Nodes.
  const capacity = Object.entries(known(parseResources(node.status?.capacity))).filter(
    ([name, amount]) => amount >= (ownValue(allocatable, name) ?? 0),
  )
  return {
    capacity: Object.fromEntries(capacity),
    allocatable,
    image: claim.status?.imageID ?? '',
    launchedMs: Date.parse(claim.metadata.creationTimestamp ?? '') || 0,
  }
}

function known(amounts: Readonly<Record<string, number>>): Readonly<Record<string, number>> {
  return Object.fromEntries(
    Object.entries(amounts).filter(
      ([name, amount]) => learned.has(name) && Number.isFinite(amount) && amount > 0,
    ),
  )
}

function saysTheSame(before: Node, now: Node): boolean {
  return (
    before.status?.capacity === now.status?.capacity &&
    before.status?.allocatable === now.status?.allocatable &&
    before.metadata.labels === now.metadata.labels &&
    before.spec?.providerID === now.spec?.providerID &&
    isNodeReady(before) === isNodeReady(now)
  )
}

function isSame(a: LearnedFigures | undefined, b: LearnedFigures): boolean {
  return a !== undefined && JSON.stringify(a) === JSON.stringify(b)
}

function newestOf(instances: Iterable<LearnedFigures>): LearnedFigures | undefined {
  let newest: LearnedFigures | undefined
  for (const each of instances) if (newest === undefined || each.launchedMs > newest.launchedMs) newest = each
  return newest
}

/** Expected resources that are less than the catalogue says; undefined if there are none. */
function likelyOf(said: Resources, yields: readonly Yield[]): Resources | undefined {
  const less = Object.entries(said).flatMap(([name, amount]): readonly (readonly [string, number])[] => {
    const share = shareOf(name, amount, yields)
    // maxPods of a kubelet does not scale with its instance.
    return share < 1 && name !== 'pods' ? [[name, Math.floor(amount * share)]] : []
  })
  return less.length === 0 ? undefined : Object.fromEntries(less)
}

/** The share of the promised resource that the nearest known type has; the least of several. */
function shareOf(name: string, amount: number, yields: readonly Yield[]): number {
  const likes = yields.flatMap(({ said, found }) => {
    const [promised = 0, there] = [ownValue(said, name), ownValue(found, name)]
    if (promised <= 0 || there === undefined) return []
    return [{ distance: Math.abs(promised - amount), share: Math.min(1, there / promised) }]
  })
  const [nearest] = likes.toSorted((a, b) => a.distance - b.distance || a.share - b.share)
  return nearest?.share ?? 1
}

/** The figures of a younger image replace those of an older one. */
function merged(before: RememberedFigures | undefined, now: RememberedFigures): RememberedFigures {
  if (before === undefined) return now
  if (before.image !== now.image) return before.launchedMs > now.launchedMs ? before : now
  return {
    ...smallest([before, now]),
    image: now.image,
    launchedMs: Math.max(before.launchedMs, now.launchedMs),
    untilMs: Math.max(before.untilMs, now.untilMs),
  }
}

function smallest(all: readonly InstanceFigures[]): InstanceFigures {
  return {
    capacity: least(all.map(({ capacity }) => capacity)),
    allocatable: least(all.map(({ allocatable }) => allocatable)),
  }
}

function least(all: readonly Readonly<Record<string, number>>[]): Readonly<Record<string, number>> {
  const amounts = new Map<string, number>()
  for (const each of all)
    for (const [name, amount] of Object.entries(each))
      amounts.set(name, Math.min(amount, amounts.get(name) ?? amount))
  return Object.fromEntries(amounts)
}

function keyOf({ group, kind, name }: NodeClassRef, settings: string, type: string): string {
  return `${group}/${kind}/${name}/${settings}/${type}`
}

/** Fields sorted by name, for a stable hash. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value ?? null
  return Object.entries(value)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, each]) => [name, sorted(each)])
}
