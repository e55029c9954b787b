/** The commands of `tenon`, their options and their help. Each loads what it is made of when it runs. */
import { parseDuration } from '@tenon/api'
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander'
import { CliError } from './errors.ts'
import type { Io } from './io.ts'
import { version } from './version.ts'
import { controllerHelp } from './options/help.ts'
import { builtInProviders } from './providers.ts'
import type { UpOptions } from './commands/up.ts'
import type { CrdsApplyFlags, CrdsClusterFlags } from './commands/crds-cluster.ts'
import type { ValidateFlags } from './commands/validate.ts'
import { defaultPorts } from './up/default-ports.ts'
import type { DevClusterFlags } from './commands/devcluster.ts'

const firstName = builtInProviders[0]?.name ?? ''

const simulatedNames = builtInProviders
  .filter(({ simulator }) => simulator !== undefined)
  .map(({ name }) => name)

const simulatedProvider = `cloud to simulate: ${[...simulatedNames, 'a provider module or package'].join(', ')} (default: ${simulatedNames[0] ?? 'none'})`

/** The command tree; running it writes to `io` only. */
export function createProgram(io: Io): Command {
  const program = new Command('tenon')
    .description('Node autoscaler for Kubernetes that implements the Karpenter API')
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
      examples('tenon up', 'tenon up -f manifests', `tenon controller --provider ${firstName}`),
    )
  addUp(program, io)
  addDevCluster(program, io)
  addController(program, io)
  addClusterAutoscaler(program, io)
  addCrds(program, io)
  addValidate(program, io)
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
  return program
}

function addUp(program: Command, io: Io): void {
  program
    .command('up')
    .summary('Run a complete cluster that adds and removes its own nodes')
    .description(
      'Runs an embedded Kubernetes API, a simulated cloud and the autoscaler in one process, applies manifests, and shows the cluster until Ctrl-C. Without -f it applies a small demonstration.',
    )
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
    .addHelpText(
      'after',
      examples(
        'tenon up',
        'tenon up --demo',
        'tenon up --provider ./my-cloud.js',
        'tenon up -f nodepool.yaml -f workload.yaml',
        'tenon up --no-apply --data-dir .tenon/data',
        'export KUBECONFIG=.tenon/kubeconfig; kubectl get nodeclaims -w',
      ),
    )
    .action(async (options: UpOptions & CloudFlag) => {
      if (options.mode === 'cluster-autoscaler') {
        if (options.demo === true) throw new CliError('--demo plays NodePools: leave out --mode, or --demo')
        const { runUpClusterAutoscaler } = await import('./commands/up-cluster-autoscaler.ts')
        await runUpClusterAutoscaler(io, withProvider(options))
        return
      }
      const { runUp } = await import('./commands/up.ts')
      await runUp(io, withProvider(options))
    })
}

interface CloudFlag {
  readonly provider?: string
  readonly cloud?: string
}

/** Reads `--cloud` as `--provider`. */
function withProvider<O extends CloudFlag>({ cloud, ...options }: O): Omit<O, 'cloud'> {
  if (cloud === undefined) return options
  const { provider = cloud } = options
  if (provider !== cloud)
    throw new CliError(`--cloud=${cloud} and --provider=${provider} are different; use one of them`)
  return { ...options, provider }
}

function addDevCluster(program: Command, io: Io): void {
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
    .addHelpText(
      'after',
      examples(
        'tenon devcluster',
        'tenon devcluster --api-port 6443 --data-dir .tenon/data',
        'tenon devcluster --boot-delay 2s',
      ),
    )
    .action(async (options: DevClusterFlags & CloudFlag) => {
      const { runDevCluster } = await import('./commands/devcluster.ts')
      await runDevCluster(io, withProvider(options))
    })
}

/** Reads its own command line: flags and exit codes are those of Karpenter. */
function addController(program: Command, io: Io): void {
  program
    .command('controller')
    .summary('Run the autoscaler against a cluster')
    .helpOption(false)
    .allowUnknownOption()
    .argument('[options...]')
    .configureHelp({ formatHelp: () => controllerHelp(builtInProviders) })
    .action(async (options: readonly string[]) => {
      const { runController } = await import('./commands/controller.ts')
      await runController(io, options)
    })
}

/** Reads its own command line: flags and exit codes are those of Cluster Autoscaler. */
function addClusterAutoscaler(program: Command, io: Io): void {
  program
    .command('cluster-autoscaler')
    .summary('Scale node groups with the flags of Cluster Autoscaler')
    .helpOption(false)
    .allowUnknownOption()
    .argument('[flags...]')
    .action(async (flags: readonly string[]) => {
      const { runClusterAutoscaler } = await import('./commands/cluster-autoscaler.ts')
      await runClusterAutoscaler(io, flags)
    })
}

const providerModule = 'a provider module or package whose CustomResourceDefinitions are included'

function addCrds(program: Command, io: Io): void {
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
      const { crdsYaml } = await import('./commands/crds.ts')
      const { loadProviders } = await import('./load-provider.ts')
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
      const { runCrdsDiff } = await import('./commands/crds-cluster.ts')
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
      const { runCrdsApply } = await import('./commands/crds-cluster.ts')
      await runCrdsApply(io, { ...crds.opts(), ...flags })
    })
}

function addValidate(program: Command, io: Io): void {
  const command = program
    .command('validate')
    .summary('Check manifests without a cluster')
    .description(
      'Checks NodePools, NodeClaims, NodeOverlays and node classes as the API server and the controller do, and NodePools against the existing instance types. Every problem is reported with file, line and column. Exits with 0 if there are no errors, 1 if there are errors, 2 if nothing could be checked.',
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
      const { runValidate } = await import('./commands/validate.ts')
      exitWith(await runValidate(io, paths, flags))
    })
}

/** Of commands whose exit code 1 is an answer: a command line that cannot be read exits with 2. */
function couldNotRun(error: CommanderError): never {
  throw error.exitCode === 0 ? error : new CommanderError(2, error.code, error.message)
}

/** Ends the command with an exit code that is an answer and needs no words. */
function exitWith(code: number): void {
  if (code !== 0) throw new CommanderError(code, 'tenon.answer', '')
}

function collect(value: string, previous: readonly string[]): readonly string[] {
  return [...previous, value]
}

/** What help says of a port that is left open. */
function usually(number: number): string {
  return `default: ${number}, or a free one if that is in use`
}

function port(value: string): number {
  const number = Number(value)
  if (!Number.isInteger(number) || number < 0 || number > 65_535) {
    throw new InvalidArgumentError('Use a port from 0 to 65535; 0 for a free one.')
  }
  return number
}

function duration(value: string): number {
  const ms = parseDuration(value)
  if (ms === undefined || ms < 0) throw new InvalidArgumentError('Use a duration such as 2s or 1m30s.')
  return ms
}

/** The parser's complaint as one line in the form of every other error. */
function usageError(text: string): string {
  const line = text
    .replace(/^error: /, '')
    .trim()
    .replaceAll(/\s*\n\s*/g, ' ')
  return `tenon: ${line.replace(/\.$/, '')} (see --help)\n`
}

function examples(...lines: readonly string[]): string {
  return `\nExamples:\n${lines.map((line) => `  ${line}`).join('\n')}\n`
}
