import type { Command } from 'commander'
import type { Io } from '../../io.ts'

/** The command parses its own arguments: flags and exit codes are those of Cluster Autoscaler. */
export function addClusterAutoscaler(program: Command, io: Io): void {
  program
    .command('cluster-autoscaler')
    .summary('Scale node groups with the flags of Cluster Autoscaler')
    .helpOption(false)
    .allowUnknownOption()
    .argument('[flags...]')
    .action(async (flags: readonly string[]) => {
      const { runClusterAutoscaler } = await import('./run.ts')
      await runClusterAutoscaler(io, flags)
    })
}
