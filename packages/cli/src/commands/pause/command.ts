import type { Command } from 'commander'
import type { PauseFlags, ResumeFlags } from './run.ts'
import type { Io } from '../../io.ts'
import { withClusterFlags } from '../../kubectl/flags.ts'
import { duration, examples } from '../../command-line.ts'
import { withDryRun } from '../../kubectl/dry-run.ts'

export function addPause(program: Command, io: Io): void {
  const command = program
    .command('pause')
    .summary('Pause disruption of the cluster or of NodePools')
    .description(
      'Pauses voluntary disruption (consolidation, drift, emptiness), within a second: of the whole cluster, or of the NodePools that are named. Commands under way are taken back. Expiration, repair and deletions by people go on unless included. docs/ask/pause.md says how to do the same with kubectl.',
    )
    .argument('[nodepool...]', 'NAME…, nodepool/NAME… or nodepool NAME…; the whole cluster without')
    .option('--for <duration>', 'end of the pause, such as 2h from now (default: none)', duration)
    .option('--reason <text>', 'why, for those who wonder')
    .option('--all', 'launches as well')
    .option('--including <list>', 'expiration,repair')
    .option('-n, --namespace <name>', 'namespace of the controller (default: that of the one that leads)')
    .addHelpText(
      'after',
      examples(
        'tenon pause --for 2h --reason "incident 42"',
        'tenon pause nodepool/web',
        'tenon pause --all --including expiration,repair',
      ),
    )
    .action(async (targets: readonly string[], flags: PauseFlags) => {
      const { runPause } = await import('./run.ts')
      await runPause(io, targets, flags)
    })
  withClusterFlags(withDryRun(command))
}

export function addResume(program: Command, io: Io): void {
  const command = program
    .command('resume')
    .summary('End a pause')
    .description(
      'Ends the pause of the whole cluster, or those of the NodePools that are named, also those that Tenon began by itself.',
    )
    .argument('[nodepool...]', 'NAME…, nodepool/NAME… or nodepool NAME…; the whole cluster without')
    .option('-n, --namespace <name>', 'namespace of the controller (default: that of the one that leads)')
    .addHelpText('after', examples('tenon resume', 'tenon resume nodepool/web'))
    .action(async (targets: readonly string[], flags: ResumeFlags) => {
      const { runResume } = await import('./run.ts')
      await runResume(io, targets, flags)
    })
  withClusterFlags(withDryRun(command))
}
