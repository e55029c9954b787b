import { hostname } from 'node:os'
import { createLeaderElector, KubeConfigError, type LoadedKubeConfig, loadKubeConfig } from '@tenon/kube'
import { metricsHandler, type Operator, probesHandler } from '@tenon/operator'
import {
  type Clock,
  JsonLogger,
  type Logger,
  type Random,
  SystemClock,
  SystemRandom,
  serveHttp,
  uuid,
} from '@tenon/runtime'
import { CliError } from '../errors.ts'
import type { Io } from '../io.ts'
import { composeOperator, type ComposedOperator } from './compose-operator.ts'
import { type ControllerFlags, controllerOptions } from './controller-options.ts'

const lease = { leaseDurationMs: 15_000, renewDeadlineMs: 10_000, retryPeriodMs: 2000 }

/** `tenon controller`. Runs until the process is asked to end, or loses its lease. */
export async function runController(io: Io, flags: ControllerFlags): Promise<void> {
  const options = controllerOptions(flags, io.env)
  const clock = new SystemClock()
  const random = new SystemRandom()
  const logger = new JsonLogger(clock, io.out, { value: options.logLevel }, { logger: 'controller' })
  const config = clusterOf(io, flags)
  const composed = await composeOperator({
    provider: flags.provider,
    env: io.env,
    transport: config.transport,
    server: config.server,
    settings: options.settings,
    rate: { perSecond: options.qps, burst: options.burst },
    clock,
    random,
    logger,
  })
  const { operator } = composed
  const servers = await listen(operator, options.metricsPort, options.healthProbePort)
  try {
    logger.info('starting', { provider: flags.provider, server: config.server })
    const { defaultSpread } = options.settings
    if (defaultSpread.length > 0) logger.info('spreading pods by default', { constraints: defaultSpread })
    await operator.observe(io.interrupted)
    const deps = { clock, random, logger }
    await (options.leaderElection === undefined
      ? leadUntil(operator, io.interrupted)
      : leadWhileElected(composed, options.leaderElection, io.interrupted, deps))
  } finally {
    await operator.stop()
    await Promise.all(servers.map((server) => server.close()))
  }
}

function clusterOf(io: Io, flags: ControllerFlags): LoadedKubeConfig {
  try {
    return loadKubeConfig({
      env: io.env,
      ...(flags.kubeconfig !== undefined && { kubeconfig: flags.kubeconfig }),
      ...(flags.context !== undefined && { context: flags.context }),
    })
  } catch (cause) {
    if (cause instanceof KubeConfigError) throw new CliError(cause.message, { cause })
    throw cause
  }
}

async function listen(operator: Operator, metricsPort: number, probePort: number) {
  const open = async (name: string, port: number, handler: Parameters<typeof serveHttp>[0]) =>
    await serveHttp(handler, { host: '0.0.0.0', port }).catch((cause: Error) => {
      throw new CliError(`${name}: ${cause.message}; choose another with --${name}-port`, { cause })
    })
  const metrics = await open('metrics', metricsPort, metricsHandler(operator))
  try {
    return [metrics, await open('health-probe', probePort, probesHandler(operator))]
  } catch (error) {
    await metrics.close()
    throw error
  }
}

async function leadUntil(operator: Operator, signal: AbortSignal): Promise<void> {
  operator.lead()
  await aborted(signal)
}

async function leadWhileElected(
  { operator, leaseClient }: ComposedOperator,
  { namespace, name }: { readonly namespace: string; readonly name: string },
  signal: AbortSignal,
  deps: { readonly clock: Clock; readonly random: Random; readonly logger: Logger },
): Promise<void> {
  const lost = new AbortController()
  const elector = createLeaderElector({
    client: leaseClient,
    ...deps,
    ...lease,
    namespace,
    name,
    identity: `${hostname()}_${uuid(deps.random)}`,
    onStarted: () => {
      operator.lead()
    },
    onStopped: () => {
      lost.abort()
    },
  })
  elector.start()
  await aborted(AbortSignal.any([signal, lost.signal]))
  await operator.stop()
  await elector.stop()
  if (!signal.aborted) throw new CliError(`lost lease ${namespace}/${name}; another controller leads`)
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
