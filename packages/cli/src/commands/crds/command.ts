import type { Command } from 'commander'
import type { CrdsApplyFlags, CrdsClusterFlags } from './run.ts'
import type { Io } from '../../io.ts'
import { couldNotRun, examples, exitWith } from '../../command-line.ts'

const providerModule = 'a provider module or package whose CustomResourceDefinitions are included'

export function addCrds(program: Command, io: Io): void {
  const crds = program
    .command('crds')
    .summary('Print, compare or apply the CustomResourceDefinitions')
    .description('Prints the CustomResourceDefinitions of all kinds of Tenon as one YAML stream.')
    .option('--provider <module>', providerModule)
    .addHelpText(
      'after',
      examples('tenon crds', 'tenon crds --provider ./my-cloud.js', 'tenon crds diff', 'tenon crds apply'),
    )
    .action(async ({ provider = '' }: { readonly provider?: string }) => {
      const { crdsYaml } = await import('../../crds.ts')
      const { loadProviders } = await import('../../load-provider.ts')
      io.out(await crdsYaml((await loadProviders(provider, io.cwd)).all))
    })
  crds
    .command('diff')
    .summary('Show what applying them would change on a cluster')
    .description(
      'Compares the CustomResourceDefinitions of the cluster with those of this release by a server-side dry run, and prints a unified diff. Exits with 0 if there is no difference, 1 if there is one, 2 if the cluster cannot be reached.',
    )
    .option('--kubeconfig <path>', 'kubeconfig of the cluster (KUBECONFIG)')
    .option('--context <name>', 'context of the kubeconfig')
    .option('--provider <module>', providerModule)
    .addHelpText('after', examples('tenon crds diff', 'tenon crds diff --context production'))
    .exitOverride(couldNotRun)
    .action(async (flags: CrdsClusterFlags) => {
      const { runCrdsDiff } = await import('./run.ts')
      exitWith(await runCrdsDiff(io, { ...crds.opts(), ...flags }))
    })
  crds
    .command('apply')
    .summary('Apply them to a cluster and show what changes')
    .description(
      'Applies the CustomResourceDefinitions server-side, prints the changes, and waits until the kinds are served. Exits with 0 if all are applied, 2 otherwise.',
    )
    .option('--kubeconfig <path>', 'kubeconfig of the cluster (KUBECONFIG)')
    .option('--context <name>', 'context of the kubeconfig')
    .option('--provider <module>', providerModule)
    .option('--force-conflicts', 'overwrite fields that another manager, such as Helm, has set')
    .option('--dry-run', 'only show what would change')
    .addHelpText(
      'after',
      examples('tenon crds apply', 'tenon crds apply --dry-run', 'tenon crds apply --force-conflicts'),
    )
    .exitOverride(couldNotRun)
    .action(async (flags: CrdsApplyFlags) => {
      const { runCrdsApply } = await import('./run.ts')
      await runCrdsApply(io, { ...crds.opts(), ...flags })
    })
}
