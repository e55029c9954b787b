/** The options of `tenon controller`, from command line and environment (operations.md 2 to 4). */
import { defaultSettings, schedulerSettingsOf, type Settings } from '@tenon/operator/objects'
import type { ProviderModule } from '@tenon/provider'
import type { LogLevel } from '@tenon/runtime'
import { parseDocument } from 'yaml'
import { CliError, startUpExitCode } from '../../errors.ts'
import type { Providers } from '../../load-provider.ts'
import { leaseNameFor, nodePoolSelector } from '../../source/node-pool-selectors.ts'
import { coreOptions, decisionOptions, optionDefinitionsOf } from '../../options/definitions.ts'
import { type OptionWarning, parseArguments, type ReadOptions, readOptions } from '../../options/read.ts'
import { featureGates, karpenterGates } from '../../options/feature-gates.ts'

export interface ControllerOptions {
  readonly provider: ProviderModule
  /** Values of the provider's options, by variable. */
  readonly providerEnv: Env
  readonly kubeconfig: string
  readonly context: string
  /** Absent: requests are not rate-limited. */
  readonly rate: { readonly perSecond: number; readonly burst: number } | undefined
  readonly metricsPort: number
  /** Directory of the certificate of /metrics; absent where it is served in plain text, to everybody. */
  readonly metricsCertPath: string | undefined
  readonly healthProbePort: number
  /** 0 for none. */
  readonly debugPort: number
  /** Empty for none. */
  readonly journalPath: string
  /** Empty for none. */
  readonly recordPath: string
  readonly maxConnections: number
  readonly isProfiling: boolean
  readonly logLevel: LogLevel
  /** Comma-separated. */
  readonly logOutputs: string
  readonly logErrorOutputs: string
  /** 0: no limit. */
  readonly memoryLimitBytes: number
  readonly leaderElection: { readonly namespace: string; readonly name: string } | undefined
  readonly settings: Settings
  readonly warnings: readonly OptionWarning[]
}

type Env = Readonly<Record<string, string | undefined>>

/**
 * Parses the options.
 * @param providers those whose options are accepted.
 * @param podNamespace the namespace of the pod this runs in; undefined outside of a pod.
 * @returns `help` if it was requested.
 * @throws CliError with exit code 2, naming the flag or variable and its valid values.
 */
export function controllerOptions(
  args: readonly string[],
  env: Env,
  { all, chosen }: Providers,
  podNamespace: string | undefined,
): ControllerOptions | 'help' {
  const read = readOptions(args, env, optionDefinitionsOf(all), chosen?.name)
  if (read === 'help') return 'help'
  if (chosen === undefined) {
    const names = all.map(({ name }) => `--provider=${name}`).join(' or ')
    throw refusal(`set the cloud provider: ${names}`)
  }
  const { settings, warnings } = settingsOf(read)
  const brakeNamespace = read.text('leader-election-namespace') || podNamespace
  const lease = read.isOn('disable-leader-election') ? undefined : leaseOf(read, podNamespace)
  const nodePools = nodePoolSelection(read, lease)
  const identity = {
    isAccepted: read.isOn('accept-cluster-identity'),
    ...(lease !== undefined && { lease }),
  }
  return {
    provider: chosen,
    providerEnv: Object.fromEntries(chosen.options.map(({ flag, variable }) => [variable, read.text(flag)])),
    kubeconfig: read.text('kubeconfig'),
    context: read.text('context'),
    rate: rateOf(read.number('kube-client-qps'), read.number('kube-client-burst')),
    metricsPort: port(read, 'metrics-port'),
    metricsCertPath: certPathOf(read),
    healthProbePort: port(read, 'health-probe-port'),
    debugPort: port(read, 'debug-port'),
    journalPath: read.text('journal-path'),
    recordPath: read.text('record-path'),
    maxConnections: Math.max(1, read.number('max-connections')),
    isProfiling: read.isOn('enable-profiling'),
    logLevel: logLevel(read.text('log-level')),
    logOutputs: read.text('log-output-paths'),
    logErrorOutputs: read.text('log-error-output-paths'),
    memoryLimitBytes: Math.max(0, read.number('memory-limit')),
    leaderElection: lease,
    settings: {
      ...settings,
      identity,
      ...(brakeNamespace !== undefined && { brakeNamespace }),
      ...(nodePools !== undefined && { nodePools }),
    },
    warnings: [...read.warnings, ...warnings],
  }
}

/**
 * The settings that options of `tenon controller` about decisions ask for; variables are not read.
 * @throws CliError for any other option.
 */
export function decisionSettings(args: readonly string[]): Settings {
  if (parseArguments(args, decisionOptions) === 'help')
    throw new CliError(
      `options of the controller are: ${decisionOptions.map(({ flag }) => `--${flag}`).join(', ')}`,
    )
  const read = readOptions(args, {}, coreOptions, undefined)
  return read === 'help' ? defaultSettings : settingsOf(read).settings
}

