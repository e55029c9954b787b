import { type Command, Option } from 'commander'
import type { ValidateFlags } from './run.ts'
import type { Io } from '../../io.ts'
import { builtInProviders } from '../../providers.ts'
import { couldNotRun, examples, exitWith } from '../../command-line.ts'

export function addValidate(program: Command, io: Io): void {
  const command = program
    .command('validate')
    .summary('Check manifests without a cluster')
    .description(
      'Checks NodePools, NodeClaims, NodeOverlays, CapacityQuotas and node classes as the API server and the controller do, and NodePools against the existing instance types. Every problem is reported with file, line and column. Exits with 0 if there are no errors, 1 if there are errors, 2 if nothing could be checked.',
    )
    .argument('<path...>', 'files or directories with YAML or JSON; - reads standard input')
    .addOption(
      new Option(
        '--provider <name>',
        `provider of the instance types to check against: ${builtInProviders.map(({ name }) => name).join(', ')}, or a provider module (default: that of the node class)`,
      ),
    )
  for (const { flag, takes, meaning } of builtInProviders.flatMap(({ validateOptions }) => validateOptions))
    command.option(`--${flag} <${takes}>`, meaning)
  command
    .option('--feature-gates <list>', 'gates of the controller, Name=true,… (FEATURE_GATES)')
    .addOption(
      new Option(
        '--node-pools <selector>',
        'selector of a controller that shares the cluster, once for each: NodePools that none or several select are reported',
      ).argParser((selector, before: readonly string[] | undefined) => [...(before ?? []), selector]),
    )
    .option('-R, --recursive', 'include subdirectories')
    .addOption(new Option('-o, --output <format>', 'output format').choices(['text', 'json']).default('text'))
    .addHelpText(
      'after',
      examples(
        'tenon validate nodepool.yaml',
        ...builtInProviders.flatMap((each) => each.examples?.validate ?? []),
        'helm template ./chart | tenon validate -',
        'tenon validate manifests -R -o json | jq .problems',
      ),
    )
    .exitOverride(couldNotRun)
    .action(async (paths: readonly string[], flags: ValidateFlags) => {
      const { runValidate } = await import('./run.ts')
      exitWith(await runValidate(io, paths, flags))
    })
}
