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

/** An instance of the cloud, described like a NodeClaim (lifecycle.md 3.1). */
export interface ProviderInstance {
  readonly providerID: string
  readonly imageID?: string
  /** Labels with one value. Labels of the claim take precedence. */
  readonly labels: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  /** Quantities as text, without zeros. */
  readonly capacity: Readonly<Record<string, string>>
  readonly allocatable: Readonly<Record<string, string>>
  /** Name of the claim for which it was created, if tags of the cloud contain it. */
  readonly nodeClaimName?: string
  readonly createdAtMs?: number
  /** Whether it is being deleted. */
  readonly deleting: boolean
}

/** What a node class sets on the nodes of its NodePools. */
export interface NodeDefaults {
  readonly labels: Readonly<Record<string, string>>
  readonly taints: readonly Taint[]
}

/** An offering that the cloud refused. */
export interface RefusedOffering extends OfferingRef {
  /** How long launches avoid it. Default: a time that grows with every refusal. */
  readonly pauseMs?: number
  /** Whether the pause ends as soon as capacity is released. */
  readonly endsOnRelease?: boolean
}

/** What a failed launch means for later launches, if no single offering is short. */
export interface Blame {
  /**
   * What would fail again: the chosen type in any zone, any launch with the node class, or any launch of the NodePool.
   * `cloud`: unknown, as the cloud gave no clear answer. `nothing`: the launch has not failed but takes longer than one
   * call of `create`, or the claim is given up for a reason of its own.
   */
  readonly what: 'instanceType' | 'nodeClass' | 'nodePool' | 'cloud' | 'nothing'
  /** See {@link RefusedOffering}. */
  readonly pauseMs?: number
  readonly endsOnRelease?: boolean
}

/** What a provider learns about offerings outside of launches. */
export type OfferingNews =
  /** An instance was refused after its launch had been accepted. */
  | { readonly kind: 'refused'; readonly offerings: readonly RefusedOffering[]; readonly because: string }
  /** Capacity was released. */
  | { readonly kind: 'released' }

/** A metric of a provider without labels, read at each scrape. */
export interface ProviderMetric {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge'
  /** The current value; undefined if there is none. */
  value(): number | undefined
}

/** A node condition for which a node is replaced once it has lasted longer than the toleration. */
export interface RepairPolicy {
  readonly conditionType: string
  readonly conditionStatus: 'True' | 'False' | 'Unknown'
  readonly tolerationMs: number
}

/** Why a provider could not do something; each kind has its own consequence (scheduling.md 13.3). */
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

