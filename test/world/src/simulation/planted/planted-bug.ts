import type { KubeObject } from '@tenon/api'
import type { Operator, SchedulingDecider, Settings } from '@tenon/operator'
import type { CloudProvider } from '@tenon/provider'
import type { Logger, Transport } from '@tenon/runtime'
import type { World } from '../../world.ts'
import type { Story } from '../story.ts'

/** What a planted bug may read. */
export interface PlantedContext {
  readonly world: World
}

/**
 * A bug of the controller, injected at its ports: what it sends, what it sees, what it is built from. Its code
 * is unchanged.
 */
export interface PlantedBug {
  readonly name: string
  /** The mistake that a reviewer would have overlooked. */
  readonly mistake: string
  /** Changes the objects that the controller reads, by collection. */
  readonly sees?: Readonly<Record<string, (object: KubeObject) => KubeObject>>
  readonly api?: (inner: Transport, context: PlantedContext) => Transport
  readonly cloud?: (inner: Transport, context: PlantedContext) => Transport
  readonly provider?: (inner: CloudProvider, context: PlantedContext) => CloudProvider
  /** The provider's own connection to the API server. */
  readonly providerApi?: (inner: Transport, context: PlantedContext) => Transport
  readonly decider?: (inner: SchedulingDecider) => SchedulingDecider
  readonly settings?: Partial<Settings>
  readonly logger?: (inner: Logger, context: PlantedContext) => Logger
  /** Changes the operator before it leads. */
  readonly operator?: (operator: Operator, context: PlantedContext) => void
  /** Writes without being the leader. */
  readonly isUnfenced?: boolean
  /** Continues after the lease is lost. */
  readonly goesOn?: boolean
  /** Leads without a lease. */
  readonly leadsAtOnce?: boolean
  /** Number of controllers; random if absent. */
  readonly replicas?: number
  /** Stories in which it has an effect soon. */
  readonly profile: Profile
}

/** What stories share, whatever their seed. */
export type Profile = Omit<Story, 'seed' | 'mutation'>
