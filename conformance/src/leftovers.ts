import { karpenterKinds, kinds, type ResourceType } from '@tenon/api'
import { createKubeClient, loadKubeConfig } from '@tenon/kube'
import type { Clock } from '@tenon/runtime'
import { tearOut } from './cluster-api/installation.ts'
import { proofKinds } from './scheduling-proof/objects.ts'

/** Owners first: what is torn out before its owner comes back. */
const clearedKinds: readonly ResourceType[] = [
  proofKinds.deployment,
  proofKinds.daemonSet,
  proofKinds.replicaSet,
  kinds.pod,
  kinds.podDisruptionBudget,
  karpenterKinds.nodePool,
  karpenterKinds.nodeClaim,
  kinds.node,
]

/**
 * Removes the workloads and nodes that a file of the suite left behind, as it may when it fails or the host is busy:
 * the next one on the same control plane counts all nodes.
 * @returns them, such as `Node views-1`.
 */
export async function removeLeftovers(kubeconfigPath: string, clock: Clock): Promise<readonly string[]> {
  const config = loadKubeConfig({ env: {}, kubeconfig: kubeconfigPath, clock })
  const client = createKubeClient({ transport: config.transport, clock, userAgent: 'conformance' })
  try {
    const found: string[] = []
    for (const type of clearedKinds) found.push(...(await tearOut(client, type)))
    return found
  } finally {
    config.close()
  }
}
