import type { Command } from 'commander'
import type { ExplainFlags } from '../commands/explain.ts'
import type { Io } from '../io.ts'
import { withOutputFlags, withSelectionFlags, withSourceFlags } from '../kubectl/flags.ts'
import { examples } from './arguments.ts'

export function addExplain(program: Command, io: Io): void {
  const command = program
    .command('explain')
    .summary('Say why a pod waits, why a node is still there, what a NodePool waits for')
    .description(
      'Answers from the controller, or from the objects of the cluster if no controller can be asked. With a type and no name, pods that wait are gathered by their reasons.',
    )
    .argument('<target...>', 'TYPE NAME… or TYPE/NAME…; types are pod (po), node (no), nodeclaim, nodepool')
  withOutputFlags(withSelectionFlags(withSourceFlags(command)))
    .addHelpText(
      'after',
      examples(
        'tenon explain pod web-0 -n shop',
        'tenon explain pods -A',
        'tenon explain node/node-1 nodepool/web',
        'tenon explain nodepool web -s cluster.jsonl.gz -o yaml',
      ),
    )
    .action(async (targets: readonly string[], flags: ExplainFlags) => {
      const { runExplain } = await import('../commands/explain.ts')
      await runExplain(io, targets, flags)
    })
}
