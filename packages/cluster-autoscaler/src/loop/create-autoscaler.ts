/** Assembles the Cluster Autoscaler mode. */
import type { Node } from '@tenon/api'
import { PodReader } from '@tenon/filters'
import type { NodeGroups } from '@tenon/provider'
import type { Clock, Random, Turns } from '@tenon/runtime'
import type { ClusterWriter, ClusterCache } from '../model.ts'
import { priorityExpanderConfigMap } from '../names.ts'
import type { AutoscalerOptions } from '../options/options.ts'
import { Nominator } from '../placement/nominator.ts'
import { PodPlans } from '../placement/pod-plans.ts'
import { ClusterStateRegistry } from '../registry/cluster-state.ts'
import { GroupMembers } from '../registry/members.ts'
import { InstanceRemover } from '../registry/removal.ts'
import { ProvisioningRequests } from '../requests/provisioning-requests.ts'
import type { ClusterReader } from '../scale-down/deletion/cluster-reader.ts'
import { ScaleDown } from '../scale-down/scale-down.ts'
import { type Expander, expanderChain } from '../scale-up/expanders.ts'
import { priorityExpander } from '../scale-up/priority-expander.ts'
import { ScaleUp } from '../scale-up/scale-up.ts'
import { NodeTemplates } from '../templates/node-templates.ts'
import { TaintRules } from '../templates/taint-rules.ts'
import { Autoscaler } from './autoscaler.ts'
import { CapacityQuotas } from './capacity-quotas.ts'
import type { LoopReporting } from './dependencies.ts'

/** Access to the cluster: caches, uncached reads, and writes. */
interface ClusterPorts {
  readonly cache: ClusterCache
  /** Reads from the API server. */
  readonly reader: ClusterReader
  /** All nodes, from the API server. */
  readonly listNodes: (signal: AbortSignal) => Promise<readonly Node[]>
  readonly writer: ClusterWriter
  /** Whether the API server is still that of the known cluster. */
  readonly mayRemove: () => Promise<boolean>
}

/** Time, turns of the event loop, and randomness. */
interface Capabilities {
  readonly clock: Clock
  readonly turns: Turns
  readonly random: Random
}

export interface AutoscalerParts {
  readonly options: AutoscalerOptions
  readonly cluster: ClusterPorts
  readonly nodeGroups: NodeGroups
  readonly reporting: LoopReporting
  readonly capabilities: Capabilities
  /** Calls the server at `--grpc-expander-url`; only used if `--expander` names `grpc`. */
  readonly grpcExpander: Expander
}

/** Long work yields to the event loop after this time. */
const sliceMs = 8

export function createAutoscaler(parts: AutoscalerParts): Autoscaler {
  const { options, cluster, nodeGroups, reporting, capabilities } = parts
  const { clock, turns, random } = capabilities
  const { events, logger } = reporting
  const reader = new PodReader()
  const taints = new TaintRules(options.taints, nodeGroups.startupTaint)
  const registry = new ClusterStateRegistry(options.registry)
  const members = new GroupMembers({ groups: nodeGroups, clock, logger })
  const plans = new PodPlans(
    (groupId) =>
      nodeGroups.optionsOf?.(groupId).maxNodeProvisionMs ?? options.registry.maxNodeProvisionTimeMs,
  )
  const slicing = { clock, turns, sliceMs }
  const priority = priorityExpander({
    configMap: () => cluster.cache.configMap(options.status.namespace, priorityExpanderConfigMap),
    events,
  })
  const scaleUp = new ScaleUp({
    options: options.scaleUp,
    cloud: { nodeGroups, registry, plans, isDryRun: options.isDryRun },
    reporting,
    chooser: expanderChain(options.scaleUp.expanders, { reader, random, priority, grpc: parts.grpcExpander }),
    reader,
    slicing,
  })
  const scaleDown = new ScaleDown({
    options,
    nodeGroups,
    cluster,
    reporting,
    slicing,
    ended: ({ kind, groupId }) => {
      if (kind !== 'deleted') return
      registry.registerDeletion(groupId, clock.now())
      members.invalidate(groupId)
    },
  })
  const remover = new InstanceRemover({
    groups: nodeGroups,
    listNodes: cluster.listNodes,
    members,
    reporting,
    belowMinimum: options.registry.forceDeleteUnregisteredNodes,
  })
  const nominator = options.loop.plannedPlacement
    ? new Nominator({ plans, cache: cluster.cache, nodeGroups, writer: cluster.writer, clock, logger })
    : undefined
  const sources = { cache: cluster.cache, nodeGroups, reader }
  const requests = options.requests.isEnabled
    ? new ProvisioningRequests({
        options,
        sources,
        reporting,
        slicing,
        scaleUp,
        writer: cluster.writer,
      })
    : undefined
  return new Autoscaler({
    options,
    sources,
    state: {
      registry,
      members,
      templates: new NodeTemplates(options.templates, taints, reader),
      taints,
      plans,
      quotas: new CapacityQuotas({
        cache: cluster.cache,
        registry,
        writer: cluster.writer,
        reporting,
      }),
    },
    actions: { scaleUp, scaleDown, remover, nominator, requests },
    reporting,
    slicing,
  })
}
