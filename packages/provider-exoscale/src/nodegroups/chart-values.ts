/** Values of the chart for the nodepools and Instance Pools of a cluster, for `tenon init --mode cluster-autoscaler`. */
import type { Node } from '@tenon/api'
import type { NodeGroupPreflightDependencies, NodeGroupValues, ProviderEnvironment } from '@tenon/provider'
import type { Transport } from '@tenon/runtime'
import { surveyModuleOver } from '../survey/survey.ts'
import { parseSpec, specOf } from './specs.ts'

/** The maximum of groups that no `--nodes` gives one. */
const usualMaximum = 10

export async function groupChartValues(
  { env, clusters, nodeGroupSpecs, allowsEmptyGroups, runtime, userAgent }: NodeGroupPreflightDependencies,
  nodes: readonly Node[],
  connect: (endpoint: string, env: ProviderEnvironment) => Transport,
  signal: AbortSignal,
): Promise<NodeGroupValues> {
  const { clock, logger } = runtime
  const { groups, remarks } = await surveyModuleOver(connect).survey(
    { env, kube: clusters.workload.client, nodes, clock, logger, userAgent },
    signal,
  )
  const specs = nodeGroupSpecs.map((text) => parseSpec(text, allowsEmptyGroups ? 0 : 1))
  const guessed: string[] = []
  const autoscalingGroups = groups.map(({ name, otherNames, size = 1 }) => {
    const found = specOf(specs, [name, ...otherNames])
    if (found.kind === 'found') return { name, minSize: found.spec.min, maxSize: found.spec.max }
    guessed.push(name)
    return { name, minSize: 1, maxSize: Math.max(usualMaximum, size) }
  })
  if (autoscalingGroups.length === 0) return { remarks }
  return {
    values: { autoscalingGroups, secretKeyRefNameOverride: 'exoscale-api-credentials' },
    remarks: [
      ...remarks,
      ...(guessed.length === 0
        ? []
        : [`No --nodes gives bounds to ${guessed.join(', ')}: write minSize and maxSize as you want them.`]),
      'The Secret exoscale-api-credentials is printed by examples/cluster-autoscaler/secret.sh.',
    ],
  }
}
