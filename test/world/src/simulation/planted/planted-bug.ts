import type { KubeObject } from '@tenon/api'
import type { Operator, SchedulingDecider, Settings } from '@tenon/operator'
import type { CloudProvider } from '@tenon/provider'
import type { Logger, Transport } from '@tenon/runtime'
import type { World } from '../../world.ts'
import type { Story } from '../story.ts'

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
  /** The provider's own way to the API server. */
  readonly providerApi?: (inner: Transport, context: PlantedContext) => Transport
  readonly decider?: (inner: SchedulingDecider) => SchedulingDecider
  readonly settings?: Partial<Settings>
  readonly logger?: (inner: Logger, context: PlantedContext) => Logger
  /** Changes the operator after it has been built, before it leads. */
  readonly operator?: (operator: Operator, context: PlantedContext) => void
  /** Writes whether or not it leads. */
  readonly isUnfenced?: boolean
  /** Does not end when the lease is lost. */
  readonly goesOn?: boolean
  /** Leads without asking the lease. */
  readonly leadsAtOnce?: boolean
  /** Controllers that run side by side; drawn from the seed when absent. */
  readonly replicas?: number
  /** Stories in which it shows soon. */
  readonly profile: Profile
}

/** What stories have in common, whatever their seed. */
export type Profile = Omit<Story, 'seed' | 'mutation'>
