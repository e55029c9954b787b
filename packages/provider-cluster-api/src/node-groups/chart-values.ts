/** Values of the chart for the node groups of a management cluster, for `tenon init --mode cluster-autoscaler`. */
import type { Node } from '@tenon/api'
import type { NodeGroupPreflightDependencies, NodeGroupValues } from '@tenon/provider'
import { clusterNameOf } from './discovery.ts'
import { hubScopeOf, resourcesIn, servedHub } from './hub-look.ts'
import { clusterOfNode } from './node-lookup.ts'
import { boundsOf, groupIdOf } from './scalable.ts'

const kubeconfigSecret = 'management-kubeconfig'

/** Mounts the kubeconfig of the management cluster where the chart expects it. */
const managementValues = {
  clusterAPIMode: 'incluster-kubeconfig',
  extraVolumeSecrets: {
    management: {
      name: kubeconfigSecret,
      mountPath: '/etc/kubernetes',
      items: [{ key: 'value', path: 'mgmt-kubeconfig' }],
    },
  },
}

export async function groupChartValues(
  dependencies: NodeGroupPreflightDependencies,
  nodes: readonly Node[],
  signal: AbortSignal,
): Promise<NodeGroupValues> {
  const scope = hubScopeOf(dependencies)
  const { names, specs, hub } = scope
  const served = await servedHub(scope, signal)
  if (served.kind === 'missing') return { remarks: [`Nothing is scaled: ${served.problem}.`] }
  const { found, unread } = await resourcesIn(scope, served, signal)
  const unreadRemarks = unread.map(({ what, why }) => `${what} cannot be read: ${why}.`)
  const own = new Set(nodes.flatMap((node) => clusterOfNode(node, names) ?? []))
  const seen = found.flatMap(({ ref, object }) => {
    const clusterName = clusterNameOf(object, names)
    if (own.size > 0 && !own.has(`${ref.namespace}/${clusterName}`)) return []
    return { ref, clusterName, bounds: boundsOf(object, names) }
  })
  const groups = seen.filter(({ bounds }) => bounds.kind === 'bounds')
  const others = seen.filter(({ bounds }) => bounds.kind === 'none')
  const remarks = [
    ...unreadRemarks,
    ...groups.map(({ ref, bounds }) =>
      bounds.kind === 'bounds' ? `Scaled: ${groupIdOf(ref)}, ${bounds.min} to ${bounds.max} nodes.` : '',
    ),
    ...seen.flatMap(({ ref, bounds }) =>
      bounds.kind === 'invalid' ? [`Left out: ${groupIdOf(ref)}: ${bounds.reason}.`] : [],
    ),
    ...others.map(
      ({ ref }) =>
        `Not scaled: ${groupIdOf(ref)}, which gets bounds with kubectl --namespace ${ref.namespace} annotate ${ref.kind.toLowerCase()} ${ref.name} ${names.minSize}=MIN ${names.maxSize}=MAX.`,
    ),
  ]
  // The chart has one value of the flag: what it must name is what all groups have in common.
  const clusters = [...new Set((groups.length > 0 ? groups : seen).map(({ clusterName }) => clusterName))]
  const namespaces = [...new Set((groups.length > 0 ? groups : seen).map(({ ref }) => ref.namespace))]
  const [spec] = specs
  const clusterName = spec?.clusterName ?? (clusters.length === 1 ? clusters[0] : undefined)
  const namespace = spec?.namespace ?? (namespaces.length === 1 ? namespaces[0] : undefined)
  const labels = Object.entries(spec?.labels ?? {}).map(([key, value]) => ({ [key]: value }))
  const autoDiscovery = {
    ...(clusterName !== undefined && clusterName !== '' && { clusterName }),
    ...(namespace !== undefined && { namespace }),
    ...(labels.length > 0 && { labels }),
  }
  if (Object.keys(autoDiscovery).length === 0)
    return {
      remarks: [
        ...remarks,
        clusters.length > 1
          ? `Name one of the Clusters ${clusters.join(', ')} with --node-group-auto-discovery=clusterapi:namespace=NAMESPACE,clusterName=NAME: no Node tells which of them this is.`
          : `There is no MachineDeployment, MachineSet or MachinePool in ${hub.server}.`,
      ],
    }
  if (hub === dependencies.clusters.workload) return { values: { autoDiscovery }, remarks }
  return {
    values: { autoDiscovery, ...managementValues },
    remarks: [
      ...remarks,
      `The management cluster is ${hub.server}. Its kubeconfig is taken from a Secret:`,
      `kubectl -n kube-system create secret generic ${kubeconfigSecret} --from-file=value=FILE`,
    ],
  }
}
