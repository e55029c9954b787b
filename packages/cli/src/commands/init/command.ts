import type { Command } from 'commander'
import type { InitFlags } from './run.ts'
import type { Io } from '../../io.ts'
import { builtInProviders } from '../../providers.ts'
import { duration, examples } from '../../command-line.ts'

export function addInit(program: Command, io: Io): void {
  program
    .command('init')
    .summary('Write NodePools for the node groups that a cluster has')
    .description(
      'Looks at the nodes, node groups, pending pods and the Cluster Autoscaler of a cluster, and prints node classes and NodePools that launch the instance types in use and the next smaller and larger ones, with comments. Applies nothing. Settings of the provider are read from the environment, as the controller reads them.',
    )
    .option('--kubeconfig <path>', 'kubeconfig of the cluster (KUBECONFIG)')
    .option('--context <name>', 'context of the kubeconfig')
    .option(
      '--provider <name>',
      `${builtInProviders.map(({ name }) => name).join(', ')}, or a provider module (default: that of the nodes)`,
    )
    .option('--request-timeout <duration>', 'how long each request may take', duration, 30_000)
    .addHelpText(
      'after',
      examples('tenon init > pools.yaml', 'tenon validate pools.yaml', 'kubectl apply -f pools.yaml'),
    )
    .action(async (flags: InitFlags) => {
      const { runInit } = await import('./run.ts')
      await runInit(io, flags)
    })
}
