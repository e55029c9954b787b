import { type Command, Option } from 'commander'
import type { CostFlags } from './run.ts'
import type { Io } from '../../io.ts'
import { withOutputFlags, withSourceFlags } from '../../kubectl/flags.ts'
import { examples } from '../../command-line.ts'

export function addCost(program: Command, io: Io): void {
  const command = program
    .command('cost')
    .summary('Tell what the cluster costs, and whom it serves')
    .description(
      'Tells what the instances cost per hour and per month of 730 hours, by what pods ask for, with what nobody asks for apart. With --since it adds up what was paid, from the journal. Prices that are not known are counted, and in no sum.',
    )
    .addOption(
      new Option('--by <dimension>', 'what to gather by')
        .choices(['nodepool', 'namespace', 'owner', 'type', 'zone'])
        .default('nodepool'),
    )
    .option('--since <duration>', 'what was paid over this time, such as 24h')
  withOutputFlags(withSourceFlags(command))
    .addHelpText(
      'after',
      examples(
        'tenon cost',
        'tenon cost --by namespace',
        'tenon cost --since 24h',
        'tenon cost --by owner -o json',
      ),
    )
    .action(async (flags: CostFlags) => {
      const { runCost } = await import('./run.ts')
      await runCost(io, flags)
    })
}