function settingsOf(read: ReadOptions): {
  readonly settings: Settings
  readonly warnings: readonly OptionWarning[]
} {
  const readGates = featureGates(read.nameOf('feature-gates'), read.text('feature-gates'))
  const { gates, own, warnings } = readGates
  const isCompatible = read.text('compatibility') === 'karpenter'
  const cpuRequestsMillis = read.number('cpu-requests')
  const qps = read.number('kube-client-qps')
  return {
    settings: {
      ...defaultSettings,
      batchMaxMs: read.number('batch-max-duration'),
      batchIdleMs: read.number('batch-idle-duration'),
      initializationTimeoutMs: isCompatible
        ? Number.POSITIVE_INFINITY
        : read.number('initialization-timeout'),
      preferences: read.text('preference-policy') === 'Ignore' ? 'Ignore' : 'Respect',
      minValues: read.text('min-values-policy') === 'BestEffort' ? 'BestEffort' : 'Strict',
      ...schedulerSettings(read.nameOf('scheduler-config'), read.text('scheduler-config')),
      ignoreDraRequests: ignoresDevices(read.text('ignore-dra-requests'), isCompatible),
      requestBookingMs: read.number('provisioning-request-booking-duration'),
      vpaPredictions: !isCompatible && read.isOn('vpa-predictions'),
      podDeletionCost: !isCompatible && read.isOn('pod-deletion-cost'),
      surgeOnDrain: isCompatible ? 'off' : surgeScope(read.text('surge-on-drain')),
      featureGates: isCompatible ? karpenterGates(readGates) : gates,
      clusterStateObservability: !read.isOn('disable-cluster-state-observability'),
      metricsDetail: read.text('metrics-detail') === 'reduced' ? 'reduced' : 'full',
      observeOnly: read.isOn('observe-only'),
      takeOver: read.isOn('take-over'),
      compatibility: isCompatible ? 'karpenter' : 'none',
      autoBrake: read.isOn('auto-brake'),
      cpuRequestsMillis: cpuRequestsMillis > 0 ? cpuRequestsMillis : defaultSettings.cpuRequestsMillis,
      ...(qps > 0 && { maxNominations: Math.floor((qps * defaultSettings.nominationHoldMs) / 1000) }),
    },
    warnings: isCompatible && own.length > 0 ? [...warnings, overruled(own)] : warnings,
  }
}

function surgeScope(text: string): Settings['surgeOnDrain'] {
  if (text === 'auto') return 'annotated'
  return text === 'true' ? 'all' : 'off'
}

/** Karpenter ignores DRA by default. */
function ignoresDevices(text: string, isCompatible: boolean): boolean {
  return text === 'auto' ? isCompatible : text === 'true'
}

function overruled(gates: readonly string[]): OptionWarning {
  return {
    message: 'feature gates stay off because of the compatibility mode',
    fields: { gates, fix: 'remove --compatibility=karpenter, or the gates' },
  }
}

/** As in client-go, 0 means the client's defaults. */
function rateOf(qps: number, burst: number): ControllerOptions['rate'] {
  if (qps < 0) return undefined
  return { perSecond: qps === 0 ? 5 : qps, burst: burst <= 0 ? 10 : burst }
}

function leaseOf(
  read: ReadOptions,
  podNamespace: string | undefined,
): { readonly namespace: string; readonly name: string } {
  const namespace = read.text('leader-election-namespace') || podNamespace
  if (namespace === undefined || namespace === '') {
    throw refusal(
      'leader election needs a namespace outside of a pod: set --leader-election-namespace (LEADER_ELECTION_NAMESPACE), or disable it with --disable-leader-election',
    )
  }
  return { namespace, name: leaseNameFor(read.text('leader-election-name'), read.text('node-pools')) }
}

function nodePoolSelection(
  read: ReadOptions,
  lease: ControllerOptions['leaderElection'],
): Settings['nodePools'] {
  const text = read.text('node-pools')
  if (text === '') return undefined
  const flag = read.nameOf('node-pools')
  if (lease === undefined)
    throw refusal(`${flag}: needs leader election, as controllers know each other by their leases`)
  return {
    selector: nodePoolSelector(flag, text),
    text,
    controller: `${lease.namespace}/${lease.name}`,
  }
}

function certPathOf(read: ReadOptions): string | undefined {
  if (!read.isOn('metrics-secure')) return undefined
  const path = read.text('metrics-cert-path')
  if (path === '')
    throw refusal(
      `${read.nameOf('metrics-secure')}: set --metrics-cert-path (METRICS_CERT_PATH) to a directory with tls.crt and tls.key`,
    )
  return path
}

function port(read: ReadOptions, flag: string): number {
  const number = read.number(flag)
  if (number < 0 || number > 65_535)
    throw refusal(`${read.nameOf(flag)}=${number}: use a port from 0 to 65535`)
  return number
}

function schedulerSettings(name: string, text: string): Pick<Settings, 'defaultSpread' | 'fitScoring'> {
  const document = parseDocument(text)
  const [error] = document.errors
  if (error !== undefined)
    throw refusal(`${name}: not valid YAML or JSON: ${error.message.split('\n')[0] ?? ''}`)
  const read = schedulerSettingsOf(document.toJS())
  if ('error' in read) throw refusal(`${name}: ${read.error}`)
  return read.ok
}

function logLevel(text: string): LogLevel {
  return text === 'debug' || text === 'error' ? text : 'info'
}

function refusal(message: string): CliError {
  return new CliError(message, { exitCode: startUpExitCode })
}
