/** Gathers what the engine needs for one decision. */
import {
  conditionOf,
  isConditionTrue,
  labels,
  type NodePool,
  type Pod,
  type Resources,
  wellKnownLabels,
} from '@tenon/api'
import {
  type DaemonInput,
  type PoolInput,
  type SchedulingInput,
  sum,
  type TopologyInput,
  withRequestsFromLimits,
} from '@tenon/engine'
import { isProviderError } from '@tenon/provider'
import type { OperatorContext } from '../context.ts'
import { indexes } from '../observe/caches.ts'
import { capacityOf, labelsOf, nodeInput, type StateNode } from '../state/cluster-state.ts'
import { isCurrentlyReschedulable, isProvisionable } from '../state/pods.ts'

const maxInstanceTypes = 600

/** Pods to place, with the machines that stay and the pools that may launch. */
export async function gatherSchedulingInput(
  context: OperatorContext,
  signal: AbortSignal,
): Promise<SchedulingInput & { readonly stateNodes: ReadonlyMap<string, StateNode> }> {
  const { caches, state, settings, provider } = context
  // Nodes are read before pods: free capacity is then never underestimated.
  const stateNodes = state.stateNodes()
  const staying = stateNodes.filter((node) => !node.isMarkedForDeletion && isUsable(node))
  const pools = await usablePools(context, stateNodes, signal)
  const pods = [...caches.pods.list().filter(isProvisionable), ...podsOfLeavingNodes(context, stateNodes)]
  return {
    pods,
    nodes: staying.map((node) =>
      nodeInput(node, node.node === undefined ? [] : state.podsOn(node.node.metadata.name)),
    ),
    pools,
    daemons: daemonInputs(context),
    topology: topologyInput(context, staying),
    policy: {
      preferences: settings.preferences,
      minValues: settings.minValues,
      wellKnownLabels: new Set([...wellKnownLabels, ...provider.wellKnownLabels]),
      maxInstanceTypes,
    },
    stateNodes: new Map(staying.map((node) => [node.name, node])),
  }
}

/** Managed nodes that are starting and do not say what they are yet are left out (cluster-state.md 2.1). */
function isUsable({ node, isInitialized }: StateNode): boolean {
  const tags = node?.metadata.labels ?? {}
  if (node === undefined || (tags[labels.nodePool] ?? '') === '') return true
  if ((node.spec?.providerID ?? '') === '') return false
  return isInitialized || (tags[labels.instanceType] ?? '') !== ''
}

function podsOfLeavingNodes(context: OperatorContext, nodes: readonly StateNode[]): readonly Pod[] {
  const budgets = context.caches.podDisruptionBudgets.list()
  const now = context.clock.now()
  return nodes
    .filter((node) => node.isMarkedForDeletion && node.node !== undefined)
    .flatMap((node) => context.state.podsOn(node.node?.metadata.name ?? ''))
    .filter((pod) => isCurrentlyReschedulable(pod, budgets, now))
}

/** Pools that may launch: managed, dynamic, ready and staying (scheduling.md 3). */
function eligiblePools(context: OperatorContext): readonly NodePool[] {
  return context.caches.nodePools.list().filter((pool) => {
    const ref = pool.spec.template.spec.nodeClassRef
    return (
      context.provider.nodeClasses.some((type) => type.group === ref.group && type.kind === ref.kind) &&
      pool.spec.replicas === undefined &&
      isConditionTrue(pool, 'Ready') &&
      pool.metadata.deletionTimestamp === undefined
    )
  })
}

async function usablePools(
  context: OperatorContext,
  nodes: readonly StateNode[],
  signal: AbortSignal,
): Promise<readonly PoolInput[]> {
  const inputs = await Promise.all(
    eligiblePools(context).map(async (nodePool): Promise<PoolInput | undefined> => {
      try {
        const instanceTypes = await context.provider.getInstanceTypes(nodePool, signal)
        if (instanceTypes.length === 0) return undefined
        return { nodePool, instanceTypes, usage: poolUsage(nodePool.metadata.name, nodes) }
      } catch (error) {
        if (signal.aborted) throw error
        if (!isProviderError(error, 'unevaluatedNodePool')) {
          context.logger.error('skipping nodepool, listing its instance types failed', {
            NodePool: { name: nodePool.metadata.name },
            error,
          })
        }
        return undefined
      }
    }),
  )
  return inputs.filter((input) => input !== undefined)
}

/** Capacity of a pool's machines that are not going away, `nodes` among it (cluster-state.md 10). */
export function poolUsage(pool: string, nodes: readonly StateNode[]): Resources {
  return nodes
    .filter((node) => !node.isMarkedForDeletion && labelsOf(node)['karpenter.sh/nodepool'] === pool)
    .map(capacityOf)
    .reduce(sum, {})
}

/** Where the pods of the cluster are, as far as rules about other pods need it. */
function topologyInput(context: OperatorContext, staying: readonly StateNode[]): TopologyInput {
  const { caches } = context
  const candidates = new Set(staying.map(({ node }) => node?.metadata.name))
  return {
    pods: caches.pods.list().filter((pod) => (pod.spec.nodeName ?? '') !== ''),
    nodes: new Map(
      caches.nodes.list().map((node) => [
        node.metadata.name,
        {
          hostname: node.metadata.labels?.['kubernetes.io/hostname'] ?? node.metadata.name,
          labels: node.metadata.labels ?? {},
          taints: node.spec?.taints ?? [],
          isCandidate: candidates.has(node.metadata.name),
        },
      ]),
    ),
    namespaces: new Map(
      caches.namespaces.list().map(({ metadata }) => [metadata.name, metadata.labels ?? {}]),
    ),
  }
}

/** One pod per DaemonSet: its newest, else what its template would make. */
function daemonInputs(context: OperatorContext): readonly DaemonInput[] {
  return context.caches.daemonSets
    .list()
    .filter((daemonSet) => daemonSet.metadata.deletionTimestamp === undefined)
    .map((daemonSet) => {
      const { spec } = daemonSet.spec.template
      const pods = context.caches.pods.byIndex(indexes.byOwner, daemonSet.metadata.uid ?? '')
      const newest = pods.toSorted((a, b) =>
        (b.metadata.creationTimestamp ?? '') < (a.metadata.creationTimestamp ?? '') ? -1 : 1,
      )[0]
      const base = newest?.spec ?? withRequestsFromLimits(spec)
      const { nodeAffinity, ...otherAffinity } = base.affinity ?? {}
      const required = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution
      const ownPin = newest === undefined ? nodeAffinity : undefined
      const affinity =
        required === undefined ? ownPin : { requiredDuringSchedulingIgnoredDuringExecution: required }
      const name = `${daemonSet.metadata.namespace ?? ''}/${daemonSet.metadata.name}`
      const { nodeName: _, ...unbound } = base
      return {
        name,
        spec: { ...unbound, affinity: { ...otherAffinity, ...(affinity && { nodeAffinity: affinity }) } },
      }
    })
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
}

/** Why no pool is eligible, for the log: the pools that are not ready and what they wait for. */
export function unreadyPools(context: OperatorContext): readonly string[] {
  return context.caches.nodePools
    .list()
    .filter((pool) => !isConditionTrue(pool, 'Ready'))
    .map((pool) => `${pool.metadata.name}: ${conditionOf(pool, 'Ready')?.message ?? 'not reconciled yet'}`)
    .toSorted()
}
