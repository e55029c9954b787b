import type { Command } from 'commander'
import type { Io } from '../../io.ts'
import { controllerHelp } from '../../options/help.ts'
import { builtInProviders } from '../../providers.ts'

/** The command parses its own arguments: flags and exit codes are those of Karpenter. */
export function addController(program: Command, io: Io): void {
  program
    .command('controller')
    .summary('Run the autoscaler against a cluster')
    .helpOption(false)
    .allowUnknownOption()
    .argument('[options...]')
    .configureHelp({ formatHelp: () => controllerHelp(builtInProviders) })
    .action(async (options: readonly string[]) => {
      const { runController } = await import('./run.ts')
      await runController(io, options)
    })
}
