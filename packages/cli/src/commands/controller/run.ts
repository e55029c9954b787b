/** `tenon controller`: runs the autoscaler. */
import { hostname } from 'node:os'
import { argv, memoryUsage } from 'node:process'
import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import {
  createClientReviews,
  fencedTransport,
  KubeConfigError,
  type KubeConfigOptions,
  type LoadedKubeConfig,
  loadKubeConfig,
} from '@tenon/kube'
import {
  addMemoryLimits,
  addProcessMetrics,
  crdProblem,
  type Journal,
  metricsHandler,
  type Operator,
  policyOf,
  probesHandler,
  reduceDetail,
  scrapeHandler,
} from '@tenon/operator'
import {
  type HttpHandler,
  JsonLogger,
  type Logger,
  type LogLevel,
  openLogOutputs,
  serveHttp,
  type SocketServer,
  SystemClock,
  SystemRandom,
  type Transport,
  uuid,
} from '@tenon/runtime'
import { CliError, startUpExitCode } from '../../errors.ts'
import type { Io } from '../../io.ts'
import { annotationsOf } from '../../leader-annotations.ts'
import { loadProviders, providerAsked } from '../../load-provider.ts'
import { controllerHelp } from '../../options/help.ts'
import { version } from '../../version.ts'
import { composeOperator } from './compose-operator.ts'
import { type Elect, Leadership, leasePace } from './leadership.ts'
import { type GuardedLimit, guardMemory } from './memory.ts'
import { controllerOptions, type ControllerOptions } from './options.ts'
import { cataloguePage, controllerPages, snapshotPage } from './pages.ts'
import type { RecordingParts } from './recording.ts'
import { reportStandingBack } from './standing-back.ts'
import { commitOf, podNamespace } from './surroundings.ts'
import { ThreadedElector } from './threaded-elector.ts'
import { openTracing } from './tracing.ts'
import type { JournalFiles } from './journal-files.ts'

/** A probe of the API server waits no longer. */
const discoveryTimeoutMs = 5000
/** Clients of metrics and probes send no body. */
const longestBodyBytes = 64
const longestRequestMs = 10_000
/** Reviews of clients of /metrics, beside all other requests. */
const reviewRate = { perSecond: 10, burst: 20 }
/** Renewals of the lease must not be late. */
const leaseRequestTimeoutMs = 5000
/** Limits of the debug port, which people and commands use. */
const debugGuard = { connections: 50, bodyBytes: 64 * 1024, requestMs: 10_000 }

