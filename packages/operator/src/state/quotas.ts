/** CapacityQuotas as decisions use them, and what nodes use of them (quotas.md 1). */
import {
  type CapacityQuota,
  isQuotaEnforced,
  type LabelSelector,
  labels,
  matchesSelector,
  type Node,
  type NodeClaim,
  ownValue,
  parseResources,
  readQuota,
  type Requirement,
  type Resources,
  wellKnownLabels,
} from '@tenon/api'
import { mayBeSelected, type QuotaInput } from '@tenon/engine'
import { perObject } from '@tenon/runtime'
import type { Caches } from './caches.ts'
import type { LimitReservation } from './nodepools/limit-reservations.ts'
import { isUnreadable } from './readable.ts'

/** On a NodeClaim that a quota counts: the most that it may be launched with, as JSON in canonical units. */
const largestAnnotation = 'tenon.sh/largest'

interface Sources {
  readonly caches: Pick<Caches, 'capacityQuotas' | 'nodeClaims' | 'nodes'>
  /** Claims that the cache does not show yet. */
  readonly unseen: () => Iterable<NodeClaim>
  readonly nodeOf: (claim: NodeClaim) => Node | undefined
  readonly reserved: (quota: string) => Resources
  /** Labels of the provider that nodes get. */
  readonly wellKnown: readonly string[]
}

/** What is, or will be, a node. */
interface Member {
  readonly node?: Node
  readonly claim?: NodeClaim
}

/** A claim before or after its creation. */
interface PossibleNode {
  readonly requirements: readonly Requirement[]
  readonly labels: Readonly<Record<string, string>> | undefined
}

export class Quotas {
  readonly #sources: Sources
  readonly #wellKnown: ReadonlySet<string>
  readonly #read = perObject(readQuota)
  /** By selector; whether a Node matches it. */
  readonly #matches = perObject((selector: LabelSelector) =>
    perObject((node: Node) => matchesSelector(selector, node.metadata.labels)),
  )
  /** By selector; whether the node of a claim may match it. */
  readonly #mayMatch = perObject((selector: LabelSelector) =>
    perObject((claim: NodeClaim) => this.mayCount(selector, possibleNode(claim))),
  )

  constructor(sources: Sources) {
    this.#sources = sources
    this.#wellKnown = new Set([...wellKnownLabels, ...sources.wellKnown])
  }

  /** Those that are enforced, with what is in use. */
  inputs(): readonly QuotaInput[] {
    const quotas = (this.#sources.caches.capacityQuotas?.list() ?? []).filter(isQuotaEnforced)
    if (quotas.length === 0) return []
    const members = this.#members()
    return quotas.flatMap((quota) => {
      const reading = this.#read(quota)
      if (reading.kind === 'unreadable') return []
      const { limits, selector } = reading
      const { name } = quota.metadata
      const usage = this.#usage(selector, Object.keys(limits), members)
      return [{ name, selector, limits, usage, reserved: this.#sources.reserved(name) }]
    })
  }

  /** Those that may count a new node. */
  counting(node: PossibleNode): readonly QuotaInput[] {
    return this.inputs().filter(({ selector }) => this.mayCount(selector, node))
  }

  /** What existing nodes use of a quota, for each resource that it limits; undefined if it cannot be read. */
  usageOf(quota: CapacityQuota): Resources | undefined {
    const reading = this.#read(quota)
    if (reading.kind === 'unreadable') return undefined
    const existing = this.#members().filter(({ node }) => node !== undefined)
    return this.#usage(reading.selector, Object.keys(reading.limits), existing)
  }

  mayCount(selector: LabelSelector, { requirements, labels: known = {} }: PossibleNode): boolean {
    return mayBeSelected(selector, requirements, known, this.#wellKnown)
  }

  #members(): readonly Member[] {
    const { caches, nodeOf, unseen } = this.#sources
    const claims = [...caches.nodeClaims.list(), ...unseen()].filter((claim) => !isUnreadable(claim))
    const withClaim = new Set<Node>()
    const members = claims.map((claim): Member => {
      const node = nodeOf(claim)
      if (node === undefined) return { claim }
      withClaim.add(node)
      return { claim, node }
    })
    const others = caches.nodes.list().filter((node) => !withClaim.has(node))
    return [...members, ...others.map((node) => ({ node }))]
  }

  #usage(selector: LabelSelector, resources: readonly string[], members: readonly Member[]): Resources {
    const matches = this.#matches(selector)
    const mayMatch = this.#mayMatch(selector)
    const counted = members.filter(
      ({ claim, node }) =>
        (node !== undefined && matches(node)) ||
        (claim !== undefined && !isRegistered(node) && mayMatch(claim)),
    )
    const capacities = counted.map(capacityOf)
    const used = (name: string) => capacities.reduce((sum, each) => sum + (ownValue(each, name) ?? 0), 0)
    return Object.fromEntries(resources.map((name) => [name, name === 'nodes' ? counted.length : used(name)]))
  }
}

/** Labels of a Node that is not registered yet are not all there. */
const isRegistered = (node: Node | undefined): boolean =>
  ownValue(node?.metadata.labels, labels.registered) === 'true'

const possibleNode = ({ metadata, spec }: NodeClaim): PossibleNode => ({
  requirements: spec.requirements,
  labels: metadata.labels,
})

const nodeCapacity = perObject(({ status }: Node) => parseResources(status?.capacity))
const claimCapacity = perObject(({ metadata, spec, status }: NodeClaim): Resources => {
  if (status?.capacity !== undefined) return parseResources(status.capacity)
  return (
    readLargest(ownValue(metadata.annotations, largestAnnotation)) ?? parseResources(spec.resources?.requests)
  )
})

/** What the node reports, and where it does not report yet, what its claim says. */
function capacityOf({ claim, node }: Member): Resources {
  const own = node === undefined ? {} : nodeCapacity(node)
  return claim === undefined ? own : { ...claimCapacity(claim), ...own }
}

/** Tells later processes what a claim that quotas count may take. */
export function largestNoted({ amounts, quotas }: LimitReservation): Readonly<Record<string, string>> {
  return quotas.length === 0 ? {} : { [largestAnnotation]: JSON.stringify(amounts) }
}

/** Undefined if it is none. */
function readLargest(text: string | undefined): Resources | undefined {
  if (text === undefined) return undefined
  try {
    const read: unknown = JSON.parse(text)
    const isAmounts =
      typeof read === 'object' &&
      read !== null &&
      Object.values(read).every((amount) => Number.isFinite(amount))
    return isAmounts ? (read as Resources) : undefined
  } catch {
    return undefined
  }
}
