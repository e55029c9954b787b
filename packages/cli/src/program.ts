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
      examples('tenon up', 'tenon up -f manifests', `tenon controller --provider ${firstName}`),
    )
  addUp(program, io)
  addDevCluster(program, io)
  addController(program, io)
  addCrds(program, io)
  addValidate(program, io)
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
      'Brings up an embedded Kubernetes API, a simulated cloud and the autoscaler in one process, applies manifests, and shows the cluster until Ctrl-C. Without -f it applies a small demonstration.',
    )
    .option('--provider <name>', simulatedProvider)
    .option('--cloud <name>', 'another spelling of --provider')
    .option('-f, --filename <path>', 'file or directory to apply; may be given several times', collect, [])
    .option('--no-apply', 'apply nothing but the CustomResourceDefinitions')
    .option('--demo', 'play a guided demonstration of about two minutes, explain each step, and end')
    .option('--pause <duration>', 'time to read between two steps of --demo', duration, 2000)
    .option(
      '--port <number>',
      `port of the simulated cloud's API, of metrics and of probes (${usually(defaultPorts.cloud)})`,
      port,
    )
    .option('--api-port <number>', `port of the Kubernetes API (${usually(defaultPorts.api)})`, port)
    .option(
      '--data-dir <path>',
      'keep the cluster and its simulated instances in this directory; it goes on where it was at the next start',
    )
    .option(
      '--boot-delay <duration>',
      'how long a simulated instance takes to boot (default: some seconds, as in the cloud)',
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
    throw new CliError(`--cloud=${cloud} and --provider=${provider} name two clouds; give one of them`)
  return { ...options, provider }
}

function addDevCluster(program: Command, io: Io): void {
  program
    .command('devcluster')
    .summary('Run the embedded Kubernetes and a simulated cloud alone')
    .description(
      'Brings up the embedded Kubernetes API and a simulated cloud without the autoscaler, prints the settings for `tenon controller`, and runs until Ctrl-C.',
    )
    .option('--provider <name>', simulatedProvider)
    .option('--cloud <name>', 'another spelling of --provider')
    .option('-f, --filename <path>', 'file or directory to apply; may be given several times', collect, [])
    .option('--port <number>', `port of the simulated cloud's API (${usually(defaultPorts.cloud)})`, port)
    .option('--api-port <number>', `port of the Kubernetes API (${usually(defaultPorts.api)})`, port)
    .option('--data-dir <path>', 'keep the cluster and its simulated instances in this directory')
    .option(
      '--boot-delay <duration>',
      'how long a simulated instance takes to boot (default: some seconds, as in the cloud)',
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

const providerModule = 'a provider module or package whose definitions count as well'

function addCrds(program: Command, io: Io): void {
  const crds = program
    .command('crds')
    .summary('Print the CustomResourceDefinitions, compare them with those of a cluster, apply them')
    .description('Prints the CustomResourceDefinitions of every kind Tenon serves, as one YAML stream.')
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
      'Compares the CustomResourceDefinitions of the cluster with those of this release and prints a unified diff. The API server works it out, nothing is changed. Exits with 0 when there is no difference, 1 when there is one, 2 when the cluster cannot be asked.',
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
      'Applies the CustomResourceDefinitions server-side, prints what changes, and waits until the kinds are served. Exits with 0 when all are applied, 2 when one is not.',
    )
    .option('--kubeconfig <path>', 'kubeconfig of the cluster (KUBECONFIG)')
    .option('--context <name>', 'context of the kubeconfig')
    .option('--provider <module>', providerModule)
    .option('--force-conflicts', 'take over fields that another manager, such as Helm, has set')
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
      'Checks NodePools, NodeClaims, NodeOverlays and node classes as the API server and the controller would, and NodePools against the instance types there are. Every problem is told with its file, line and column. Exits with 0 when there is no error, 1 when there is one, 2 when nothing could be checked.',
    )
    .argument('<path...>', 'files or directories with YAML or JSON; - reads standard input')
    .addOption(
      new Option(
        '--provider <name>',
        `whose instance types to check against: ${builtInProviders.map(({ name }) => name).join(', ')}, or a provider module (default: that of the node class)`,
      ),
    )
  for (const { flag, takes, meaning } of builtInProviders.flatMap(({ validateOptions }) => validateOptions))
    command.option(`--${flag} <${takes}>`, meaning)
  command
    .option('--feature-gates <list>', 'gates of the controller, Name=true,… (FEATURE_GATES)')
    .option('-R, --recursive', 'read directories below the given ones as well')
    .addOption(
      new Option('-o, --output <format>', 'how to print it').choices(['text', 'json']).default('text'),
    )
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
  return `default: ${number}, or a free one when that is taken`
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
