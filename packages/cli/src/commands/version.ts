import { type Command, Option } from 'commander'
import type { Io } from '../io.ts'
import { version } from '../version.ts'
import { examples } from '../command-line.ts'

export function addVersion(program: Command, io: Io): void {
  program
    .command('version')
    .summary('Print the version')
    .description('Prints the version of this program.')
    .addOption(new Option('-o, --output <format>', 'output format').choices(['text', 'json']).default('text'))
    .addHelpText('after', examples('tenon version', 'tenon version -o json'))
    .action(({ output }: { output: string }) => {
      io.out(
        output === 'json'
          ? `${JSON.stringify({ clientVersion: { gitVersion: `v${version}` } })}\n`
          : `v${version}\n`,
      )
    })
}
