import { type Command, Option } from 'commander'
import type { ConsoleFlags } from './run.ts'
import type { Io } from '../../io.ts'
import { withSourceFlags } from '../../kubectl/flags.ts'
import { collect, duration, examples, port } from '../../command-line.ts'

export function addConsole(program: Command, io: Io): void {
  const command = program
    .command('console')
    .summary('Show the cluster on a page in the browser')
    .description(
      'Serves a page on this host alone, and prints a link that opens it once: price, map of the nodes, pending pods with what would let them run, NodePools, decisions, what a change would do, cost, and replays. It reads with your own rights, and changes nothing unless --allow-actions is given; then each action shows its command and asks.',
    )
    .option('--port <number>', 'port of the page; 0 for a free one', port, 0)
    .option('--open', 'open the link in the browser')
    .option('--allow-actions', 'let the page cordon, drain, delete, pause and apply, each after asking')
    .addOption(
      new Option('--drain-timeout <duration>', 'how long a drain tries')
        .argParser(duration)
        .default(60_000, '1m'),
    )
    .option('--trace <file>', 'recording of tenon record for the view Replay')
    .option('-f, --filename <path>', 'NodePools of a variant of the replay; can be repeated', collect, [])
  withSourceFlags(command)
    .addHelpText(
      'after',
      examples(
        'tenon console',
        'tenon console --open --context staging',
        'tenon console -s cluster.jsonl.gz',
        'tenon console --trace week.tnr -f pools.yaml',
      ),
    )
    .action(async (flags: ConsoleFlags) => {
      const { runConsole } = await import('./run.ts')
      await runConsole(io, flags)
    })
}
