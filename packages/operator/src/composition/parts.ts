/** What controllers are put together from. No file outside this folder is given all of it. */
import type { ClusterIdentity } from '@tenon/kube'
import type { CloudProvider } from '@tenon/provider'
import type { Clock, Logger, Random, Slicing, Tracer, Turns } from '@tenon/runtime'
import type { CapacityLearning } from '../cloud/provider-layers.ts'
import type { LaunchGuard } from '../cloud/launch-guard.ts'
import type { ClusterState } from '../state/cluster-state.ts'
import type { SchedulingDecider } from '../decide/decider.ts'
import { sliceMs } from '../slice.ts'
import type { DisruptionAnswers } from '../disruption/answers.ts'
import { ClaimJournal } from '../journal/claim-journal.ts'
import { CommandJournal } from '../disruption/commands/command-journal.ts'
import type { Journal } from '../journal/journal.ts'
import type { Kubernetes } from '../kubernetes.ts'
import { ClaimTraces } from '../nodeclaim/claim-traces.ts'
import type { OtherControllers } from '../extensions/beside/other-controllers.ts'
import type { FollowedPods } from '../metrics/cluster/followed-pods.ts'
import type { FrameworkMetrics } from '../metrics/framework/framework.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { PassAges } from '../metrics/waiting.ts'
import type { OverlayLayer } from '../nodeoverlay/overlaid-provider.ts'
import { ObservedPools } from '../state/nodepools/observed-pools.ts'
import type { PlacementGate } from '../placement/gate.ts'
import type { Settings } from '../settings.ts'

/** The cloud, and what is known of it. */
interface Cloud {
  /** With the overlays of NodeOverlays, if these are served, and types no larger than their instances. */
  readonly provider: CloudProvider
  /** What is beneath; absent without the feature gate. */
  readonly overlays?: OverlayLayer
  /** What instances really have, and the provider without it; absent with `compatibility: karpenter`. */
  readonly learning?: CapacityLearning
  /** Knows which offerings failed lately. */
  readonly launchGuard: LaunchGuard
}

/** What makes decisions, and what is kept of them. */
interface Decisions {
  readonly decider: SchedulingDecider
  readonly placementGate: PlacementGate
  /** Why nodes are still there. */
  readonly answers: DisruptionAnswers
}

/** What is measured, and noted. */
interface Telemetry {
  readonly metrics: Metrics
  /** What the metrics of pods show. */
  readonly followedPods: FollowedPods
  /** Told what controllers do. */
  readonly framework: FrameworkMetrics
  readonly passAges: PassAges
  readonly journal: Journal
  /** Undefined: nothing is traced. */
  readonly tracer: Tracer | undefined
}

/** What this process gives to everyone who asks. */
interface ProcessParts {
  readonly clock: Clock
  readonly turns: Turns
  readonly random: Random
  readonly logger: Logger
  readonly settings: Settings
}

export interface OperatorParts {
  readonly kubernetes: Kubernetes
  readonly identity: ClusterIdentity
  /** Undefined if this process never stands back. */
  readonly others: OtherControllers | undefined
  readonly state: ClusterState
  readonly cloud: Cloud
  readonly decisions: Decisions
  readonly telemetry: Telemetry
  readonly process: ProcessParts
}

/** All parts side by side, for each object to be given those that it names. */
export type Assembly = Kubernetes &
  Pick<OperatorParts, 'identity' | 'kubernetes' | 'others' | 'state'> &
  Cloud &
  Decisions &
  Telemetry &
  ProcessParts &
  Made & { readonly slicing: Slicing & { readonly clock: Clock } }

/** What is made of the parts, once for all. */
interface Made {
  readonly observed: ObservedPools
  readonly claimJournal: ClaimJournal
  readonly claimTraces: ClaimTraces | undefined
  readonly commandJournal: CommandJournal
}

export function assemblyOf(parts: OperatorParts): Assembly {
  const { identity, kubernetes, others, state, cloud, decisions, telemetry, process } = parts
  const { clock, turns } = process
  return {
    identity,
    kubernetes,
    others,
    ...kubernetes,
    state,
    ...cloud,
    ...decisions,
    ...telemetry,
    ...process,
    observed: new ObservedPools(kubernetes.caches, process.settings, others),
    claimJournal: new ClaimJournal(telemetry.journal, state),
    claimTraces: telemetry.tracer && new ClaimTraces(telemetry.tracer),
    commandJournal: new CommandJournal(telemetry),
    slicing: { clock, turns, sliceMs },
  }
}
