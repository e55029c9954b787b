import type { Command } from 'commander'
import type { TestFlags } from './run.ts'
import type { Io } from '../../io.ts'
import { couldNotRun, examples, exitWith } from '../../command-line.ts'

export function addTest(program: Command, io: Io): void {
  program
    .command('test')
    .summary('Test NodePools offline, in CI')
    .description(
      'Runs the cases in files named *.tenon-test.yaml: given NodePools and a catalogue, when pods come, then these expectations hold. Exits with 0 if all hold, 1 if a case failed, 2 if a case could not be run. `tenon test init FILE…` writes a commented example for the NodePools of those files to standard output.',
    )
    .argument('<path...>', 'files or directories')
    .option('-o, --output <format>', 'text, json or tap', 'text')
    .option('--junit <file>', 'write the results as JUnit XML, too')
    .option('--update', 'write what was observed where a case says expect: {}')
    .option('-w, --watch', 'run again whenever a file changes, until Ctrl-C')
    .addHelpText(
      'after',
      examples(
        'tenon test nodepools/',
        'tenon test nodepools/ --junit report.xml',
        'tenon test init nodepool.yaml',
      ),
    )
    .exitOverride(couldNotRun)
    .action(async (paths: readonly string[], flags: TestFlags) => {
      const { runTest } = await import('./run.ts')
      exitWith(await runTest(io, paths, flags))
    })
}
