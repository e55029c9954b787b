import { type Command, InvalidArgumentError, Option } from 'commander'
import type { PreflightFlags } from './run.ts'
import type { Io } from '../../io.ts'
import { builtInProviders } from '../../providers.ts'
import { collect, couldNotRun, duration, examples, exitWith } from '../../command-line.ts'
import { addNodeGroupOptions } from '../../source/node-group-options.ts'

export function addPreflight(program: Command, io: Io): void {
  const command = program
    .command('preflight')
    .summary('Check whether a cluster is ready for an installation or upgrade')
    .description(
      'Checks version, CustomResourceDefinitions, rights, credentials, the API of the cloud, other autoscalers, webhooks, clocks, room for the controller and PodDisruptionBudgets. With --mode cluster-autoscaler checks node groups, and version and rights in their management cluster. Prints a line for each check, or for each finding, with ok, warn or fail, and how to fix it. Changes nothing. Exits with 0 if no check failed, 1 if one failed. Settings of the provider are read from the environment, as the controller reads them.',
    )
    .option('--kubeconfig <path>', 'kubeconfig of the cluster (KUBECONFIG)')
    .option('--context <name>', 'context of the kubeconfig')
    .option(
      '-n, --namespace <name>',
      'namespace of the release (default: that of the running controller, else kube-system)',
    )
    .option(
      '--provider <name>',
      `${builtInProviders.map(({ name }) => name).join(', ')}, or a provider module (default: that of the running controller or of the nodes)`,
    )
    .option(
      '--service-account <namespace/name>',
      'whose rights are checked (default: that of the running controller, else your own, which you grant)',
    )
    .option(
      '--replicas <number>',
      'pods of the controller that need room (default: as they run, else 1)',
      count,
    )
  addNodeGroupOptions(command)
    .option(
      '--allow-scale-to-zero',
      'with --mode cluster-autoscaler: groups may have no node at all (default: as the autoscaler runs)',
    )
    .option('--skip <check>', 'a check that is not made; can be repeated', collect, [])
    .option('--timeout <duration>', 'how long each check may take', duration, 10_000)
    .addOption(
      new Option('-o, --output <format>', 'output format').choices(['text', 'json', 'junit']).default('text'),
    )
    .addHelpText(
      'after',
      examples(
        'tenon preflight',
        'tenon preflight -n karpenter --service-account karpenter/karpenter',
        'tenon preflight -o junit > preflight.xml',
        ...builtInProviders.flatMap((each) => each.examples?.preflight ?? []),
      ),
    )
    .exitOverride(couldNotRun)
    .action(async (flags: PreflightFlags) => {
      const { runPreflight } = await import('./run.ts')
      exitWith(await runPreflight(io, flags))
    })
}

function count(value: string): number {
  const number = Number(value)
  if (!Number.isInteger(number) || number < 1) throw new InvalidArgumentError('Use a number from 1 on.')
  return number
}
