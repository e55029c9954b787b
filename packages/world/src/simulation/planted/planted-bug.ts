import type { KubeObject } from '@tenon/api'
import type { SchedulingDecider, Settings } from '@tenon/operator'
import type { CloudProvider } from '@tenon/provider'
import type { Logger, Transport } from '@tenon/runtime'
import type { World } from '../../world.ts'

/** What a planted bug may look at. */
export interface PlantedContext {
  readonly world: World
}

/**
 * A mistake of the controller, made at its ports: what it sends, what it sees, what it is built
 * from. The code under test stays as it is.
 */
export interface PlantedBug {
  readonly name: string
  /** What a reviewer would have missed. */
  readonly mistake: string
  /** Changes every object of the collection that the controller reads. */
  readonly sees?: Readonly<Record<string, (object: KubeObject) => KubeObject>>
  readonly api?: (inner: Transport, context: PlantedContext) => Transport
  readonly cloud?: (inner: Transport, context: PlantedContext) => Transport
  readonly provider?: (inner: CloudProvider, context: PlantedContext) => CloudProvider
  readonly decider?: (inner: SchedulingDecider) => SchedulingDecider
  readonly settings?: Partial<Settings>
  readonly logger?: (inner: Logger, context: PlantedContext) => Logger
  /** Leads without asking the lease. */
  readonly leadsAtOnce?: boolean
  /** Controllers that run side by side; drawn from the seed when absent. */
  readonly replicas?: number
}
