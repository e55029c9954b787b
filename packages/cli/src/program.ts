/** The commands of `tenon`, their options and their help. Each loads what it is made of when it runs. */
import { parseDuration } from '@tenon/api'
import { Command, InvalidArgumentError, Option } from 'commander'
import type { Io } from './io.ts'
import { version } from './version.ts'
import type { ControllerFlags } from './commands/controller-options.ts'
import type { UpOptions } from './commands/up.ts'
import type { ClusterPorts } from './up/cluster.ts'

/** The command tree; running it writes to `io` only. */
export function createProgram(io: Io): Command {
  const program = new Command('tenon')
    .description('Node autoscaler for Kubernetes that speaks the Karpenter API')
    .configureOutput({
      writeOut: io.out,
      writeErr: io.err,
      outputError: (text, write) => {
        write(usageError(text))
      },
    })
    .exitOverride()
    .addHelpText(
      'after',
      examples('tenon up', 'tenon up -f examples/exoscale', 'tenon controller --provider exoscale'),
    )
  addUp(program, io)
  addDevCluster(program, io)
  addController(program, io)
  program
    .command('crds')
    .summary('Print the CustomResourceDefinitions')
    .description('Prints the CustomResourceDefinitions of every kind Tenon serves, as one YAML stream.')
    .addHelpText('after', examples('tenon crds', 'tenon crds | kubectl apply --server-side -f -'))
    .action(async () => {
      const { crdsYaml } = await import('./commands/crds.ts')
      io.out(crdsYaml())
    })
  program
    .command('version')
    .summary('Print the version')
    .description('Prints the version of this program.')
    .addOption(
      new Option('-o, --output <format>', 'how to print it').choices(['text', 'json']).default('text'),
    )
    .addHelpText('after', examples('tenon version', 'tenon version -o json'))
    .action(({ output }: { output: string }) => {
      io.out(
        output === 'json'
          ? `${JSON.stringify({ clientVersion: { gitVersion: `v${version}` } })}\n`
          : `v${version}\n`,
      )
    })
  return program
}

function addUp(program: Command, io: Io): void {
  program
    .command('up')
    .summary('Run a whole cluster that grows and shrinks its own nodes')
    .description(
      'Brings up an embedded Kubernetes API, a simulated Exoscale and the autoscaler in one process, applies manifests, and shows the cluster until Ctrl-C. Without -f it applies a small demonstration.',
    )
    .option('-f, --filename <path>', 'file or directory to apply; may be given several times', collect, [])
    .option('--no-apply', 'apply nothing but the CustomResourceDefinitions')
    .option('--port <number>', 'port of the simulated Exoscale API, of metrics and of probes', port, 16_080)
    .option('--api-port <number>', 'port of the Kubernetes API', port, 16_443)
    .option(
      '--data-dir <path>',
      'keep the cluster in this directory; it goes on where it was at the next start',
    )
    .option(
      '--boot-delay <duration>',
      'how long a simulated instance takes to boot (default: 15s to 30s)',
      duration,
    )
    .addHelpText(
      'after',
      examples(
        'tenon up',
        'tenon up -f nodepool.yaml -f workload.yaml',
        'tenon up --no-apply --data-dir .tenon/data',
        'export KUBECONFIG=.tenon/kubeconfig; kubectl get nodeclaims -w',
      ),
    )
    .action(async (options: UpOptions) => {
      const { runUp } = await import('./commands/up.ts')
      await runUp(io, options)
    })
}

function addDevCluster(program: Command, io: Io): void {
  program
    .command('devcluster')
    .summary('Run the embedded Kubernetes and the simulated Exoscale alone')
    .description(
      'Brings up the embedded Kubernetes API and the simulated Exoscale without the autoscaler, prints the settings for `tenon controller`, and runs until Ctrl-C.',
    )
    .option('-f, --filename <path>', 'file or directory to apply; may be given several times', collect, [])
    .option('--port <number>', 'port of the simulated Exoscale API', port, 16_080)
    .option('--api-port <number>', 'port of the Kubernetes API', port, 16_443)
    .option('--data-dir <path>', 'keep the cluster in this directory')
    .option(
      '--boot-delay <duration>',
      'how long a simulated instance takes to boot (default: 15s to 30s)',
      duration,
    )
    .addHelpText(
      'after',
      examples(
        'tenon devcluster',
        'tenon devcluster --api-port 6443 --data-dir .tenon/data',
        'tenon devcluster --boot-delay 2s',
      ),
    )
    .action(async (options: ClusterPorts & { readonly filename: readonly string[] }) => {
      const { runDevCluster } = await import('./commands/devcluster.ts')
      await runDevCluster(io, options)
    })
}

