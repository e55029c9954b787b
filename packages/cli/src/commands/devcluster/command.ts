import type { Command } from 'commander'
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
import type { Io } from '../../io.ts'
import type { DevClusterFlags } from './run.ts'

export function addDevCluster(program: Command, io: Io): void {
  program
    .command('devcluster')
    .summary('Run only the embedded Kubernetes and a simulated cloud')
    .description(
      'Runs the embedded Kubernetes API and a simulated cloud without the autoscaler, prints the settings for `tenon controller`, and exits on Ctrl-C.',
    )
    .option('--provider <name>', simulatedProvider)
    .option('--cloud <name>', 'alias of --provider')
    .option('-f, --filename <path>', 'file or directory to apply; can be repeated', collect, [])
    .option('--port <number>', `port of the simulated cloud's API (${usually(defaultPorts.cloud)})`, port)
    .option('--api-port <number>', `port of the Kubernetes API (${usually(defaultPorts.api)})`, port)
    .option('--data-dir <path>', 'store the cluster and its simulated instances in this directory')
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
        'tenon devcluster',
        'tenon devcluster --api-port 6443 --data-dir .tenon/data',
        'tenon devcluster --boot-delay 2s',
      ),
    )
    .action(async (options: DevClusterFlags & CloudFlag) => {
      const { runDevCluster } = await import('./run.ts')
      await runDevCluster(io, withProvider(options))
    })
}
