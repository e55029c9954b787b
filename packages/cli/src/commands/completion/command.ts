import { Argument, type Command } from 'commander'
import { completionScripts, type Shell, shells } from './scripts.ts'
import type { Io } from '../../io.ts'
import { examples } from '../../command-line.ts'

export function addCompletion(program: Command, io: Io): void {
  program
    .command('completion')
    .summary('Print the completion script of a shell')
    .description('Prints a script that completes commands, flags, and the names of objects in the cluster.')
    .addArgument(new Argument('<shell>', 'shell').choices(shells))
    .addHelpText(
      'after',
      examples(
        'source <(tenon completion bash)',
        'source <(tenon completion zsh)',
        'tenon completion fish | source',
      ),
    )
    .action((shell: Shell) => {
      io.out(completionScripts[shell])
    })
  program
    .command('__complete', { hidden: true })
    .argument('[words...]')
    .allowUnknownOption()
    .action(async (words: readonly string[]) => {
      const { runComplete } = await import('./run.ts')
      await runComplete(io, program, words)
    })
}
