/** Nodes of the control plane, which are part of the cluster in some topologies (clever-cloud.md 2.3, 20). */
import { builtInFlavors, platformLabels } from '@tenon/provider-clever-cloud'
import type { InstanceHost } from './group-instances.ts'
import type { QuotaAmount } from './settings.ts'

/** The nodes of the API server. */
export interface ControlPlane {
  /** Its nodes in the cluster, which accept pods; 0 if it is outside the cluster. */
  readonly nodes: number
  /** Its share of the quota, wherever it runs. */
  readonly counts: QuotaAmount
}

/** Three nodes of flavor S outside the cluster. */
export const outside: ControlPlane = { nodes: 0, counts: { cpu: 24, memoryGb: 24 } }

/** The same three nodes as part of the cluster. */
export const inside: ControlPlane = { ...outside, nodes: 3 }

/** Starts its nodes; the returned function stops them. */
export function startControlPlane(host: InstanceHost, nodes: number): () => void {
  const flavor = builtInFlavors.find(({ name }) => name === 'S')
  if (flavor === undefined) throw new Error('there is no flavor S')
  const labels = { [platformLabels.flavor]: flavor.name, [platformLabels.role]: 'control-plane' }
  const traits = { labels, taints: [], isNeverReady: false, memoryPercent: 100 }
  const kubelets = Array.from({ length: nodes }, (_, number) =>
    host.boot({ nodeName: `control-plane-node${number}`, flavor }, traits),
  )
  return () => {
    for (const kubelet of kubelets) kubelet.stop()
  }
}
