/** What an iteration needs. */
import type { PodReader } from '@tenon/filters'
import type { NodeGroups } from '@tenon/provider'
import type { Clock, Logger, Slicing, Tracer } from '@tenon/runtime'
import type { EventSink, MetricSink, ClusterCache } from '../model.ts'
import type { AutoscalerOptions } from '../options/options.ts'
import type { Nominator } from '../placement/nominator.ts'
import type { PodPlans } from '../placement/pod-plans.ts'
import type { ClusterStateRegistry } from '../registry/cluster-state.ts'
import type { GroupMembers } from '../registry/members.ts'
import type { InstanceRemover } from '../registry/removal.ts'
import type { ProvisioningRequests } from '../requests/provisioning-requests.ts'
import type { ScaleDown } from '../scale-down/scale-down.ts'
import type { ScaleUp } from '../scale-up/scale-up.ts'
import type { SnapshotzRequests } from '../status/snapshotz.ts'
import type { StatusWriter } from '../status/status-config-map.ts'
import type { NodeTemplates } from '../templates/node-templates.ts'
import type { TaintRules } from '../templates/taint-rules.ts'
import type { Explanations } from '../status/explanations.ts'
import type { CapacityQuotas } from './capacity-quotas.ts'

/** Reads of the cluster and the cloud. */
interface LoopSources {
  readonly cache: ClusterCache
  readonly nodeGroups: NodeGroups
  readonly reader: PodReader
}

/** State that is kept between iterations. */
interface LoopState {
  readonly registry: ClusterStateRegistry
  readonly members: GroupMembers
  readonly templates: NodeTemplates
  readonly taints: TaintRules
  readonly plans: PodPlans
  readonly quotas: CapacityQuotas
}

/** Everything that changes the cloud. */
interface LoopActions {
  readonly scaleUp: ScaleUp
  readonly scaleDown: ScaleDown
  readonly remover: InstanceRemover
  /** With `--planned-placement`. */
  readonly nominator: Nominator | undefined
  /** With `--enable-provisioning-requests`. */
  readonly requests: ProvisioningRequests | undefined
}

/** Outputs of an iteration. */
export interface LoopReporting {
  readonly events: EventSink
  readonly metrics: MetricSink
  readonly status: StatusWriter
  readonly health: HealthSink
  readonly logger: Logger
  readonly debugging: DebuggingSinks
  /** Undefined: nothing is traced. */
  readonly tracer?: Tracer | undefined
}

/** Outputs for debugging. */
interface DebuggingSinks {
  readonly snapshotz: SnapshotzRequests
  readonly explanations: Explanations
}

/** The health check of the loop. */
interface HealthSink {
  noteActivity(): void
  noteSuccess(): void
}

export interface AutoscalerDependencies {
  readonly options: AutoscalerOptions
  readonly sources: LoopSources
  readonly state: LoopState
  readonly actions: LoopActions
  readonly reporting: LoopReporting
  readonly slicing: Slicing & { readonly clock: Clock }
}
