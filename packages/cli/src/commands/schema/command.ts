import type { Command } from 'commander'
import type { Io } from '../../io.ts'
import { examples } from '../../command-line.ts'

export function addSchema(program: Command, io: Io): void {
  program
    .command('schema')
    .summary('Print the JSON Schema of what a command prints for programs')
    .description(
      'Lists the kinds that commands print with -o json and -o yaml, or prints the JSON Schema of one. Objects of Kubernetes, as tenon get prints them, are described by their CustomResourceDefinitions: tenon crds.',
    )
    .argument('[kind]', 'such as PodExplanation')
    .addHelpText('after', examples('tenon schema', 'tenon schema PodExplanation > pod-explanation.json'))
    .action(async (kind: string | undefined) => {
      const { runSchema } = await import('./run.ts')
      runSchema(io, kind)
    })
}
