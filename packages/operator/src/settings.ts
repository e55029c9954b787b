import type { LabelSelector, TopologySpreadConstraint } from '@tenon/api'
import { type FitScoring, parseSchedulerConfig, renderSchedulerConfigProblems } from '@tenon/engine/objects'
import type { IdentitySettings } from '@tenon/kube'

/** Behaviour that can be switched on and off, by its name without the capital (operations.md 3). */
interface FeatureGates {
  readonly nodeRepair: boolean
  /** Needs the kind NodeOverlay to be served. */
  readonly nodeOverlay: boolean
  /** NodePools with `replicas` keep that many nodes, whatever pods ask for. */
  readonly staticCapacity: boolean
  /** Nodes are kept ready for the pods of CapacityBuffers, as far as that kind is served. */
  readonly capacityBuffer: boolean
  /** Pods of one group get nodes all together or not at all, as far as the kinds of groups are served. */
  readonly groupScheduling: boolean
  /** Pods are steered to the nodes they are planned for; `auto`: if the API server is new enough. */
  readonly plannedPlacement: boolean | 'auto'
  /** Reserved capacity is used, and used first. */
  readonly reservedCapacity: boolean
  /** Spot nodes may be replaced by cheaper spot nodes. */
  readonly spotToSpotConsolidation: boolean
  /** Several nodes may be replaced by several cheaper ones, not only by one. */
  readonly globalConsolidation: boolean
}

/** Which NodePools this controller serves where several share a cluster. */
export interface NodePoolSelection {
  /** Of labels of NodePools. */
  readonly selector: LabelSelector
  /** The selector as it was given. */
  readonly text: string
  /** The name of this controller in annotations: namespace and name of the lease that its replicas share. */
  readonly controller: string
}

/** Behaviour that users may set (operations.md 2). Durations are in milliseconds. */
export interface Settings {
  readonly batchMaxMs: number
  readonly batchIdleMs: number
  readonly preferences: 'Respect' | 'Ignore'
  readonly minValues: 'Strict' | 'BestEffort'
  /** Thousandths of a core given to this process; scales concurrency. */
  readonly cpuRequestsMillis: number
  /** Launch must have succeeded this long after a claim's creation. */
  readonly launchTimeoutMs: number
  readonly registrationTimeoutMs: number
  /** A registered node must take pods after this time, or it is replaced; Infinity = it may take for ever. */
  readonly initializationTimeoutMs: number
  /** Pause before an emptiness decision is checked once more and carried out. */
  readonly validationDelayMs: number
  /** Pause between two passes of the disruption loop that found nothing. */
  readonly disruptionPollMs: number
  /** An instance is compared with what its NodePool and node class ask for this often, and when they change. */
  readonly driftPeriodMs: number
  /** A pending pod asks for another pass this long after the last one. */
  readonly pendingRetryMs: number
  /** A scheduling decision that takes longer stops with what it has. */
  readonly solveTimeoutMs: number
  /** Spread of pods that ask for none; needs the right to read Services and the pods' controllers. */
  readonly defaultSpread: readonly TopologySpreadConstraint[]
  /** How kube-scheduler scores what is used of nodes; undefined: as by default. */
  readonly fitScoring?: FitScoring
  /** Whether pods with resource claims get no nodes even where devices are served and may be read. */
  readonly ignoreDraRequests: boolean
  /** For so long the room of a ProvisioningRequest is kept once there is room for all of it. */
  readonly requestBookingMs: number
  /** Whether moved pods count with what VerticalPodAutoscalers will have them ask for. */
  readonly vpaPredictions: boolean
  /** Whose pods are replaced by a rollout before their node goes: Deployments that say so in an annotation, or all. */
  readonly surgeOnDrain: 'off' | 'annotated' | 'all'
  /** Whether ReplicaSets that are scaled in delete pods of those nodes first that consolidation would remove next. */
  readonly podDeletionCost: boolean
  readonly featureGates: FeatureGates
  /** Whether there are metrics of single nodes, pods and NodePools (operations.md 9.2, 9.3). */
  readonly clusterStateObservability: boolean
  /** With `reduced`, there are no series of single pods and nodes: their number grows with the cluster. */
  readonly metricsDetail: 'full' | 'reduced'
  /** Everything is decided and noted, and nothing is carried out. */
  readonly observeOnly: boolean
  /** Acts also while another controller writes NodeClaims of the same NodePools. */
  readonly takeOver: boolean
  /** With `karpenter`, decisions are made as Karpenter makes them, without what Tenon adds. */
  readonly compatibility: 'none' | 'karpenter'
  /** Longest time the registration of a node waits for the nominations of its pods. */
  readonly nominationHoldMs: number
  /**
   * With more pods to decide about, nodes are planned that hold them wherever they land, and none is nominated:
   * as many as the client's rate lets through in that time.
   */
  readonly maxNominations: number
  /** Undefined if this controller serves all NodePools. */
  readonly nodePools?: NodePoolSelection
  /** How the cluster is known again. */
  readonly identity: IdentitySettings
  /** Namespace of ConfigMap `tenon-brake`; without it only annotations of NodePools pause anything (ask.md 8). */
  readonly brakeNamespace?: string
  /** Whether voluntary disruption pauses by itself when something goes wrong; never with `compatibility: karpenter`. */
  readonly autoBrake: boolean
}

