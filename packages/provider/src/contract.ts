/** The contract between the core and a cloud provider (scheduling.md 13). */
import type {
  InstanceType,
  NodeClaim,
  NodeClass,
  NodePool,
  OfferingRef,
  ResourceType,
  Taint,
} from '@tenon/api'
import type { SweepGuard } from './sweep-guard.ts'

/** An instance as the cloud knows it, told in the words of a NodeClaim (lifecycle.md 3.1). */
export interface ProviderInstance {
  readonly providerID: string
  readonly imageID?: string
  /** Resolved single values; labels already on the claim win over these. */
  readonly labels: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  /** Quantities in text form; zero entries omitted. */
  readonly capacity: Readonly<Record<string, string>>
  readonly allocatable: Readonly<Record<string, string>>
  /** Name of the claim this instance was made for, if the cloud's tags tell. */
  readonly nodeClaimName?: string
  readonly createdAtMs?: number
  /** Being deleted already. */
  readonly deleting: boolean
}

/** What a node class says of the nodes of its NodePools. */
export interface NodeDefaults {
  readonly labels: Readonly<Record<string, string>>
  readonly taints: readonly Taint[]
}

/** An offering that the cloud refused. */
export interface RefusedOffering extends OfferingRef {
  /** How long no launch should try it; for a time that grows with every refusal unless given. */
  readonly pauseMs?: number
  /** Whether the pause ends as soon as capacity is released. */
  readonly endsOnRelease?: boolean
}

/** What a failed launch says of the next ones, when it is not single offerings that are short. */
export interface Blame {
  /**
   * What fails again if it is tried again: the type that was chosen, whatever the zone; whatever is launched with the
   * node class; or for the NodePool. `cloud`: nobody knows, the cloud did not answer clearly. `nothing`: the launch has
   * not failed, it takes longer than one call of `create`; or, of a claim that is given up, it says nothing about others.
   */
  readonly what: 'instanceType' | 'nodeClass' | 'nodePool' | 'cloud' | 'nothing'
  /** As in {@link RefusedOffering}. */
  readonly pauseMs?: number
  readonly endsOnRelease?: boolean
}

/** What a provider finds out about its offerings outside launches. */
export type OfferingNews =
  /** An instance was refused after its launch had been answered. */
  | { readonly kind: 'refused'; readonly offerings: readonly RefusedOffering[]; readonly because: string }
  /** Capacity was released. */
  | { readonly kind: 'released' }

/** A metric of a provider, read at each scrape; it has no labels. */
export interface ProviderMetric {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge'
  /** Its value now; undefined while there is none to show. */
  value(): number | undefined
}

/** A node condition that, once it has lasted longer than is tolerated, makes the node to be replaced. */
export interface RepairPolicy {
  readonly conditionType: string
  readonly conditionStatus: 'True' | 'False' | 'Unknown'
  readonly tolerationMs: number
}

/** Why a provider could not do what it was asked; each has its own consequence (scheduling.md 13.3). */
export type ProviderErrorKind =
  | 'nodeClaimNotFound'
  | 'insufficientCapacity'
  | 'nodeClassNotReady'
  | 'create'
  | 'unevaluatedNodePool'
  | 'throttled'
  | 'unauthorized'
  | 'other'

const prefixes: Readonly<Record<ProviderErrorKind, string>> = {
  nodeClaimNotFound: 'nodeclaim not found, ',
  insufficientCapacity: 'insufficient capacity, ',
  nodeClassNotReady: 'NodeClassRef not ready, ',
  create: 'creating nodeclaim, ',
  unevaluatedNodePool: '',
  throttled: '',
  unauthorized: '',
  other: '',
}

