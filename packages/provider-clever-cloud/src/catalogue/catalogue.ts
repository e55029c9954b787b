/** The flavors as instance types, corrected by what nodes report (clever-cloud.md 5.3, 6). */
import { type InstanceType, ownValue, type Resources } from '@tenon/api'
import type { Logger } from '@tenon/runtime'
import type { FlavorSize } from './flavors.ts'
import { servedType, unservedType } from './instance-type.ts'
import type { FlavorOverrides } from './overrides.ts'
import type { PriceUnit } from './prices.ts'
import {
  isSameSize,
  judgeReport,
  type NodeReport,
  type NodeSize,
  type ReportVerdict,
  smallerSize,
} from './reports.ts'
import { type ServedFlavor, servedFlavors } from './served-flavors.ts'

/**
 * Maximum number of flavors outside the catalogue whose nodes are remembered; the platform has six flavors.
 */
const mostUnserved = 32

interface Entry {
  readonly flavor: ServedFlavor
  /** The size in the catalogue, without corrections. */
  readonly stated: NodeSize
  readonly observed: NodeSize | undefined
  readonly type: InstanceType
}

/** The offered flavors, and what is known of others. Reports of nodes are forgotten with the process. */
export class Catalogue {
  readonly priceUnit: PriceUnit
  readonly #region: string
  readonly #logger: Logger
  readonly #entries: Map<string, Entry>
  readonly #unserved = new Map<string, NodeSize>()
  #types: readonly InstanceType[]

  constructor({
    region,
    overrides,
    logger,
  }: {
    readonly region: string
    readonly overrides: FlavorOverrides
    readonly logger: Logger
  }) {
    const { flavors, priceUnit } = servedFlavors(overrides)
    this.priceUnit = priceUnit
    this.#region = region
    this.#logger = logger
    this.#entries = new Map(
      flavors.map((flavor) => {
        const type = this.#typeOf(flavor, undefined)
        return [flavor.name, { flavor, stated: sizeOf(type), observed: undefined, type }]
      }),
    )
    this.#types = this.#listed()
  }

  /**
   * All available types, in the order that decides ties. The same immutable objects until something changes.
   */
  types(): readonly InstanceType[] {
    return this.#types
  }

  /** The type of a flavor; also of one that is not offered, as it may have nodes. */
  typeOf(flavor: string): { readonly isServed: boolean; readonly type: InstanceType } {
    const entry = this.#entries.get(flavor)
    if (entry !== undefined) return { isServed: true, type: entry.type }
    const observed = this.#unserved.get(flavor)
    return {
      isServed: false,
      type: unservedType({ flavor, region: this.#region, size: undefined, observed }),
    }
  }

  /** The size of an offered flavor, as in the catalogue. */
  sizeOf(flavor: string): FlavorSize | undefined {
    return this.#entries.get(flavor)?.flavor
  }

  /** Sizes of all offered flavors, as in the catalogue. */
  sizes(): readonly FlavorSize[] {
    return [...this.#entries.values()].map(({ flavor }) => flavor)
  }

  /** Applies a node's report if it is plausible. The smallest report of a flavor counts. */
  observe(report: NodeReport): ReportVerdict {
    const entry = this.#entries.get(report.flavor)
    const verdict = judgeReport(report, entry?.stated)
    if (verdict.kind !== 'accepted') return verdict
    const before = entry === undefined ? this.#unserved.get(report.flavor) : entry.observed
    if (entry === undefined && before === undefined && this.#unserved.size >= mostUnserved)
      return { kind: 'refused', because: `${mostUnserved} flavors that are not sold are known already` }
    const size = { capacity: copied(report.capacity), allocatable: copied(report.allocatable) }
    const observed = before === undefined ? size : smallerSize(before, size)
    if (before !== undefined && isSameSize(before, observed)) return verdict
    this.#take(report, entry, observed)
    return verdict
  }

  #take({ flavor, nodeName }: NodeReport, entry: Entry | undefined, observed: NodeSize): void {
    if (entry === undefined) this.#unserved.set(flavor, observed)
    else {
      this.#entries.set(flavor, { ...entry, observed, type: this.#typeOf(entry.flavor, observed) })
      this.#types = this.#listed()
    }
    this.#logger.info('a node has told what its flavor has', { flavor, node: nodeName, ...observed })
  }

  #typeOf(flavor: ServedFlavor, observed: NodeSize | undefined): InstanceType {
    return servedType(
      { flavor: flavor.name, region: this.#region, size: flavor, observed },
      flavor.pricePerHour,
    )
  }

  #listed(): readonly InstanceType[] {
    return Object.freeze([...this.#entries.values()].map(({ type }) => type))
  }
}

/** Capacity and allocatable of a type. */
function sizeOf({ capacity, overhead }: InstanceType): NodeSize {
  const reserved = [overhead.kubeReserved, overhead.systemReserved, overhead.evictionThreshold]
  const allocatable = Object.entries(capacity).map(([resource, amount]): [string, number] => [
    resource,
    reserved.reduce((left, each) => left - (ownValue(each, resource) ?? 0), amount),
  ])
  return { capacity, allocatable: Object.fromEntries(allocatable) }
}

function copied(amounts: Resources): Resources {
  return Object.fromEntries(Object.entries(amounts))
}
