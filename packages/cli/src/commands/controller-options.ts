/** Options of `tenon controller`: a flag beats the environment, which beats the default (operations.md 2). */
import { parseDuration } from '@tenon/api'
import { defaultSettings, defaultSpreadOf, type Settings } from '@tenon/operator'
import type { LogLevel } from '@tenon/runtime'
import { parseDocument } from 'yaml'
import { CliError } from '../errors.ts'
import { featureGates } from './feature-gates.ts'

export interface ControllerFlags {
  readonly provider: string
  readonly kubeconfig?: string
  readonly context?: string
  readonly metricsPort?: string
  readonly healthProbePort?: string
  readonly batchMaxDuration?: string
  readonly batchIdleDuration?: string
  readonly logLevel?: string
  /** YAML or JSON text. */
  readonly schedulerConfig?: string
  /** True when the flag stands without a value. */
  readonly ignoreDraRequests?: string | true
  /** `Name=bool,…` */
  readonly featureGates?: string
  readonly compatibility?: string
  /** True when the flag stands without a value. */
  readonly disableClusterStateObservability?: string | true
  readonly disableLeaderElection?: boolean
  readonly leaderElectionNamespace?: string
  readonly leaderElectionName?: string
}

export interface ControllerOptions {
  readonly metricsPort: number
  readonly healthProbePort: number
  readonly logLevel: LogLevel
  readonly leaderElection: { readonly namespace: string; readonly name: string } | undefined
  readonly settings: Settings
  readonly qps: number
  readonly burst: number
}

type Env = Readonly<Record<string, string | undefined>>

/** @throws CliError naming the flag or variable and what it takes. */
export function controllerOptions(flags: ControllerFlags, env: Env): ControllerOptions {
  const isLeaderElectionOff = flags.disableLeaderElection ?? isTrue(env['DISABLE_LEADER_ELECTION'])
  return {
    metricsPort: port('--metrics-port', flags.metricsPort, env['METRICS_PORT'], 8080),
    healthProbePort: port('--health-probe-port', flags.healthProbePort, env['HEALTH_PROBE_PORT'], 8081),
    logLevel: logLevel(flags.logLevel ?? env['LOG_LEVEL']),
    leaderElection: isLeaderElectionOff ? undefined : lease(flags, env),
    qps: integer(env['KUBE_CLIENT_QPS'], 200),
    burst: integer(env['KUBE_CLIENT_BURST'], 300),
    settings: {
      ...defaultSettings,
      batchMaxMs: duration(
        '--batch-max-duration',
        flags.batchMaxDuration,
        env['BATCH_MAX_DURATION'],
        defaultSettings.batchMaxMs,
      ),
      batchIdleMs: duration(
        '--batch-idle-duration',
        flags.batchIdleDuration,
        env['BATCH_IDLE_DURATION'],
        defaultSettings.batchIdleMs,
      ),
      preferences: oneOf('PREFERENCE_POLICY', env['PREFERENCE_POLICY'], ['Respect', 'Ignore']),
      minValues: oneOf('MIN_VALUES_POLICY', env['MIN_VALUES_POLICY'], ['Strict', 'BestEffort']),
      defaultSpread: defaultSpread(flags.schedulerConfig, env['SCHEDULER_CONFIG']),
      ignoreDraRequests: boolean(
        '--ignore-dra-requests',
        flags.ignoreDraRequests,
        env['IGNORE_DRA_REQUESTS'],
        defaultSettings.ignoreDraRequests,
      ),
      featureGates:
        flags.featureGates === undefined
          ? featureGates('FEATURE_GATES', env['FEATURE_GATES'] ?? '')
          : featureGates('--feature-gates', flags.featureGates),
      clusterStateObservability: !boolean(
        '--disable-cluster-state-observability',
        flags.disableClusterStateObservability,
        env['DISABLE_CLUSTER_STATE_OBSERVABILITY'],
        !defaultSettings.clusterStateObservability,
      ),
      compatibility:
        flags.compatibility === undefined
          ? oneOf('COMPATIBILITY', env['COMPATIBILITY'], ['none', 'karpenter'])
          : oneOf('--compatibility', flags.compatibility, ['none', 'karpenter']),
      cpuRequestsMillis: Math.max(0, integer(env['CPU_REQUESTS'], 1000)) || 1000,
    },
  }
}