/** The only error a provider's methods reject with. Messages carry no secrets. */
export class ProviderError extends Error {
  readonly kind: ProviderErrorKind
  /** The message without the prefix of its kind. */
  readonly detail: string
  /** Condition reason for `create` errors, UpperCamel. */
  readonly reason: string | undefined
  readonly retryAfterMs: number | undefined
  /** Of `insufficientCapacity`: what was tried in vain; empty when it is not offerings that are short. */
  readonly offerings: readonly RefusedOffering[]
  /** Of a failed launch, beside the offerings. Absent: as the kind has it (docs/providers.md). */
  readonly blames: Blame | undefined

  constructor(
    kind: ProviderErrorKind,
    message: string,
    details: {
      reason?: string
      retryAfterMs?: number
      offerings?: readonly RefusedOffering[]
      blames?: Blame
      cause?: unknown
    } = {},
  ) {
    super(`${prefixes[kind]}${message}`, details.cause === undefined ? undefined : { cause: details.cause })
    this.name = 'ProviderError'
    this.kind = kind
    this.detail = message
    this.reason = details.reason
    this.retryAfterMs = details.retryAfterMs
    this.offerings = details.offerings ?? []
    this.blames = details.blames
  }
}

/**
 * True when `error` is a {@link ProviderError} of one of `kinds`, or of any when none is given. A provider from
 * outside may bring its own copy of this package: the name and the kind decide, not the class.
 */
export function isProviderError(
  error: unknown,
  ...kinds: readonly ProviderErrorKind[]
): error is ProviderError {
  if (!(error instanceof Error) || error.name !== 'ProviderError') return false
  const { kind } = error as Partial<ProviderError>
  return kind !== undefined && Object.hasOwn(prefixes, kind) && (kinds.length === 0 || kinds.includes(kind))
}

/** What a registration hook says about a claim whose Node has joined. */
export type RegistrationVerdict =
  /** Labels go to the claim and its Node; they win over those the claim has. */
  | { readonly kind: 'passed'; readonly labels?: Readonly<Record<string, string>> }
  /** Asked again after this delay; without one, with growing pauses. */
  | { readonly kind: 'pending'; readonly retryAfterMs?: number }

/** Holds registration back until what the provider needs of a node is there (lifecycle.md 3.3). */
export interface RegistrationHook {
  /** As in conditions and errors. */
  readonly name: string
  /** Called in every pass until all hooks have passed; a rejection is tried again with back-off. */
  check(claim: NodeClaim, signal?: AbortSignal): Promise<RegistrationVerdict>
}

/**
 * A cloud. All methods are idempotent and safe to repeat after a crash at any point:
 * `create` for a claim that has an instance already answers that instance.
 */