/** Runs until the process is told to stop, or loses its lease. */
export async function runController(io: Io, args: readonly string[]): Promise<void> {
  const providers = await loadProviders(providerAsked(args, io.env), io.cwd).catch(asStartUpError)
  const options = controllerOptions(args, io.env, providers, podNamespace())
  if (options === 'help') {
    io.out(controllerHelp(providers.all))
    return
  }
  const outputs = openOutputs(io, options)
  const clock = new SystemClock()
  const random = new SystemRandom()
  const level: { value: LogLevel } = { value: options.logLevel }
  const commit = commitOf(io.env)
  const logger = new JsonLogger(clock, outputs.log.write, level, {
    ...(commit !== undefined && { commit }),
    onBroken: outputs.errors.write,
  })
  for (const { message, fields } of options.warnings) logger.warn(message, fields)
  const identity = `${hostname()}_${uuid(random)}`
  const process = { serviceName: 'tenon', instance: identity }
  const tracing = await openTracing(io.env, process, { clock, random, logger })
  const leadership = new Leadership({ election: options.leaderElection, identity, clock, random, logger })
  // In observe mode only requests about the lease are sent, whatever bug the rest may have.
  const isLeading = () => !options.settings.observeOnly && leadership.mayAct()
  // The same while another controller is at work, for what providers send by themselves.
  let others: Operator['others']
  const mayAct = () => isLeading() && others?.isOpen !== false
  const config = clusterOf(io, options)
  const operator = await composeOperator({
    cloud: { module: options.provider, env: { ...io.env, ...options.providerEnv } },
    api: {
      server: config.server,
      transport: fencedTransport(config.transport, mayAct),
      ...(options.rate && { rate: options.rate }),
    },
    mayAct,
    settings: options.settings,
    commit: commit ?? '',
    runtime: { clock, random, logger, tracer: tracing?.tracer },
  }).catch(asStartUpError)
  ;({ others } = operator)
  addProcessMetrics(operator.metrics.registry)
  const limits = memoryLimits(options.memoryLimitBytes)
  addMemoryLimits(operator.metrics.registry, limits)
  const profileHandler = await profiles(options, clock)
  const pages = controllerPages(level, {
    ...(profileHandler && { profiles: profileHandler }),
    snapshot: snapshotPage({ operator, identity, isLeading, clock }),
    catalogue: cataloguePage({ operator, provider: operator.provider }),
  })
  const journalFiles = await keepJournal(options.journalPath, operator.journal, logger)
  const ended = new AbortController()
  const ending = AbortSignal.any([io.interrupted, ended.signal])
  const pagesOf = { metrics: scrapeHandler(operator), probes: probes(operator, config.transport) }
  const servers = [...(await listen(options, pagesOf, { config, clock, logger }, ending))]
  const recording = recorded(options, { operator, config, runtime: { clock, random, logger } }, ending)
  try {
    const [metricsPort, healthProbePort] = servers.map(({ port }) => port)
    const debug = await listenForDebugging(options, metricsHandler(operator, pages), logger)
    if (debug !== undefined) servers.push(debug)
    const ports = { metricsPort, healthProbePort, debugPort: debug?.port ?? 'off' }
    logger.info('starting', {
      provider: options.provider.name,
      server: config.server,
      identity,
      ...ports,
      ...settingsOf(options),
    })
    const { defaultSpread } = options.settings
    if (defaultSpread.length > 0) logger.info('spreading pods by default', { constraints: defaultSpread })
    const mayReduce = policyOf(options.settings).reducesMetrics && options.settings.metricsDetail === 'full'
    const reduce = mayReduce
      ? () => {
          reduceDetail(operator.metrics.registry)
        }
      : undefined
    void guardMemory({ limits, collect: collector(), reduce, clock, logger }, io.interrupted)
    const place = debug && { port: debug.port, isInPod: podNamespace() !== undefined }
    const annotations = annotationsOf(identity, place, others !== undefined)
    const elect: Elect = (election, hooks) =>
      new ThreadedElector({
        ...hooks,
        data: {
          config: configOf(io, options),
          election: { ...election, ...leasePace, identity, annotations },
          requestTimeoutMs: leaseRequestTimeoutMs,
          userAgent: `karpenter/${version}`,
        },
        logger,
      })
    if (options.leaderElection)
      reportStandingBack(others, options.leaderElection, { transport: config.transport, clock, logger })
    await leadership.run(operator, elect, io.interrupted)
  } finally {
    ended.abort()
    await Promise.all([
      recording,
      journalFiles?.close(),
      tracing?.close(),
      ...servers.map((server) => server.close()),
    ])
    outputs.log.close()
    outputs.errors.close()
  }
}

/** Starts recording if enabled; only then is its code loaded. */
async function recorded(
  { recordPath }: ControllerOptions,
  {
    operator,
    config,
    runtime,
  }: Pick<RecordingParts, 'operator' | 'runtime'> & { readonly config: LoadedKubeConfig },
  signal: AbortSignal,
): Promise<void> {
  if (recordPath === '') return
  const { keepRecording } = await import('./recording.ts')
  const { server, transport } = config
  await keepRecording({ path: recordPath, server, transport, operator, runtime }, signal)
}

/** Errors at start: the exit code tells that a setting is wrong. */
function asStartUpError(cause: unknown): never {
  if (!(cause instanceof CliError)) throw cause
  throw new CliError(cause.message, { cause, exitCode: startUpExitCode })
}

/** Options to log at start. */
function settingsOf({ settings, leaderElection }: ControllerOptions): Readonly<Record<string, unknown>> {
  const { featureGates, compatibility, cpuRequestsMillis, observeOnly } = settings
  return {
    featureGates,
    compatibility,
    observeOnly,
    cpuRequestsMillis,
    leaderElection: leaderElection ?? 'off',
  }
}

function openOutputs(io: Io, { logOutputs, logErrorOutputs }: ControllerOptions) {
  const open = (flag: string, list: string) => {
    try {
      return openLogOutputs(list, io)
    } catch (cause) {
      const why = cause instanceof Error ? cause.message : String(cause)
      throw new CliError(`--${flag}=${list}: ${why}`, { cause, exitCode: startUpExitCode })
    }
  }
  return {
    log: open('log-output-paths', logOutputs),
    errors: open('log-error-output-paths', logErrorOutputs),
  }
}

function configOf(io: Io, { kubeconfig, context }: ControllerOptions): KubeConfigOptions {
  return {
    env: io.env,
    ...(kubeconfig !== (io.env['KUBECONFIG'] ?? '') && { kubeconfig }),
    ...(context !== '' && { context }),
  }
}

