import { type Command, InvalidArgumentError, Option } from 'commander'
import type { ReplayFlags } from './run.ts'
import type { Io } from '../../io.ts'
import { collect, duration, examples } from '../../command-line.ts'

export function addReplay(program: Command, io: Io): void {
  program
    .command('replay <file>')
    .summary('Play a recording on virtual time, under other rules, and compare what it costs')
    .description(
      'Plays what tenon record wrote, with a simulated cloud and scheduler: as it was, and once for each -f, --compatibility and --price-file. Compares price, pending times, evictions, launches and nodes with what was recorded. Needs no cluster. The same file and seed give the same result.',
    )
    .option('-f, --filename <path>', 'NodePools in place of the recorded ones; can be repeated', collect, [])
    .addOption(new Option('--compatibility <mode>', 'decide as Karpenter does, too').choices(['karpenter']))
    .option('--price-file <path>', 'JSON with prices per hour by instance type; can be repeated', collect, [])
    .option('--node-boot <duration>', 'from launch to Ready of each node', duration, 60_000)
    .option('--pod-start <duration>', 'from binding to Ready of each pod', duration, 5_000)
    .option('--seed <number>', 'of what is left to chance', seed, 1)
    .addOption(
      new Option('-o, --output <format>', 'output format').choices(['table', 'json']).default('table'),
    )
    .addHelpText(
      'after',
      examples(
        'tenon replay week.tnr',
        'tenon replay week.tnr -f pools.yaml --compatibility karpenter',
        'tenon replay week.tnr --price-file prices.json -o json',
      ),
    )
    .action(async (file: string, flags: ReplayFlags) => {
      const { runReplay } = await import('./run.ts')
      await runReplay(io, file, flags)
    })
}

function seed(value: string): number {
  const number = Number(value)
  if (!Number.isInteger(number) || number < 0) throw new InvalidArgumentError('Use a number from 0 on.')
  return number
}
