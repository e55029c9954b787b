import { type Command, InvalidArgumentError, Option } from 'commander'
import type { Io } from '../../io.ts'
import { withSourceFlags } from '../../kubectl/flags.ts'
import type { ViewFlags } from './flags.ts'
import { duration, examples } from '../../command-line.ts'

export function addView(program: Command, io: Io): void {
  const command = program
    .command('view')
    .summary('Watch nodes, claims, pods, prices and decisions in the terminal')
    .description(
      'Shows nodes with what pods ask for, prices and why each is kept, NodeClaims on their way, NodePools, pods that wait, decisions as they are made, and costs. Reads with your own rights and changes nothing, unless started with --allow-actions. Without a terminal it prints a line a change. Flags and ~/.eks-node-viewer are those of eks-node-viewer.',
    )
  withSourceFlags(command, false)
    .addOption(
      new Option(
        '-v, --verbosity [level]',
        'alone: print the version; with 6 to 9, requests are told on stderr',
      ).argParser(verbosity),
    )
    .option('--node-selector <query>', 'only nodes with these labels, such as karpenter.sh/nodepool=web')
    .option('--extra-labels <list>', 'labels of nodes to show as columns')
    .option('--node-sort <order>', 'creation or a label, with =asc or =dsc (default: creation=dsc)')
    .option('--resources <list>', 'resources to show, such as cpu,memory,nvidia.com/gpu (default: cpu)')
    .option('--style <colors>', 'three colours for good, middling and bad, such as #04B575,#FFFF00,#FF0000')
    .option('--disable-pricing', 'show no prices')
    .option('--attribution', 'name the licence, and end')
    .addOption(
      new Option('--color <when>', 'colours, or how many: never with NO_COLOR, unless asked for')
        .choices(['auto', 'always', 'never', '16', '256', 'true'])
        .default('auto'),
    )
    .option('--trace <file>', 'look at a recording of tenon record, with a slider over its time')
    .option('--once', 'print one table, and end')
    .addOption(new Option('-o, --output <format>', 'print one state in this form, and end').choices(['json']))
    .option('--allow-actions', 'let keys cordon, drain, pause and delete; each shows its command, and asks')
    .addOption(
      new Option('--drain-timeout <duration>', 'how long a drain tries')
        .argParser(duration)
        .default(60_000, '1m'),
    )
    .addHelpText(
      'after',
      examples(
        'tenon view',
        'tenon view --resources cpu,memory --extra-labels topology.kubernetes.io/zone',
        'tenon view --once',
        'tenon view -o json | jq .header',
        'tenon view -s cluster.jsonl.gz',
        'tenon view --trace week.tnr',
      ),
    )
    .action(async (flags: ViewFlags) => {
      const { runView } = await import('./run.ts')
      await runView(io, flags)
    })
}

function verbosity(value: string): number {
  const level = Number(value.replace(/^=/, ''))
  if (!Number.isInteger(level) || level < 0 || level > 9)
    throw new InvalidArgumentError('Use a level from 0 to 9.')
  return level
}
