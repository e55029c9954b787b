/** Writes the replicas of a Cluster's topology to its MachineDeployments. */
import { ownValue } from '@tenon/api'
import type { LocalApi } from '@tenon/devcluster'
import { type HubParts, isPaused } from '../hub-parts.ts'

/**
 * One pass over a MachineDeployment.
 * @param hub with the field manager of the controller.
 */
export function reconcileTopology(
  parts: HubParts,
  hub: LocalApi,
  namespace: string,
  name: string,
): undefined {
  const { kinds, names } = parts
  const deployment = hub.get(kinds.deployment, namespace, name)
  if (deployment === undefined || isPaused(parts, deployment)) return
  const cluster = hub.get(kinds.cluster, namespace, deployment.spec?.clusterName ?? '')
  const topologyName = ownValue(deployment.metadata.labels, `topology.${names.group}/deployment-name`)
  const wanted = cluster?.spec?.topology?.workers?.machineDeployments?.find(
    (each) => each.name === topologyName,
  )
  // Without replicas in the topology, the autoscaler owns them.
  if (wanted?.replicas === undefined || wanted.replicas === deployment.spec?.replicas) return
  hub.patch(kinds.deployment, namespace, name, { spec: { replicas: wanted.replicas } })
}
