import { type Command, InvalidArgumentError, Option } from 'commander'
import type { MigrateFlags } from './run.ts'
import type { Io } from '../../io.ts'
import { duration, examples } from '../../command-line.ts'
import { withClusterFlags } from '../../kubectl/flags.ts'

export function addMigrate(program: Command, io: Io): void {
  const command = program
    .command('migrate')
    .summary('Move workloads from a node group to a NodePool, or back')
    .description(
      'Prints a plan: which nodes go in which order, which pods move, which nodes stay and why, and prices. With --yes it cordons the nodes of the source, drains one after the other under PodDisruptionBudgets, waits until the pods run elsewhere, and removes each drained node. It stops at the first pod that does not come back. A second run goes on where the first ended. docs/migrate.md is the guide.',
    )
    .requiredOption('--from <side...>', 'kind and name: nodepool NAME, or sks-nodepool NAME')
    .requiredOption('--to <side...>', 'kind and name of the other side')
    .option('-y, --yes', 'carry the plan out')
    .option('--nodes <number>', 'size that the node group gets on the way back (default: what it had)', size)
    .addOption(
      new Option('-o, --output <format>', 'json: one object a line, first the plan')
        .choices(['text', 'json'])
        .default('text'),
    )
    .addOption(
      new Option('--timeout <duration>', 'stop if nothing changes for this long')
        .argParser(duration)
        .default(600_000, '10m'),
    )
    .addHelpText(
      'after',
      examples(
        'tenon migrate --from sks-nodepool workers --to nodepool general',
        'tenon migrate --from sks-nodepool workers --to nodepool general --yes',
        'tenon migrate --from nodepool general --to sks-nodepool workers --yes',
        'tenon migrate --from sks-nodepool workers --to nodepool general -o json | jq .turns',
      ),
    )
    .action(async (flags: MigrateFlags) => {
      const { runMigrate } = await import('./run.ts')
      await runMigrate(io, flags)
    })
  withClusterFlags(command)
}

function size(value: string): number {
  const number = Number(value)
  if (!Number.isInteger(number) || number < 1 || number > 10_000)
    throw new InvalidArgumentError('Use a number of nodes from 1 to 10000.')
  return number
}
