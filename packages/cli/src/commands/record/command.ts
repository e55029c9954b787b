import { type Command, InvalidArgumentError } from 'commander'
import type { RecordFlags } from './run.ts'
import type { Io } from '../../io.ts'
import { withClusterFlags } from '../../kubectl/flags.ts'
import { duration, examples } from '../../command-line.ts'

export function addRecord(program: Command, io: Io): void {
  const command = program
    .command('record')
    .summary('Record the workloads and nodes of a cluster, to replay them under other rules')
    .description(
      'Follows a cluster, whoever autoscales it, and notes in a file which pods came and went and which nodes there were, with type and price. Reads only. Ends after --for, or on Ctrl-C.',
    )
    .requiredOption('-o, --output <file>', 'file to write', fileName)
    .option('--for <duration>', 'how long to record, such as 24h or 168h', duration)
    .option('--append', 'go on with a recording; the time between is noted as a gap')
    .option('--redact', 'note pseudonyms in place of names and label values')
    .option(
      '--key <text>',
      'with --redact: the same key gives the same pseudonyms (TENON_REDACT_KEY; default: a random one)',
    )
  withClusterFlags(command)
    .addHelpText(
      'after',
      examples(
        'tenon record -o week.tnr --for 168h',
        'tenon record -o week.tnr --append',
        'tenon record -o week.tnr --redact --key "$(cat key)"',
      ),
    )
    .action(async (flags: RecordFlags) => {
      const { runRecord } = await import('./run.ts')
      await runRecord(io, flags)
    })
}

/** Rejects `-o json`, which is what other commands accept. */
function fileName(value: string): string {
  if (['json', 'yaml', 'table', 'wide', 'name'].includes(value))
    throw new InvalidArgumentError('Use the name of a file, such as week.tnr.')
  return value
}
