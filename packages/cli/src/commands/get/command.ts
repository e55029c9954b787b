import type { Command } from 'commander'
import type { GetFlags } from './run.ts'
import type { Io } from '../../io.ts'
import { withListFlags, withSelectionFlags, withSourceFlags, withWatchFlag } from '../../kubectl/flags.ts'
import { examples } from '../../command-line.ts'

export function addGet(program: Command, io: Io): void {
  const command = program
    .command('get')
    .summary('List nodes, NodeClaims, NodePools or pods with prices and reasons')
    .description(
      "Lists nodes, nodeclaims, nodepools or pods with kubectl's columns, and beside them what is asked for of what there is, the price per hour, and why each node is kept.",
    )
    .argument('[type]', 'TYPE, TYPE/NAME, or several types with commas')
    .argument('[names...]', 'names, or more of TYPE/NAME')
  withWatchFlag(withListFlags(withSelectionFlags(withSourceFlags(command))))
    .addHelpText(
      'after',
      examples(
        'tenon get nodes',
        'tenon get nodepools -o wide',
        'tenon get pods -A --field-selector status.phase=Pending',
        'tenon get nodes --snapshot week.tns --sort-by .metadata.creationTimestamp',
      ),
    )
    .action(async (type: string | undefined, names: readonly string[], flags: GetFlags) => {
      const { runGet } = await import('./run.ts')
      await runGet(io, type === undefined ? names : [type, ...names], flags)
    })
}
