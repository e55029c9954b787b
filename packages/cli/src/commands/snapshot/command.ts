import type { Command } from 'commander'
import type { Io } from '../../io.ts'
import { type SourceFlags, withSourceFlags } from '../../kubectl/flags.ts'
import { examples } from '../../command-line.ts'

export function addSnapshot(program: Command, io: Io): void {
  const snapshot = program
    .command('snapshot')
    .summary('Save a cluster as a file for offline questions')
    .description(
      'Saves all that decisions about a cluster read as one file, shows what a file holds, and hides names in it. Commands with -s answer from such a file.',
    )
    .addHelpText(
      'after',
      examples('tenon snapshot save cluster.jsonl.gz', 'tenon explain pods -A -s cluster.jsonl.gz'),
    )
  withSourceFlags(snapshot.command('save <file>'))
    .summary('Save the cluster')
    .description(
      'Writes the cluster to a file; names that end in .gz are compressed. It holds no Secrets, no ConfigMaps, and of pods only what scheduling reads.',
    )
    .addHelpText(
      'after',
      examples('tenon snapshot save cluster.jsonl.gz', 'tenon snapshot save cluster.jsonl'),
    )
    .action(async (file: string, flags: SourceFlags) => {
      const { runSnapshotSave } = await import('./run.ts')
      await runSnapshotSave(io, file, flags)
    })
  snapshot
    .command('show <file>')
    .summary('Show what a file holds')
    .description('Prints when and of what a snapshot was taken, and how many objects of each kind it holds.')
    .addHelpText('after', examples('tenon snapshot show cluster.jsonl.gz'))
    .action(async (file: string) => {
      const { runSnapshotShow } = await import('./run.ts')
      await runSnapshotShow(io, file)
    })
  snapshot
    .command('redact <file> <target>')
    .summary('Hide names in a copy of a file')
    .description(
      'Writes a copy in which names and label values are pseudonyms. Instance types, zones, quantities and well-known labels stay: decisions on the copy are the same.',
    )
    .option(
      '--key <text>',
      'the same key gives the same pseudonyms (TENON_REDACT_KEY; default: a random one)',
    )
    .addHelpText(
      'after',
      examples('tenon snapshot redact cluster.jsonl.gz shared.jsonl.gz --key "$(cat key)"'),
    )
    .action(async (file: string, target: string, flags: { readonly key?: string }) => {
      const { runSnapshotRedact } = await import('./run.ts')
      await runSnapshotRedact(io, file, target, flags)
    })
}
