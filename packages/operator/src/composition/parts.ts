import type { EventRecorder, KubeClient } from '@tenon/kube'
import type { CloudProvider } from '@tenon/provider'
import type { Clock, Logger, Random, Turns } from '@tenon/runtime'
import type { CapacityLearning } from '../cloud/corrected-provider.ts'
import type { LaunchGuard } from '../cloud/launch-guard.ts'
import type { DisruptionAnswers } from '../disruption/answers.ts'
import type { PlacementGate } from '../placement/gate.ts'
import type { OverlayLayer } from '../nodeoverlay/overlaid-provider.ts'
import type { SchedulingDecider } from '../decider/decider.ts'
import type { FollowedPods } from '../metrics/cluster/followed-pods.ts'
import type { FrameworkMetrics } from '../metrics/framework/framework.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { PassAges } from '../metrics/pass-ages.ts'
import type { Caches } from '../cluster/caches.ts'
import type { Settings } from '../settings.ts'
import type { ClusterState } from '../cluster/cluster-state.ts'

/** What controllers are built from; each takes what it uses. */
export interface OperatorParts {
  readonly client: KubeClient
  readonly caches: Caches
  readonly state: ClusterState
  /** With the overlays of NodeOverlays, if these are served, and types no larger than their instances. */
  readonly provider: CloudProvider
  /** What is beneath; absent without the feature gate. */
  readonly overlays?: OverlayLayer
  /** What instances really have, and the provider without it; absent with `compatibility: karpenter`. */
  readonly learning?: CapacityLearning
  /** Knows which offerings failed lately. */
  readonly launchGuard: LaunchGuard
  readonly events: EventRecorder
  readonly decider: SchedulingDecider
  readonly placementGate: PlacementGate
  /** Why nodes are still there. */
  readonly answers: DisruptionAnswers
  readonly metrics: Metrics
  /** What the metrics of pods show. */
  readonly followedPods: FollowedPods
  /** Told what controllers do. */
  readonly framework: FrameworkMetrics
  readonly passAges: PassAges
  readonly clock: Clock
  readonly turns: Turns
  readonly random: Random
  readonly logger: Logger
  readonly settings: Settings
}