/** The only error that a provider's methods reject with. Messages contain no secrets. */
export class ProviderError extends Error {
  readonly kind: ProviderErrorKind
  /** The message without the prefix of its kind. */
  readonly detail: string
  /** Condition reason for errors of `create`, in UpperCamelCase. */
  readonly reason: string | undefined
  readonly retryAfterMs: number | undefined
  /** For `insufficientCapacity`: the offerings that were tried; empty if no single offering is short. */
  readonly offerings: readonly RefusedOffering[]
  /** For failed launches, in addition to the offerings. Absent: as the kind says (docs/providers.md). */
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
 * Whether `error` is a {@link ProviderError} of one of `kinds`, or of any kind if none is given. Compares names, as an
 * external provider may bring its own copy of this package.
 */
export function isProviderError(
  error: unknown,
  ...kinds: readonly ProviderErrorKind[]
): error is ProviderError {
  if (!(error instanceof Error) || error.name !== 'ProviderError') return false
  const { kind } = error as Partial<ProviderError>
  return kind !== undefined && Object.hasOwn(prefixes, kind) && (kinds.length === 0 || kinds.includes(kind))
}

/** What a registration hook decides about a claim whose Node has joined. */
export type RegistrationVerdict =
  /** Labels are set on the claim and its Node, and replace those of the claim. */
  | { readonly kind: 'passed'; readonly labels?: Readonly<Record<string, string>> }
  /** Called again after this delay; by default with growing pauses. */
  | { readonly kind: 'pending'; readonly retryAfterMs?: number }

/** Delays registration until the provider's conditions for a node are met (lifecycle.md 3.3). */
export interface RegistrationHook {
  /** As in conditions and errors. */
  readonly name: string
  /** Called in every pass until all hooks have passed; rejections are retried with back-off. */
  check(claim: NodeClaim, signal?: AbortSignal): Promise<RegistrationVerdict>
}

/**
 * A cloud. All methods are idempotent and safe to repeat after a crash at any point: `create` for a claim that already
 * has an instance returns that instance.
 */
export interface CloudProvider {
  /** For example `my-cloud`. */
  readonly name: string
  /** Node classes of this provider; the first is the default. */
  readonly nodeClasses: readonly ResourceType<NodeClass>[]
  /** Label keys of this provider's types and offerings, in addition to those of the core. */
  readonly wellKnownLabels: readonly string[]
  readonly repairPolicies: readonly RepairPolicy[]
  /** Taints of new Nodes that the cloud removes itself; they count as startup taints of every claim. */
  readonly startupTaints?: readonly Taint[]
  /**
   * Whether {@link CloudProvider.list} and {@link CloudProvider.get} return an instance as soon as it is launched. If
   * so, an instance that disappears before its Node has registered ends its claim. Default: no, as many clouds lag.
   */
  readonly readsOwnWrites?: boolean
  /** Annotations of NodeClaims that are not copied to their Nodes. */
  readonly claimAnnotations?: readonly string[]
  /** All must pass before a Node counts as registered; all are called, every time. */
  readonly registrationHooks?: readonly RegistrationHook[]
  /**
   * CSI drivers whose volumes cannot be attached to this provider's nodes; pods that need one stay pending.
   */
  readonly unsupportedProvisioners?: readonly string[]
  /** Keys in allowedTopologies of a StorageClass that this provider's nodes cannot satisfy. */
  readonly unsupportedTopologyKeys?: readonly string[]
  /** Label keys, and domains with their subdomains, that pods may not select on. */
  readonly restrictedLabels?: readonly string[]
  readonly restrictedDomains?: readonly string[]
  /** Aliases of label keys; typically the topology keys of the provider's CSI drivers. */
  readonly labelAliases?: Readonly<Record<string, string>>
  /** The label with reservation ids; absent if the cloud has no reservations. */
  readonly reservationLabel?: string
  /** The maximum length of claim names, if node names are longer than these; at most 63. */
  readonly claimNameLimit?: number
  /** Grace period of claims whose NodePool sets none; absent = no limit. */
  readonly defaultTerminationGracePeriodMs?: number
  /** Sweep guards of this provider, for metrics. */
  readonly sweeps?: readonly SweepGuard[]
  readonly metrics?: readonly ProviderMetric[]
  /** The currency of its prices, as ISO 4217 or another name; absent or undefined = unknown. */
  readonly currency?: () => string | undefined
  /**
   * What the provider waits for before it can launch, as a clause without a full stop; undefined once it is ready.
   * Absent: nothing.
   */
  readonly waitsFor?: () => string | undefined
  /**
   * Until when launches were impossible because the cloud's API did not respond, in Unix milliseconds: the current time
   * while that lasts, undefined if it never happened. The time limit of launches starts then. Absent: unknown.
   */
  readonly awayUntilMs?: () => number | undefined
  /** Calls `listener` with what is learned about offerings outside {@link create}. */
  readonly onOfferingNews?: (listener: (news: OfferingNews) => void) => void
  /**
   * Whether a provider ID has this provider's form. If the ID of a claim does not, its instance is found by ownership
   * labels.
   */
  ownsProviderID(providerID: string): boolean
  /**
   * Launches an instance that satisfies the claim's requirements and requests.
   * @param instanceTypes the types of the claim's NodePool as decisions see them: with prices of overlays, and without
   * offerings that should not be tried now. Default: as the provider lists them.
   */
  create(
    claim: NodeClaim,
    signal?: AbortSignal,
    instanceTypes?: readonly InstanceType[],
  ): Promise<ProviderInstance>
  /**
   * Starts or continues the deletion. Resolves when the cloud has accepted it; rejects with `nodeClaimNotFound` once
   * the instance is gone. If the provider ID does not have this provider's form, deletes the instances that the claim
   * owns by their labels.
   */
  delete(claim: NodeClaim, signal?: AbortSignal): Promise<void>
  /**
   * Restarts the instance of a claim, with its disk and its provider ID as they are. Resolves when the cloud has accepted
   * it; rejects with `nodeClaimNotFound` if there is no such instance. Absent: instances cannot be rebooted.
   */
  reboot?(claim: NodeClaim, signal?: AbortSignal): Promise<void>
  /**
   * Reads one instance from the cloud itself, never from a cache: objects are deleted if it is missing. Rejects with
   * `nodeClaimNotFound` if there is no such instance.
   */
  get(providerID: string, signal?: AbortSignal): Promise<ProviderInstance>
  /** All instances of this installation, including those being deleted. */
  list(signal?: AbortSignal): Promise<readonly ProviderInstance[]>
  /** All types for the pool's node class, including those without an available offering. */
  getInstanceTypes(pool: NodePool, signal?: AbortSignal): Promise<readonly InstanceType[]>
  /** Labels and taints that the pool's node class sets unless the pool's template does. Absent: none. */
  nodeDefaults?(pool: NodePool): NodeDefaults
  /** Version of the kubelets of the pool's new nodes, such as `v1.36.3`. Absent, or undefined: not known. */
  kubeletVersion?(pool: NodePool): string | undefined
  /** The drift reason; undefined if there is no drift. */
  isDrifted(claim: NodeClaim, signal?: AbortSignal): Promise<string | undefined>
  /**
   * Starts the provider's own controllers (node class status, token cleanup, garbage collection of instances) once this
   * process is the leader. They stop when `signal` aborts.
   */
  startControllers(signal: AbortSignal): void
  /**
   * Starts only what the provider needs for reading, instead of {@link startControllers}, in a process that changes
   * nothing. Absent: nothing.
   */
  startReading?(signal: AbortSignal): void
}

/** The provider's rules for labels of NodePools. */
export type PoolRules = Pick<
  CloudProvider,
  'wellKnownLabels' | 'restrictedLabels' | 'restrictedDomains' | 'labelAliases'
>
