import type { Command } from 'commander'
import type { InitFlags } from './run.ts'
import type { Io } from '../../io.ts'
import { builtInProviders } from '../../providers.ts'
import { duration, examples } from '../../command-line.ts'
import { addNodeGroupOptions } from '../../source/node-group-options.ts'

export function addInit(program: Command, io: Io): void {
  const command = program
    .command('init')
    .summary('Write NodePools, or chart values, for the node groups that a cluster has')
    .description(
      'Looks at the nodes, node groups, pending pods and the Cluster Autoscaler of a cluster, and prints node classes and NodePools that launch the instance types in use and the next smaller and larger ones, with comments. With --mode cluster-autoscaler prints values of the chart cluster-autoscaler, which scales those node groups. Applies nothing. Settings of the provider are read from the environment, as the controller reads them.',
    )
    .option('--kubeconfig <path>', 'kubeconfig of the cluster (KUBECONFIG)')
    .option('--context <name>', 'context of the kubeconfig')
    .option(
      '--provider <name>',
      `${builtInProviders.map(({ name }) => name).join(', ')}, or a provider module (default: that of the nodes)`,
    )
  addNodeGroupOptions(command)
    .option('--request-timeout <duration>', 'how long each request may take', duration, 30_000)
    .addHelpText(
      'after',
      examples(
        'tenon init > pools.yaml',
        'tenon validate pools.yaml',
        'kubectl apply -f pools.yaml',
        'tenon init --mode cluster-autoscaler > values.yaml',
      ),
    )
    .action(async (flags: InitFlags) => {
      const { runInit } = await import('./run.ts')
      await runInit(io, flags)
    })
}