/** What Tenon does and Karpenter does not. All of it is off with `--compatibility=karpenter`. */
export interface Policy {
  /** Launches avoid offerings that failed lately; nodes teach sizes of types, and types that help no pod. */
  readonly learns: boolean
  /** Decisions leave out objects that are stuck or unreadable, and go on with the rest. */
  readonly isolates: boolean
  /** Plans, moved pods and expected refusals are kept from one decision to the next. */
  readonly remembersPods: boolean
  readonly servesPodGroups: boolean
  /** Nodes in place of others keep to `limits.nodes`, and events say which limit is reached. */
  readonly reportsLimits: boolean
  /** CapacityQuotas limit all NodePools together, as far as that kind is served. */
  readonly keepsQuotas: boolean
  /** Consolidation spares pods that have just started, and moves that do not pay back. */
  readonly sparesFreshPods: boolean
  readonly consolidatesGlobally: boolean
  /** Voluntary disruption pauses by itself when something goes wrong. */
  readonly brakes: boolean
  /** PDBs that can never allow an eviction are told from those that wait for pods. */
  readonly judgesBudgets: boolean
  /** NodePools, pods and namespaces are read with annotations of Tenon (wanted.md). */
  readonly readsAnnotations: boolean
  /** Nodes are repaired as wanted.md 2 says: the replacement first where the kubelet reports, and never whole zones. */
  readonly plansRepairs: boolean
  /** A node that leaves says so every five minutes, not every two, so that thousands do not fill the API server. */
  readonly repeatsLess: boolean
  /** When memory runs short, metrics go on with reduced detail (scale.md 2). */
  readonly reducesMetrics: boolean
  /** Only observes while another controller writes NodeClaims of the same NodePools. */
  readonly standsBack: boolean
  /** The journal notes every hour what instances cost, and for whom (page.md 2). */
  readonly notesSpend: boolean
}

const policies: Readonly<Record<Settings['compatibility'], Policy>> = {
  none: {
    learns: true,
    isolates: true,
    remembersPods: true,
    servesPodGroups: true,
    reportsLimits: true,
    keepsQuotas: true,
    sparesFreshPods: true,
    consolidatesGlobally: true,
    brakes: true,
    judgesBudgets: true,
    readsAnnotations: true,
    plansRepairs: true,
    repeatsLess: true,
    reducesMetrics: true,
    standsBack: true,
    notesSpend: true,
  },
  karpenter: {
    learns: false,
    isolates: false,
    remembersPods: false,
    servesPodGroups: false,
    reportsLimits: false,
    keepsQuotas: false,
    sparesFreshPods: false,
    consolidatesGlobally: false,
    brakes: false,
    judgesBudgets: false,
    readsAnnotations: false,
    plansRepairs: false,
    repeatsLess: false,
    reducesMetrics: false,
    standsBack: false,
    notesSpend: false,
  },
}

/** The only place that asks for the compatibility mode. */
export function policyOf({ compatibility }: Pick<Settings, 'compatibility'>): Policy {
  return policies[compatibility]
}

/** What holds for settings that nobody gave. */
export const defaultSettings: Settings = {
  batchMaxMs: 10_000,
  batchIdleMs: 1_000,
  preferences: 'Respect',
  minValues: 'Strict',
  cpuRequestsMillis: 1_000,
  launchTimeoutMs: 5 * 60_000,
  registrationTimeoutMs: 15 * 60_000,
  initializationTimeoutMs: 15 * 60_000,
  validationDelayMs: 15_000,
  disruptionPollMs: 10_000,
  driftPeriodMs: 5 * 60_000,
  pendingRetryMs: 10_000,
  solveTimeoutMs: 60_000,
  defaultSpread: [],
  ignoreDraRequests: false,
  requestBookingMs: 10 * 60_000,
  vpaPredictions: true,
  surgeOnDrain: 'off',
  podDeletionCost: false,
  featureGates: {
    nodeRepair: false,
    nodeOverlay: false,
    staticCapacity: false,
    capacityBuffer: true,
    groupScheduling: true,
    plannedPlacement: 'auto',
    reservedCapacity: true,
    spotToSpotConsolidation: false,
    globalConsolidation: true,
  },
  clusterStateObservability: true,
  metricsDetail: 'full',
  observeOnly: false,
  takeOver: false,
  identity: { isAccepted: false },
  compatibility: 'none',
  nominationHoldMs: 5_000,
  maxNominations: 1_000,
  autoBrake: true,
}

/**
 * The settings of a parsed scheduler configuration.
 * @returns a sentence naming every field that is wrong, when there is one.
 */
export function schedulerSettingsOf(
  document: unknown,
): { readonly ok: Pick<Settings, 'defaultSpread' | 'fitScoring'> } | { readonly error: string } {
  const config = parseSchedulerConfig(document)
  if ('problems' in config) return { error: renderSchedulerConfigProblems(config.problems) }
  const { defaultConstraints: defaultSpread, fitScoring } = config
  return { ok: { defaultSpread, ...(fitScoring && { fitScoring }) } }
}

/** Workers of a controller that scales with the CPUs given (operations.md 7). */
export function scaledConcurrency(least: number, most: number, cpuRequestsMillis: number): number {
  const cores = Math.ceil(cpuRequestsMillis / 1000)
  const scaled = Math.trunc(((most - least) / 59) * (cores - 1)) + least
  return Math.min(most, Math.max(least, scaled))
}
