/** How many volumes of each CSI driver nodes attach, by instance type, as the nodes of the cluster tell. */
import { type CsiNode, labels, type Node, ownValue } from '@tenon/api'
import type { AttachLimits as KnownLimits } from '@tenon/engine'
import type { Clock } from '@tenon/runtime'
import type { Caches } from '../caches.ts'

type Counts = Readonly<Record<string, number>>

/** What one node tells. */
interface Told {
  readonly instanceType: string
  readonly counts: Counts
}

interface Remembered {
  readonly count: number
  /** Unix milliseconds. */
  readonly untilMs: number
}

/** For so long it is remembered what a type attaches of which no node is left. */
const memoryMs = 24 * 3_600_000

const limits = new WeakMap<CsiNode, Counts>()

/** How many volumes of each driver the node can attach, read once from each object; a driver may tell no limit. */
export function limitsOf(csiNode: CsiNode): Counts {
  let known = limits.get(csiNode)
  if (known === undefined) {
    known = Object.fromEntries(
      (csiNode.spec.drivers ?? []).flatMap(({ name, allocatable }) =>
        allocatable?.count === undefined ? [] : [[name, allocatable.count] as const],
      ),
    )
    limits.set(csiNode, known)
  }
  return known
}

/**
 * Attach limits of instance types: the smallest that a node of the type tells now; without such a node the smallest
 * that was told within the last day. Types of which nothing was ever told count as what attaches most: a pod that no
 * node of the cluster would serve is not tried on one type after the other.
 */
export class AttachLimits {
  readonly #caches: Pick<Caches, 'nodes' | 'csiNodes'>
  readonly #clock: Pick<Clock, 'now'>
  /** By Node name. */
  readonly #told = new Map<string, Told>()
  /** By instance type, then by driver. */
  readonly #remembered = new Map<string, Map<string, Remembered>>()
  #known: { readonly limits: KnownLimits; readonly untilMs: number } | undefined

  constructor(caches: Pick<Caches, 'nodes' | 'csiNodes'>, clock: Pick<Clock, 'now'>) {
    this.#caches = caches
    this.#clock = clock
  }

  /** Follows the caches. */
  follow(): void {
    const { nodes, csiNodes } = this.#caches
    csiNodes.onChange(({ kind, object }) => {
      const { name } = object.metadata
      this.#hear(name, nodes.get({ name }), kind === 'deleted' ? undefined : object)
    })
    nodes.onChange((change) => {
      const { name } = change.object.metadata
      if (change.kind === 'updated' && typeOf(change.old) === typeOf(change.object)) return
      const node = change.kind === 'deleted' ? undefined : change.object
      this.#hear(name, node, csiNodes.get({ name }))
    })
  }

  /** What a node of an instance type is expected to attach, before it tells itself. */
  expectedOf(instanceType: string): Counts {
    const { byType, others } = this.current()
    return Object.hasOwn(byType, instanceType) ? { ...others, ...ownValue(byType, instanceType) } : others
  }

  /** The limits as they are known now; the same object for as long as nothing changes. */
  current(): KnownLimits {
    const now = this.#clock.now()
    if (this.#known === undefined || now >= this.#known.untilMs) this.#known = this.#workOut(now)
    return this.#known.limits
  }

  #hear(name: string, node: Node | undefined, csiNode: CsiNode | undefined): void {
    const before = this.#told.get(name)
    const instanceType = node === undefined ? '' : typeOf(node)
    const counts = csiNode === undefined ? {} : limitsOf(csiNode)
    const tells = instanceType !== '' && Object.keys(counts).length > 0
    if (before === undefined && !tells) return
    this.#known = undefined
    if (tells) this.#told.set(name, { instanceType, counts })
    else this.#told.delete(name)
    if (before !== undefined) this.#remember(before)
  }

  #remember({ instanceType, counts }: Told): void {
    const now = this.#clock.now()
    const known = this.#remembered.get(instanceType) ?? new Map<string, Remembered>()
    this.#remembered.set(instanceType, known)
    for (const [driver, count] of Object.entries(counts)) {
      const before = known.get(driver)
      const isFresh = before !== undefined && before.untilMs > now
      known.set(driver, { count: isFresh ? Math.min(before.count, count) : count, untilMs: now + memoryMs })
    }
  }

  #workOut(now: number): { readonly limits: KnownLimits; readonly untilMs: number } {
    let untilMs = Number.POSITIVE_INFINITY
    const live = new Map<string, Map<string, number>>()
    for (const { instanceType, counts } of this.#told.values()) {
      const known = live.get(instanceType) ?? new Map<string, number>()
      live.set(instanceType, known)
      for (const [driver, count] of Object.entries(counts))
        known.set(driver, Math.min(known.get(driver) ?? count, count))
    }
    for (const [instanceType, drivers] of this.#remembered) {
      for (const [driver, { count, untilMs: until }] of drivers) {
        if (until <= now) {
          drivers.delete(driver)
          continue
        }
        const known = live.get(instanceType) ?? new Map<string, number>()
        if (known.has(driver)) continue
        live.set(instanceType, known.set(driver, count))
        untilMs = Math.min(untilMs, until)
      }
      if (drivers.size === 0) this.#remembered.delete(instanceType)
    }
    const others = new Map<string, number>()
    for (const drivers of live.values())
      for (const [driver, count] of drivers) others.set(driver, Math.max(others.get(driver) ?? 0, count))
    return {
      limits: {
        byType: Object.fromEntries([...live].map(([type, drivers]) => [type, Object.fromEntries(drivers)])),
        others: Object.fromEntries(others),
      },
      untilMs,
    }
  }
}

/** Empty while it is not known. */
function typeOf({ metadata }: Node): string {
  return metadata.labels?.[labels.instanceType] ?? ''
}
