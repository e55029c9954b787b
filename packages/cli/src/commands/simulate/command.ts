import type { Command } from 'commander'
import type { SimulateFlags } from './run.ts'
import type { Io } from '../../io.ts'
import { withOutputFlags, withSourceFlags } from '../../kubectl/flags.ts'
import { collect, couldNotRun, duration, examples, exitWith } from '../../command-line.ts'

export function addSimulate(program: Command, io: Io): void {
  const command = program
    .command('simulate')
    .summary('Show what a change would do to pods, nodes and price')
    .description(
      'Applies changes to a copy of the cluster and decides again. Nothing is written to the cluster or to the cloud. With --for, the cluster is played on virtual time, consolidation included.',
    )
    .option('-f, --filename <path>', 'file or directory with changed manifests; can be repeated', collect, [])
    .option('--delete <object>', 'object that goes, such as nodepool/old; can be repeated', collect, [])
    .option(
      '--scale <workload>',
      'replicas of a workload, such as deployment/web=500 or deployment/shop/web=500; can be repeated',
      collect,
      [],
    )
    .option('--for <duration>', 'play the cluster for this long, such as 24h', duration)
    .option(
      '--observe',
      'what Tenon would do to a cluster that another autoscaler runs, within an hour or --for',
    )
    .option('--diff', 'nodes as a diff by NodePool and instance type')
    .option('--exit-code', 'exit with 0 if nothing changes, 1 if something does, 2 on failure')
  withOutputFlags(withSourceFlags(command))
    .addHelpText(
      'after',
      examples(
        'tenon simulate -f nodepool.yaml',
        'tenon simulate --delete nodepool/old --scale deployment/shop/web=500',
        'tenon simulate -f nodepool.yaml --for 24h -s cluster.jsonl.gz',
      ),
    )
    .exitOverride(couldNotRun)
    .action(async (flags: SimulateFlags) => {
      const { runSimulate } = await import('./run.ts')
      exitWith(await runSimulate(io, flags))
    })
}
