/** `tenon cluster-autoscaler`: node groups scaled with the flags of Cluster Autoscaler. */
import { readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { argv } from 'node:process'
import {
  bestOptionsPath,
  callUnary,
  eventSource,
  flagHelp,
  grpcExpander,
  LeadershipLostError,
  type OptionsAsked,
  openLogs,
  type ProcessOptions,
  readOptions,
  readSchedulerProfile,
  type SchedulerProfile,
  runAutoscaler,
} from '@tenon/cluster-autoscaler'
import { isProviderSettingError, type NodeGroupModule, type ProviderModule } from '@tenon/provider'
import {
  eventLoopTurns,
  type HttpHandler,
  type Logger,
  type SocketServer,
  SystemClock,
  SystemRandom,
  serveHttp,
} from '@tenon/runtime'
import { CommanderError } from 'commander'
import { addProcessMetrics } from '@tenon/operator/process-metrics'
import { CliError, startUpExitCode } from '../../errors.ts'
import type { Io } from '../../io.ts'
import { builtInProviders } from '../../providers.ts'
import { version } from '../../version.ts'
import { connectionsOf } from './connection.ts'
import { ThreadedElector } from '../controller/threaded-elector.ts'
import { openTracing } from '../controller/tracing.ts'

const program = 'tenon cluster-autoscaler'
/** Renewals of the lease must not be late. */
const leaseRequestTimeoutMs = 5000
/** Clients of this port send small requests without a body. */
const guard = { connections: 256, bodyBytes: 64, requestMs: 10_000 }

type Options = Extract<OptionsAsked, { kind: 'options' }>

function clusterAutoscalerHelp(): string {
  return flagHelp(program, cloudNames())
}

/** The exit code of Go's `klog.Fatal`. */
const fatalExitCode = 255

/** Runs until the process is told to stop, or loses its lease. */
export async function runClusterAutoscaler(io: Io, args: readonly string[]): Promise<void> {
  try {
    await runWith(io, args)
  } catch (error) {
    throw error instanceof CliError && error.exitCode === 1 ? error.exitingWith(fatalExitCode) : error
  }
}

async function runWith(io: Io, args: readonly string[]): Promise<void> {
  const asked = readOptions(args, cloudNames())
  switch (asked.kind) {
    case 'help':
      io.out(clusterAutoscalerHelp())
      return
    case 'usage':
      throw new CliError(`${asked.message}\nUsage: ${program} [flags] (--help lists them)`, {
        exitCode: startUpExitCode,
      })
    case 'fatal':
      throw new CliError(asked.message)
    case 'options':
      await run(io, asked)
  }
}

function cloudNames(): readonly string[] {
  return builtInProviders.flatMap((each) => (each.nodeGroups === undefined ? [] : [cloudName(each)]))
}

/** As in `--cloud-provider`. */
function cloudName({ name, nodeGroupsCloud = name }: ProviderModule): string {
  return nodeGroupsCloud
}

async function run(io: Io, { autoscaler, process, warnings }: Options): Promise<void> {
  const clock = new SystemClock()
  const defaultConstraints = defaultConstraintsOf(process.schedulerConfigFile)
  const logs = openLogsOf(process, clock, io)
  const random = new SystemRandom()
  const cloud = await cloudOf(process)
  const tracing = await openTracing(
    io.env,
    { serviceName: 'tenon-cluster-autoscaler', instance: hostname() },
    { clock, random, logger: logs.logger },
  )
  try {
    const { workload, management } = connectionsOf(process, io.env)
    const { config, ...kubernetes } = workload
    const { leaderElection, leaseName } = process
    const { namespace } = autoscaler.status
    const identity = hostname()
    const userAgent = `tenon/${version}`
    const profiles = await profilesOf(process, clock)
    const expander = grpcExpanderOf(autoscaler.scaleUp, clock, logs.logger)
    await runAutoscaler(
      {
        options: { ...autoscaler, loop: { ...autoscaler.loop, defaultConstraints } },
        process,
        warnings,
        cloud,
        env: io.env,
        kubernetes,
        ...(management !== undefined && { management }),
        serve: (handler) => listen(handler, process),
        ...(profiles !== undefined && { profiles }),
        ...(expander !== undefined && { grpcExpander: expander }),
        addProcessMetrics,
        ...(leaderElection !== undefined && {
          elect: (hooks) =>
            new ThreadedElector({
              ...hooks,
              data: {
                config,
                election: { ...leaderElection, namespace, name: leaseName, identity, writes: 'update' },
                component: eventSource,
                requestTimeoutMs: leaseRequestTimeoutMs,
                userAgent,
              },
              logger: logs.logger,
            }),
        }),
        identity,
        userAgent,
        clock,
        random,
        tracer: tracing?.tracer,
        turns: eventLoopTurns,
        logger: logs.logger,
      },
      io.interrupted,
    )
  } catch (cause) {
    if (cause instanceof LeadershipLostError || isProviderSettingError(cause))
      throw new CliError(cause.message, { cause })
    throw cause
  } finally {
    await tracing?.close()
    logs.close()
  }
  // A shutdown by any signal is a success.
  if (io.interrupted.aborted) throw new CommanderError(0, 'tenon.answer', '')
}

/** A slow server delays a loop by no more than this (cluster-autoscaler.md 4.5). */
const grpcLimits = { timeoutMs: 5000, mostBytes: 128 * 2 ** 20 }

/**
 * Undefined unless `grpc` is among the expanders.
 * @throws CliError if certificates cannot be read.
 */
function grpcExpanderOf(
  { expanders, grpcExpanderUrl: address, grpcExpanderCert: path }: Options['autoscaler']['scaleUp'],
  clock: SystemClock,
  logger: Logger,
): ReturnType<typeof grpcExpander> | undefined {
  if (!expanders.includes('grpc')) return undefined
  let certificateAuthority: string
  try {
    certificateAuthority = readFileSync(path, 'utf8')
  } catch (cause) {
    throw new CliError(`--grpc-expander-cert=${path} cannot be read: ${(cause as Error).message}`, { cause })
  }
  const target = { address, certificateAuthority, clock, ...grpcLimits }
  return grpcExpander({
    call: (message, signal) => callUnary(target, bestOptionsPath, message, signal),
    logger,
  })
}

async function cloudOf({ cloudProvider }: ProcessOptions): Promise<NodeGroupModule> {
  const provider = builtInProviders.find((each) => cloudName(each) === cloudProvider)
  const open = provider?.nodeGroups
  if (open === undefined) throw new CliError(`--cloud-provider=${cloudProvider}: it has no node groups`)
  return await open()
}

function openLogsOf({ logs }: ProcessOptions, clock: SystemClock, io: Io): ReturnType<typeof openLogs> {
  try {
    return openLogs(logs, clock, io.err)
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new CliError(`--log-file=${logs.file}: ${why}`, { cause })
  }
}

/** @throws CliError if the file is invalid. */
function defaultConstraintsOf(path: string): SchedulerProfile['defaultConstraints'] {
  if (path === '') return []
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (cause) {
    throw new CliError(`--scheduler-config-file=${path} cannot be read: ${(cause as Error).message}`, {
      cause,
    })
  }
  const read = readSchedulerProfile(text)
  if ('problem' in read) throw new CliError(`--scheduler-config-file=${path}: ${read.problem}`)
  return read.profile.defaultConstraints
}

/** Loads the profiler only if profiling is enabled. */
async function profilesOf(
  { isProfiling }: ProcessOptions,
  clock: SystemClock,
): Promise<HttpHandler | undefined> {
  if (!isProfiling) return undefined
  const { openProfiles } = await import('../controller/profiles.ts')
  return await openProfiles(clock, argv)
}

async function listen(handler: HttpHandler, { listen: address }: ProcessOptions): Promise<SocketServer> {
  try {
    return await serveHttp(handler, { ...address, guard })
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new CliError(`${why}; choose another with --address`, { cause })
  }
}
