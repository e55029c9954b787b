import type { Command } from 'commander'
import type { ExplainFlags } from './run.ts'
import type { Io } from '../../io.ts'
import { withOutputFlags, withSelectionFlags, withSourceFlags } from '../../kubectl/flags.ts'
import { examples } from '../../command-line.ts'

export function addExplain(program: Command, io: Io): void {
  const command = program
    .command('explain')
    .summary(
      'Say why a pod, a workload or a gang waits, why a node is still there, what a NodePool waits for',
    )
    .description(
      'Answers from the controller, or from the objects of the cluster if no controller can be asked. Without NodePools, pods, nodes and node groups are explained from what the Cluster Autoscaler mode has written. With a type and no name, pods that wait are gathered by their reasons. A workload is told with its pods, where one more would run, and what it costs. -o patch prints the changes that would let pods run as commands of kubectl; apply one of them, not all.',
    )
    .argument(
      '<type>',
      'TYPE or TYPE/NAME; types are pod (po), deployment (deploy), statefulset (sts), daemonset (ds), replicaset (rs), job, node (no), nodeclaim, nodepool, podgroup (pg), provisioningrequest (provreq), nodegroup (ng)',
    )
    .argument('[names...]', 'names, or more of TYPE/NAME')
    .option('--stuck', 'only nodes that PodDisruptionBudgets hold which can never allow an eviction')
    .option('--all', 'every change that would let a pod run; otherwise the three cheapest')
  withOutputFlags(withSelectionFlags(withSourceFlags(command)))
    .addHelpText(
      'after',
      examples(
        'tenon explain pod web-0 -n shop',
        'tenon explain pods -A',
        'tenon explain deployment web -n shop',
        'tenon explain podgroup train -n ml',
        'tenon explain node/node-1 nodepool/web',
        'tenon explain nodes --stuck',
        'tenon explain nodepool web -s cluster.jsonl.gz -o yaml',
        'tenon explain pod web-0 -o patch',
        'tenon explain nodegroup MachineDeployment/default/md-0',
      ),
    )
    .action(async (type: string, names: readonly string[], flags: ExplainFlags) => {
      const { runExplain } = await import('./run.ts')
      await runExplain(io, [type, ...names], flags)
    })
}