export interface CloudProvider {
  /** For example `my-cloud`. */
  readonly name: string
  /** Node classes this provider serves; the first is the default. */
  readonly nodeClasses: readonly ResourceType<NodeClass>[]
  /** Label keys this provider's types and offerings use beyond the core's. */
  readonly wellKnownLabels: readonly string[]
  readonly repairPolicies: readonly RepairPolicy[]
  /** Taints of new Nodes that the cloud removes itself: they count as startup taints of every claim. */
  readonly startupTaints?: readonly Taint[]
  /**
   * Whether {@link CloudProvider.list} and {@link CloudProvider.get} show an instance from the moment that it is
   * launched: one that is gone before its Node has registered then ends its claim. Absent: no, as many clouds lag.
   */
  readonly readsOwnWrites?: boolean
  /** Annotations of NodeClaims that are not copied to their Nodes. */
  readonly claimAnnotations?: readonly string[]
  /** What has to pass before a Node counts as registered; all run at once, every time. */
  readonly registrationHooks?: readonly RegistrationHook[]
  /** CSI drivers whose volumes cannot be attached to this provider's nodes; pods that need one wait. */
  readonly unsupportedProvisioners?: readonly string[]
  /** Keys in a StorageClass' allowedTopologies that this provider's nodes cannot satisfy. */
  readonly unsupportedTopologyKeys?: readonly string[]
  /** Label keys, and domains with their subdomains, that pods may not choose nodes by. */
  readonly restrictedLabels?: readonly string[]
  readonly restrictedDomains?: readonly string[]
  /** Other names of labels, by alias; typically the topology keys of the provider's CSI drivers. */
  readonly labelAliases?: Readonly<Record<string, string>>
  /** Label whose values are reservation ids; absent when nothing can be reserved. */
  readonly reservationLabel?: string
  /** How long the names of its claims may be, where its nodes are called like them and more; at most 63. */
  readonly claimNameLimit?: number
  /** Grace period of claims whose NodePool sets none; absent = no limit. */
  readonly defaultTerminationGracePeriodMs?: number
  /** Guards of this provider's own sweeps, for metrics. */
  readonly sweeps?: readonly SweepGuard[]
  readonly metrics?: readonly ProviderMetric[]
  /** Of its prices, as ISO 4217 or another name; undefined, or absent: not known. */
  readonly currency?: () => string | undefined
  /**
   * What the provider waits for before it can launch anything, as a clause without a full stop; undefined once it has
   * it. Absent: nothing.
   */
  readonly waitsFor?: () => string | undefined
  /**
   * Until when nothing could be launched because the cloud's API did not answer, in Unix milliseconds: now while that
   * lasts, undefined when it never was so. Launches have their whole time from then on. Absent: not known.
   */
  readonly awayUntilMs?: () => number | undefined
  /** Calls `listener` for what is found out about offerings outside {@link create}. */
  readonly onOfferingNews?: (listener: (news: OfferingNews) => void) => void
  /**
   * Whether a provider ID has the form of this provider's. An instance whose claim has any other is found by its
   * ownership labels.
   */
  ownsProviderID(providerID: string): boolean
  /**
   * Launches an instance that satisfies the claim's requirements and requests.
   * @param instanceTypes the types of the claim's NodePool as decisions see them: prices with overlays, and
   * no offering available that should not be tried now. Absent: as the provider lists them.
   */
  create(
    claim: NodeClaim,
    signal?: AbortSignal,
    instanceTypes?: readonly InstanceType[],
  ): Promise<ProviderInstance>
  /**
   * Starts, or continues with, deletion. Resolves when the cloud has accepted;
   * rejects with `nodeClaimNotFound` once the instance is gone. Without a provider ID of this provider's form, the
   * instances go that the claim owns by their labels.
   */
  delete(claim: NodeClaim, signal?: AbortSignal): Promise<void>
  /**
   * Asks the cloud itself for one instance: what is deleted for want of it relies on the answer.
   * Rejects with `nodeClaimNotFound` when there is no such instance.
   */
  get(providerID: string, signal?: AbortSignal): Promise<ProviderInstance>
  /** Every instance this installation owns, those being deleted included. */
  list(signal?: AbortSignal): Promise<readonly ProviderInstance[]>
  /** All types for the pool's node class, those without an available offering included. */
  getInstanceTypes(pool: NodePool, signal?: AbortSignal): Promise<readonly InstanceType[]>
  /**
   * Labels and taints that the pool's node class gives its nodes where the pool's template does not say otherwise.
   * Absent: node classes give none.
   */
  nodeDefaults?(pool: NodePool): NodeDefaults
  /** The drift reason, or undefined. */
  isDrifted(claim: NodeClaim, signal?: AbortSignal): Promise<string | undefined>
  /**
   * Starts the provider's own controllers (node class status, token clean-up, sweep of leaked
   * instances); called once this process leads. Stops when `signal` aborts.
   */
  startControllers(signal: AbortSignal): void
  /**
   * Starts only what the provider reads from, in place of {@link startControllers}, in a process that changes nothing.
   * Absent: nothing needs to be started.
   */
  startReading?(signal: AbortSignal): void
}

/** What a provider says about the labels that NodePools may use. */
export type PoolRules = Pick<
  CloudProvider,
  'wellKnownLabels' | 'restrictedLabels' | 'restrictedDomains' | 'labelAliases'
>
