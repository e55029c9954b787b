/** Attach limits of instance types for each CSI driver, learned from CSINodes. */
import { type CsiNode, labels, type Node, ownValue } from '@tenon/api'
import type { AttachLimits as KnownLimits } from '@tenon/engine'
import type { Clock } from '@tenon/runtime'
import type { Caches } from '../caches.ts'

type Counts = Readonly<Record<string, number>>

/** What one node reports. */
interface Reported {
  readonly instanceType: string
  readonly counts: Counts
}

interface Remembered {
  readonly count: number
  /** Unix milliseconds. */
  readonly untilMs: number
}

/** How long limits are remembered after the last node of a type. */
const memoryMs = 24 * 3_600_000

const limits = new WeakMap<CsiNode, Counts>()

/** Volumes of each driver that the node can attach, memoized; drivers may have no limit. */
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
 * The limit of a type is the smallest that a node of it reports now, else the smallest of the last day. Unknown types
 * count as the best known one: so a pod with more volumes than any node can attach is not tried on one type after another.
 */
export class AttachLimits {
  readonly #caches: Pick<Caches, 'nodes' | 'csiNodes'>
  readonly #clock: Pick<Clock, 'now'>
  /** By Node name. */
  readonly #reported = new Map<string, Reported>()
  /** By instance type, then by driver. */
  readonly #remembered = new Map<string, Map<string, Remembered>>()
  #known: { readonly limits: KnownLimits; readonly untilMs: number } | undefined

  constructor(caches: Pick<Caches, 'nodes' | 'csiNodes'>, clock: Pick<Clock, 'now'>) {
    this.#caches = caches
    this.#clock = clock
  }

  follow(): void {
    const { nodes, csiNodes } = this.#caches
    csiNodes.onChange(({ kind, object }) => {
      const { name } = object.metadata
      this.#update(name, nodes.get({ name }), kind === 'deleted' ? undefined : object)
    })
    nodes.onChange((change) => {
      const { name } = change.object.metadata
      if (change.kind === 'updated' && typeOf(change.old) === typeOf(change.object)) return
      const node = change.kind === 'deleted' ? undefined : change.object
      this.#update(name, node, csiNodes.get({ name }))
    })
  }

  /** Limits of a node that has not reported yet. */
  expectedOf(instanceType: string): Counts {
    const { byType, others } = this.current()
    return Object.hasOwn(byType, instanceType) ? { ...others, ...ownValue(byType, instanceType) } : others
  }

  /** The same object until something changes. */
  current(): KnownLimits {
    const now = this.#clock.now()
    if (this.#known === undefined || now >= this.#known.untilMs) this.#known = this.#compute(now)
    return this.#known.limits
  }

  #update(name: string, node: Node | undefined, csiNode: CsiNode | undefined): void {
    const before = this.#reported.get(name)
    const instanceType = node === undefined ? '' : typeOf(node)
    const counts = csiNode === undefined ? {} : limitsOf(csiNode)
    const reports = instanceType !== '' && Object.keys(counts).length > 0
    if (before === undefined && !reports) return
    this.#known = undefined
    if (reports) this.#reported.set(name, { instanceType, counts })
    else this.#reported.delete(name)
    if (before !== undefined) this.#remember(before)
  }

  #remember({ instanceType, counts }: Reported): void {
    const now = this.#clock.now()
    const known = this.#remembered.get(instanceType) ?? new Map<string, Remembered>()
    this.#remembered.set(instanceType, known)
    for (const [driver, count] of Object.entries(counts)) {
      const before = known.get(driver)
      const isFresh = before !== undefined && before.untilMs > now
      known.set(driver, { count: isFresh ? Math.min(before.count, count) : count, untilMs: now + memoryMs })
    }
  }

  #compute(now: number): { readonly limits: KnownLimits; readonly untilMs: number } {
    let untilMs = Number.POSITIVE_INFINITY
    const live = new Map<string, Map<string, number>>()
    for (const { instanceType, counts } of this.#reported.values()) {
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

function typeOf({ metadata }: Node): string {
  return metadata.labels?.[labels.instanceType] ?? ''
}
