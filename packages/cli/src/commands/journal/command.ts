import type { Command } from 'commander'
import type { JournalFlags } from './run.ts'
import type { Io } from '../../io.ts'
import { withListFlags, withSourceFlags, withWatchFlag } from '../../kubectl/flags.ts'
import { duration, examples } from '../../command-line.ts'

export function addJournal(program: Command, io: Io): void {
  const command = program
    .command('journal')
    .summary('Print what the controller did, and why')
    .description(
      'Prints decisions, launches, moves, removals, refusals and failures of the leading controller, oldest first, with reasons and prices. The controller keeps at least the last 24 hours of 1000 moves a day, and more on disk with --journal-path.',
    )
    .option('--since <duration>', 'only entries that are not older, such as 1h (default: all)', duration)
    .option('--node <name>', 'only what is about this Node or NodeClaim, also one that is gone')
    .option('--nodepool <name>', 'only what is about this NodePool')
    .option('--observed', 'only what was decided and not carried out (observe only)')
    .option('--savings', 'what moves have saved until now, by day, beside what they were expected to save')
  withWatchFlag(withListFlags(withSourceFlags(command)))
    .addHelpText(
      'after',
      examples(
        'tenon journal --since 1h',
        'tenon journal --node pool-a-x7k2p',
        'tenon journal -w -o json | jq .reason',
        'tenon journal --savings --observed',
      ),
    )
    .action(async (flags: JournalFlags) => {
      const { runJournal } = await import('./run.ts')
      await runJournal(io, flags)
    })
}
