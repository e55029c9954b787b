import { type Command, Option } from 'commander'
import type { ReportFlags } from './run.ts'
import type { Io } from '../../io.ts'
import { withSourceFlags } from '../../kubectl/flags.ts'
import { duration, examples } from '../../command-line.ts'

export function addReport(program: Command, io: Io): void {
  const command = program
    .command('report')
    .summary('Report what a cluster costs, what it could cost, and what stands in the way')
    .description(
      'Reads a cluster, whoever adds its nodes, and reports what it costs now, what Tenon would have it cost, what stands in the way, and what may go wrong. Needs only the right to read, and nothing installed. Prices that are not known are counted, and in no sum.',
    )
    .addOption(
      new Option('-o, --output <format>', 'default: by the name of --file, else markdown').choices([
        'markdown',
        'html',
        'json',
      ]),
    )
    .option('--file <path>', 'write the report to a file')
    .option('--prices <path>', 'JSON file with prices per hour by instance type, in place of all others')
    .option(
      '--shadow',
      'what Tenon would have done beside the autoscaler that runs, from its journal (observe only)',
    )
    .option('--since <duration>', 'with --shadow: only this long ago, such as 24h (default: all)', duration)
    .option('--journal <path>', 'with --shadow: a directory of --journal-path, or one of its files')
    .option('--redact', 'pseudonyms instead of names; the same ones with the same TENON_REDACT_KEY')
  withSourceFlags(command)
    .addHelpText(
      'after',
      examples(
        'tenon report --file report.html',
        'tenon report --prices prices.json',
        'tenon report -s cluster.jsonl.gz -o json',
        'tenon report --shadow --since 168h --file shadow.html',
      ),
    )
    .action(async (flags: ReportFlags) => {
      const { runReport } = await import('./run.ts')
      await runReport(io, flags)
    })
}
