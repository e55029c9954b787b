/** `tenon init --mode cluster-autoscaler`: values of the chart cluster-autoscaler for the node groups that there are. */
import { kinds } from '@tenon/api'
import { type AccessRight, createAccessReviews } from '@tenon/kube'
import { stringify } from 'yaml'
import { CliError } from '../../errors.ts'
import type { Io } from '../../io.ts'
import type { ClusterConnection } from '../../kubectl/connection.ts'
import { autoscalerIn, deploymentKind } from '../../source/autoscalers.ts'
import {
  type NodeGroupFlags,
  type RunningClusterAutoscaler,
  withNodeGroupCloud,
} from '../../source/node-group-cloud.ts'
import { comment } from './manifests.ts'

/**
 * The values file.
 * @throws CliError if the cloud is not known, or there is no node group. KubeError if a cluster cannot be read.
 */
export async function chartValuesOf(
  io: Io,
  { client, config, clock }: ClusterConnection,
  flags: NodeGroupFlags,
  requestTimeoutMs: number,
): Promise<string> {
  const signal = io.interrupted
  const [nodes, deployments] = await Promise.all([
    client.list(kinds.node, { signal }),
    client.list(deploymentKind, { signal }),
  ])
  const running = deployments
    .map(autoscalerIn)
    .find((each): each is RunningClusterAutoscaler => each?.kind === 'clusterAutoscaler')
  const reviews = createAccessReviews({ transport: config.transport, clock })
  const workload = {
    client,
    server: config.server,
    who: 'you',
    isAllowed: (right: AccessRight, ending: AbortSignal) => reviews.isAllowed(right, undefined, ending),
  }
  return await withNodeGroupCloud(
    { io, flags, running, workload, nodes, clock, requestTimeoutMs },
    async ({ name, module, nodeGroups, dependencies }) => {
      const { values, remarks } = await nodeGroups.chartValues(dependencies, nodes, signal)
      if (values === undefined)
        throw new CliError(
          `there is no node group to write values for${remarks.map((each) => `; ${each}`).join('')}`,
        )
      const head = [
        `Written by tenon init for ${config.server} (${module.title}). Nothing has been applied.`,
        'Read it, check the cluster with tenon preflight --mode cluster-autoscaler, then install it:',
        'helm upgrade --install cluster-autoscaler charts/cluster-autoscaler -n kube-system -f values.yaml',
        ...remarks,
      ]
      const text = stringify({ cloudProvider: name, ...values }, { lineWidth: 0 })
      return `${head.map((each) => `${comment(each)}\n`).join('')}${text}`
    },
  )
}
