import type { Clock, Logger, Random } from '@tenon/runtime'
import type { EventRecorder, KubeClient } from '@tenon/kube'
import type { CloudProvider } from '@tenon/provider'
import type { Metrics } from './metrics/metrics.ts'
import type { Caches } from './observe/caches.ts'
import type { Settings } from './settings.ts'
import type { ClusterState } from './state/cluster-state.ts'

/** What every controller works with. */
export interface OperatorContext {
  readonly client: KubeClient
  readonly caches: Caches
  readonly state: ClusterState
  readonly provider: CloudProvider
  readonly events: EventRecorder
  readonly metrics: Metrics
  readonly clock: Clock
  readonly random: Random
  readonly logger: Logger
  readonly settings: Settings
}