function clusterOf(io: Io, options: ControllerOptions): LoadedKubeConfig {
  try {
    return loadKubeConfig(configOf(io, options))
  } catch (cause) {
    if (!(cause instanceof KubeConfigError)) throw cause
    throw new CliError(cause.message, { cause, exitCode: startUpExitCode })
  }
}

/** The profiler if it is enabled; only then is its code loaded. */
async function profiles(
  { isProfiling }: ControllerOptions,
  clock: SystemClock,
): Promise<HttpHandler | undefined> {
  if (!isProfiling) return undefined
  const { openProfiles } = await import('./profiles.ts')
  return await openProfiles(clock, argv)
}

function probes(operator: Operator, transport: Transport): HttpHandler {
  return probesHandler(operator, {
    crdProblem: async (signal) => {
      const timeout = AbortSignal.timeout(discoveryTimeoutMs)
      return await crdProblem(transport, signal === undefined ? timeout : AbortSignal.any([signal, timeout]))
    },
  })
}

/** The debug port is for people: if it cannot be opened, the controller still runs. */
async function listenForDebugging(
  { debugPort }: ControllerOptions,
  pages: HttpHandler,
  logger: JsonLogger,
): Promise<SocketServer | undefined> {
  if (debugPort === 0) return undefined
  try {
    return await serveHttp(pages, { host: '127.0.0.1', port: debugPort, guard: debugGuard })
  } catch (error) {
    logger.warn('/debug is not served; choose another port with --debug-port', { error })
    return undefined
  }
}

/** Memory use of the process, and a function that collects garbage. */
function collector(): () => void {
  setFlagsFromString('--expose-gc')
  return runInNewContext('gc') as () => void
}

/** @param containerBytes 0 if the container has no limit. */
function memoryLimits(containerBytes: number): readonly GuardedLimit[] {
  const heap: GuardedLimit = {
    name: 'heap',
    limitBytes: getHeapStatistics().heap_size_limit,
    usedBytes: () => getHeapStatistics().used_heap_size,
    fix: 'raise --max-old-space-size in NODE_OPTIONS',
  }
  if (containerBytes === 0) return [heap]
  const container: GuardedLimit = {
    name: 'container',
    limitBytes: containerBytes,
    usedBytes: () => memoryUsage.rss(),
    fix: 'raise the memory limit of the container (MEMORY_LIMIT)',
  }
  return [container, heap]
}

/** @throws CliError if a port cannot be opened, or the certificate of /metrics not be read. */
async function listen(
  { metricsPort, metricsCertPath, healthProbePort, maxConnections }: ControllerOptions,
  pages: { readonly metrics: HttpHandler; readonly probes: HttpHandler },
  surroundings: { readonly config: LoadedKubeConfig; readonly clock: SystemClock; readonly logger: Logger },
  signal: AbortSignal,
): Promise<readonly SocketServer[]> {
  const guard = { connections: maxConnections, bodyBytes: longestBodyBytes, requestMs: longestRequestMs }
  const host = '0.0.0.0'
  const open = async (flag: string, serve: () => Promise<SocketServer>) =>
    await serve().catch((cause: Error) => {
      const message = `${cause.message}; choose another with --${flag}`
      throw new CliError(message, { cause, exitCode: startUpExitCode })
    })
  const metrics =
    metricsCertPath === undefined
      ? await open('metrics-port', () => serveHttp(pages.metrics, { host, port: metricsPort, guard }))
      : await open('metrics-port or --metrics-cert-path', async () => {
          const { serveSecurely } = await import('./secure-metrics.ts')
          const { config, ...rest } = surroundings
          const { transport } = config
          const reviews = createClientReviews({ transport, clock: rest.clock, rate: reviewRate })
          const port = { host, port: metricsPort, guard, folder: metricsCertPath }
          return await serveSecurely(pages.metrics, port, { ...rest, reviews }, signal)
        })
  try {
    const probing = () => serveHttp(pages.probes, { host, port: healthProbePort, guard })
    return [metrics, await open('health-probe-port', probing)]
  } catch (error) {
    await metrics.close()
    throw error
  }
}

/**
 * Reads the journal of the directory and appends to it. Failures are only logged: the controller must run
 * without its journal.
 * @param path empty for none.
 */
async function keepJournal(
  path: string,
  journal: Journal,
  logger: Logger,
): Promise<JournalFiles | undefined> {
  if (path === '') return undefined
  const files = await import('./journal-files.ts')
  try {
    return await files.JournalFiles.attach(path, journal, logger)
  } catch (error) {
    logger.error('the journal is kept in memory only; fix the directory, or set --journal-path to another', {
      directory: path,
      error,
    })
    return undefined
  }
}
