import { type Command, Option } from 'commander'
import { collect, duration, examples, port } from '../../command-line.ts'
import {
  type CloudFlag,
  defaultPorts,
  kubernetesVersion,
  kubernetesVersionText,
  nodeGroupsText,
  simulatedProvider,
  usually,
  withProvider,
} from '../../embedded/flags.ts'
import { CliError } from '../../errors.ts'
import type { Io } from '../../io.ts'
import type { UpOptions } from './run.ts'

export function addUp(program: Command, io: Io): void {
  program
    .command('up')
    .summary('Run a complete cluster that adds and removes its own nodes')
    .description(
      'Runs an embedded Kubernetes API, a simulated cloud and the autoscaler in one process, applies manifests, and shows the cluster until Ctrl-C. Without -f it applies a small demonstration.',
    )
    .argument('[controller-options...]', 'after --: options of tenon controller that say how it decides')
    .option('--provider <name>', simulatedProvider)
    .option('--cloud <name>', 'alias of --provider')
    .option('-f, --filename <path>', 'file or directory to apply; can be repeated', collect, [])
    .option('--no-apply', 'apply nothing but the CustomResourceDefinitions')
    .addOption(
      new Option('--mode <name>', 'what adds and removes nodes: NodePools, or node groups of the cloud')
        .choices(['nodepools', 'cluster-autoscaler'])
        .default('nodepools'),
    )
    .option('--demo', 'run a guided demonstration of about two minutes that explains each step, and exit')
    .option('--pause <duration>', 'pause between two steps of --demo', duration, 2000)
    .option(
      '--port <number>',
      `port of the simulated cloud's API, of metrics and of probes (${usually(defaultPorts.cloud)})`,
      port,
    )
    .option('--api-port <number>', `port of the Kubernetes API (${usually(defaultPorts.api)})`, port)
    .option(
      '--data-dir <path>',
      'store the cluster and its simulated instances in this directory; the next start continues from there',
    )
    .option(
      '--boot-delay <duration>',
      'boot time of a simulated instance (default: some seconds, as in the cloud)',
      duration,
    )
    .option('--node-groups', nodeGroupsText)
    .option('--kubernetes-version <version>', kubernetesVersionText, kubernetesVersion)
    .addHelpText(
      'after',
      examples(
        'tenon up',
        'tenon up --demo',
        'tenon up --provider ./my-cloud.js',
        'tenon up -f nodepool.yaml -f workload.yaml',
        'tenon up --no-apply --data-dir .tenon/data',
        'tenon up -f examples/wanted/surge.yaml -- --surge-on-drain=auto',
        'export KUBECONFIG=.tenon/kubeconfig; kubectl get nodeclaims -w',
      ),
    )
    .action(async (controllerArgs: readonly string[], options: UpOptions & CloudFlag) => {
      if (options.mode === 'cluster-autoscaler') {
        if (controllerArgs.length > 0)
          throw new CliError(`${controllerArgs[0]} is for NodePools: leave out --mode, or what follows --`)
        if (options.demo === true) throw new CliError('--demo plays NodePools: leave out --mode, or --demo')
        const { runUpClusterAutoscaler } = await import('./cluster-autoscaler.ts')
        await runUpClusterAutoscaler(io, withProvider(options))
        return
      }
      const { runUp } = await import('./run.ts')
      await runUp(io, { ...withProvider(options), controllerArgs })
    })
}