function addController(program: Command, io: Io): void {
  program
    .command('controller')
    .summary('Run the autoscaler against a cluster')
    .description(
      'Runs the autoscaler against the cluster of the kubeconfig, or of the pod it runs in. Settings come from flags, then from the environment variables of Karpenter.',
    )
    .addOption(
      new Option('--provider <name>', 'cloud to launch nodes in')
        .choices(['exoscale', 'kwok'])
        .makeOptionMandatory(),
    )
    .option('--kubeconfig <path>', 'kubeconfig of the cluster (KUBECONFIG)')
    .option('--context <name>', 'context of the kubeconfig')
    .option('--metrics-port <number>', 'port of /metrics (METRICS_PORT, 8080)')
    .option('--health-probe-port <number>', 'port of /healthz and /readyz (HEALTH_PROBE_PORT, 8081)')
    .option('--batch-max-duration <duration>', 'longest time pods are collected (BATCH_MAX_DURATION, 10s)')
    .option('--batch-idle-duration <duration>', 'silence that ends collecting (BATCH_IDLE_DURATION, 1s)')
    .option(
      '--scheduler-config <document>',
      'YAML or JSON with podTopologySpread.defaultConstraints, for pods that set no spread (SCHEDULER_CONFIG)',
    )
    .option(
      '--ignore-dra-requests [boolean]',
      'refuse pods with resource claims; false places them as if they had none (IGNORE_DRA_REQUESTS, true)',
    )
    .option(
      '--disable-cluster-state-observability [boolean]',
      'leave out the metrics of single nodes, pods and NodePools (DISABLE_CLUSTER_STATE_OBSERVABILITY, false)',
    )
    .option(
      '--feature-gates <list>',
      'behaviour to switch on or off, Name=true,…: NodeOverlay, NodeRepair, PlannedPlacement, StaticCapacity (FEATURE_GATES)',
    )
    .option(
      '--compatibility <mode>',
      'karpenter: decide as Karpenter does, without what Tenon adds (COMPATIBILITY, none)',
    )
    .option('--log-level <level>', 'debug, info or error (LOG_LEVEL, info)')
    .option('--disable-leader-election', 'act at once, without the lease (DISABLE_LEADER_ELECTION)')
    .option('--leader-election-namespace <name>', 'namespace of the lease (LEADER_ELECTION_NAMESPACE)')
    .option('--leader-election-name <name>', 'name of the lease (LEADER_ELECTION_NAME)')
    .addHelpText(
      'after',
      examples(
        'tenon controller --provider kwok --kubeconfig ~/.kube/config --disable-leader-election',
        'EXOSCALE_ZONE=ch-gva-2 EXOSCALE_SKS_CLUSTER_ID=… EXOSCALE_API_KEY=… EXOSCALE_API_SECRET=… \\\n    tenon controller --provider exoscale --leader-election-namespace kube-system',
      ),
    )
    .action(async (options: ControllerFlags) => {
      const { runController } = await import('./commands/controller.ts')
      await runController(io, options)
    })
}

function collect(value: string, previous: readonly string[]): readonly string[] {
  return [...previous, value]
}

function port(value: string): number {
  const number = Number(value)
  if (!Number.isInteger(number) || number < 0 || number > 65_535) {
    throw new InvalidArgumentError('Give a port from 0 to 65535; 0 takes a free one.')
  }
  return number
}

function duration(value: string): number {
  const ms = parseDuration(value)
  if (ms === undefined || ms < 0) throw new InvalidArgumentError('Give a duration such as 2s or 1m30s.')
  return ms
}

/** The parser's complaint as one line in the form of every other error. */
function usageError(text: string): string {
  const line = text
    .replace(/^error: /, '')
    .trim()
    .replaceAll(/\s*\n\s*/g, ' ')
  return `tenon: ${line.replace(/\.$/, '')} (--help shows what there is)\n`
}

function examples(...lines: readonly string[]): string {
  return `\nExamples:\n${lines.map((line) => `  ${line}`).join('\n')}\n`
}
