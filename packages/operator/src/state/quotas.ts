/** CapacityQuotas as decisions use them, and what nodes use of them (quotas.md 1). */
import {
  type CapacityQuota,
  difference,
  type InstanceType,
  isQuotaEnforced,
  type LabelSelector,
  labels,
  larger,
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
import { mayBeSelected, type NewClaim, type QuotaInput } from '@tenon/engine'
import { perObject } from '@tenon/runtime'
import type { Caches } from './caches.ts'
import type { LimitReservation } from './nodepools/limit-reservations.ts'
import { isUnreadable } from './readable.ts'
import { isSameValue } from './same-value.ts'

/** On a NodeClaim that a quota counts: the most that it may be launched with, as JSON in canonical units. */
export const largestAnnotation = 'tenon.sh/largest'

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
  readonly labels?: Readonly<Record<string, string>> | undefined
}

/** What a decision knew of the quotas: names of those that may count a claim, and of the others. */
type DecidedQuotas = Pick<NewClaim, 'otherQuotas' | 'quotas'>

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
    perObject((claim: NodeClaim) => this.#mayCount(selector, possibleNode(claim))),
  )

  /** Until something changes that quotas count. */
  #known: readonly Omit<QuotaInput, 'reserved'>[] | undefined

  constructor(sources: Sources) {
    this.#sources = sources
    this.#wellKnown = new Set([...wellKnownLabels, ...sources.wellKnown])
    const { capacityQuotas, nodeClaims, nodes } = sources.caches
    for (const cache of [capacityQuotas, nodeClaims])
      cache?.onChange(() => {
        this.changed()
      })
    nodes.onChange((change) => {
      if (change.kind !== 'updated' || isCountedOtherwise(change)) this.changed()
    })
  }

  /** Those that are enforced, with what is in use. */
  inputs(): readonly QuotaInput[] {
    this.#known ??= this.#uses()
    return this.#known.map((quota) => ({ ...quota, reserved: this.#sources.reserved(quota.name) }))
  }

  /** A claim is created, or gone, that the cache does not show. */
  changed(): void {
    this.#known = undefined
  }

  /** Those that may count the node of a decision, and of those that are newer than the decision all that might. */
  countingDecided(node: PossibleNode & DecidedQuotas): readonly QuotaInput[] {
    const { otherQuotas = [], quotas = [] } = node
    return this.inputs().filter(
      ({ name, selector }) =>
        quotas.includes(name) || (!otherQuotas.includes(name) && this.#mayCount(selector, node)),
    )
  }

  /** Those that may count a new node of one of the types. */
  counting(
    { requirements, labels: known }: PossibleNode,
    types: readonly Pick<InstanceType, 'requirements'>[],
  ): readonly QuotaInput[] {
    const possible = types.map((type) => ({
      requirements: [...requirements, ...type.requirements],
      labels: known,
    }))
    return this.inputs().filter(({ selector }) => possible.some((each) => this.#mayCount(selector, each)))
  }

  #uses(): readonly Omit<QuotaInput, 'reserved'>[] {
    const quotas = (this.#sources.caches.capacityQuotas?.list() ?? []).filter(isQuotaEnforced)
    if (quotas.length === 0) return []
    const members = this.#members()
    return quotas.flatMap((quota) => {
      const reading = this.#read(quota)
      if (reading.kind === 'unreadable') return []
      const { limits, selector } = reading
      const usage = this.#usage(selector, Object.keys(limits), members)
      return [{ name: quota.metadata.name, selector, limits, usage }]
    })
  }

  /** What existing nodes use of a quota, for each resource that it limits; undefined if it cannot be read. */
  usageOf(quota: CapacityQuota): Resources | undefined {
    const reading = this.#read(quota)
    if (reading.kind === 'unreadable') return undefined
    const existing = this.#members().filter(({ node }) => node !== undefined)
    return this.#usage(reading.selector, Object.keys(reading.limits), existing)
  }

  #mayCount(selector: LabelSelector, { requirements, labels: known }: PossibleNode): boolean {
    return mayBeSelected(selector, requirements, { ...laterLabels, ...known }, this.#wellKnown)
  }

  /** Each instance once, whoever has an object for it. */
  #members(): readonly Member[] {
    const { caches, nodeOf, unseen } = this.#sources
    const members = new Map<string, Member>()
    for (const claim of [...caches.nodeClaims.list(), ...unseen()].filter((each) => !isUnreadable(each))) {
      const { nodeName = '', providerID = '' } = claim.status ?? {}
      const node = nodeOf(claim) ?? caches.nodes.get({ name: nodeName })
      const key = providerID === '' ? `claim ${claim.metadata.name}` : providerID
      if (!members.has(key) || node !== undefined)
        members.set(key, node === undefined ? { claim } : { claim, node })
    }
    const withClaim = new Set([...members.values()].map(({ node }) => node))
    for (const node of caches.nodes.list()) {
      const { providerID = '' } = node.spec ?? {}
      if (withClaim.has(node) || members.get(providerID)?.claim !== undefined) continue
      members.set(providerID === '' ? `node ${node.metadata.name}` : providerID, { node })
    }
    return [...members.values()]
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

/** Labels that every node gets in the end. */
const laterLabels = { [labels.registered]: 'true', [labels.initialized]: 'true' }

function isCountedOtherwise({ object, old }: { readonly object: Node; readonly old: Node }): boolean {
  return (
    object.spec?.providerID !== old.spec?.providerID ||
    !isSameValue(object.metadata.labels, old.metadata.labels) ||
    !isSameValue(object.status?.capacity, old.status?.capacity)
  )
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
  const requests = parseResources(spec.resources?.requests)
  return larger(readLargest(ownValue(metadata.annotations, largestAnnotation)), requests)
})

/** What the node reports. A kubelet that has just started reports some resources late. */
function capacityOf({ claim, node }: Member): Resources {
  const own = node === undefined ? {} : nodeCapacity(node)
  const isInitialized = ownValue(node?.metadata.labels, labels.initialized) === 'true'
  return claim === undefined || isInitialized ? own : larger(claimCapacity(claim), own)
}

/** The quotas as if they did not count these nodes. */
export function withoutNodes(quotas: readonly QuotaInput[], nodes: readonly Node[]): readonly QuotaInput[] {
  return quotas.map((quota) => ({
    ...quota,
    usage: nodes
      .filter(({ metadata }) => matchesSelector(quota.selector, metadata.labels))
      .map((node) => ({ ...nodeCapacity(node), nodes: 1 }))
      .reduce(difference, quota.usage),
  }))
}

/** Tells later processes what a claim that quotas count may take. */
export function largestNoted({ amounts, quotas }: LimitReservation): Readonly<Record<string, string>> {
  return quotas.length === 0 ? {} : { [largestAnnotation]: JSON.stringify(amounts) }
}

/** Nothing if it is not what {@link largestNoted} writes. */
function readLargest(text: string | undefined): Resources {
  try {
    const read: unknown = JSON.parse(text ?? '{}')
    if (typeof read !== 'object' || read === null || Array.isArray(read)) return {}
    const amounts = Object.entries(read).filter(
      ([, amount]) => Number.isSafeInteger(amount) && (amount as number) >= 0,
    )
    return Object.fromEntries(amounts)
  } catch {
    return {}
  }
}