function lease(flags: ControllerFlags, env: Env): { namespace: string; name: string } {
  const namespace =
    flags.leaderElectionNamespace ?? env['LEADER_ELECTION_NAMESPACE'] ?? env['POD_NAMESPACE'] ?? ''
  if (namespace === '') {
    throw new CliError(
      'leader election needs a namespace: set --leader-election-namespace (LEADER_ELECTION_NAMESPACE), or switch it off with --disable-leader-election',
    )
  }
  return {
    namespace,
    name: flags.leaderElectionName ?? env['LEADER_ELECTION_NAME'] ?? 'karpenter-leader-election',
  }
}

/** A variable that cannot be read falls back to the default; a flag that cannot is an error. */
function duration(
  flag: string,
  value: string | undefined,
  variable: string | undefined,
  fallback: number,
): number {
  if (value === undefined) return parseDuration(variable ?? '') ?? fallback
  const ms = parseDuration(value)
  if (ms === undefined) throw new CliError(`${flag} ${value}: give a duration such as 10s or 1m30s`)
  return ms
}

function port(
  flag: string,
  value: string | undefined,
  variable: string | undefined,
  fallback: number,
): number {
  if (value === undefined) return integer(variable, fallback)
  const number = Number(value)
  if (!Number.isInteger(number) || number < 0 || number > 65_535)
    throw new CliError(`${flag} ${value}: give a port from 0 to 65535`)
  return number
}

function integer(text: string | undefined, fallback: number): number {
  return text !== undefined && /^-?\d+$/.test(text) ? Number(text) : fallback
}

function isFalse(text: string | undefined): boolean {
  return ['0', 'f', 'F', 'false', 'FALSE', 'False'].includes(text ?? '')
}

function isTrue(text: string | undefined): boolean {
  return ['1', 't', 'T', 'true', 'TRUE', 'True'].includes(text ?? '')
}

/** A variable that cannot be read falls back to the default; a flag that cannot is an error. */
function boolean(
  flag: string,
  value: string | true | undefined,
  variable: string | undefined,
  fallback: boolean,
): boolean {
  if (value === undefined) {
    if (isTrue(variable)) return true
    return isFalse(variable) ? false : fallback
  }
  if (value === true || value === 'true') return true
  if (value === 'false') return false
  throw new CliError(`${flag} ${value}: give true or false`)
}

/** The constraints of the scheduler configuration, which is given as text. */
function defaultSpread(flag: string | undefined, variable: string | undefined): Settings['defaultSpread'] {
  const name = flag === undefined ? 'SCHEDULER_CONFIG' : '--scheduler-config'
  const document = parseDocument(flag ?? variable ?? '')
  const [error] = document.errors
  if (error !== undefined)
    throw new CliError(`${name}: not valid YAML or JSON: ${error.message.split('\n')[0]}`)
  const read = defaultSpreadOf(document.toJS())
  if ('error' in read) throw new CliError(`${name}: ${read.error}`)
  return read.ok
}

function oneOf<T extends string>(
  variable: string,
  value: string | undefined,
  allowed: readonly [T, ...T[]],
): T {
  if (value === undefined) return allowed[0]
  const known = allowed.find((each) => each === value)
  if (known === undefined) throw new CliError(`${variable}=${value}: give ${allowed.join(' or ')}`)
  return known
}

function logLevel(text: string | undefined): LogLevel {
  if (text === undefined || text === '') return 'info'
  if (text === 'debug' || text === 'info' || text === 'error') return text
  throw new CliError(`log level ${text}: give debug, info or error`)
}
