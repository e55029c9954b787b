/* oxlint-disable unicorn/require-post-message-target-origin -- threads, not windows */
/** Entry point of the thread that holds the lease, so that neither decisions nor parsing delay a renewal. */
import { parentPort, workerData } from 'node:worker_threads'
import {
  createEventRecorder,
  createKubeClient,
  createLeaderElector,
  directKubeConfig,
  type KubeConfigOptions,
  type LeaderElectorOptions,
  loadKubeConfig,
  type ServerAddress,
} from '@tenon/kube'
import {
  type LogFields,
  type Logger,
  type LogLevel,
  processMonotonic,
  SystemClock,
  SystemRandom,
} from '@tenon/runtime'

export interface LeaseThreadData {
  readonly config: KubeConfigOptions | ServerAddress
  readonly election: Pick<
    LeaderElectorOptions,
    | 'namespace'
    | 'name'
    | 'identity'
    | 'annotations'
    | 'writes'
    | 'leaseDurationMs'
    | 'renewDeadlineMs'
    | 'retryPeriodMs'
  >
  /** Reporting component of events; default: as in the recorder. */
  readonly component?: string
  readonly requestTimeoutMs: number
  readonly userAgent: string
  /** Until when this process leads, in {@link processMonotonic} time. */
  readonly until: Float64Array
}

/** `end`: release the lease. */
export type ToLeaseThread = 'end'

export type FromLeaseThread =
  | { readonly kind: 'started' | 'stopped' | 'ended' }
  | {
      readonly kind: 'logged'
      readonly level: LogLevel
      readonly message: string
      readonly fields: LogFields
    }

const { config, election, component, requestTimeoutMs, userAgent, until } = workerData as LeaseThreadData
const clock = new SystemClock()
const random = new SystemRandom()
const logger = forwardingLogger({})
const { transport } = 'url' in config ? directKubeConfig(config) : loadKubeConfig(config)
const client = createKubeClient({ transport, clock, userAgent, requestTimeoutMs })
const events = createEventRecorder({
  client,
  clock,
  random,
  logger,
  ...(component !== undefined && { component }),
})
const elector = createLeaderElector({
  ...election,
  client,
  clock,
  random,
  logger,
  events,
  onRenewed: (leftMs) => {
    until[0] = processMonotonic() + leftMs
  },
  onStarted: () => {
    say({ kind: 'started' })
  },
  onStopped: () => {
    until[0] = 0
    say({ kind: 'stopped' })
  },
})

parentPort?.once('message', () => {
  void end()
})
elector.start()

async function end(): Promise<void> {
  await elector.stop()
  await events.flush()
  say({ kind: 'ended' })
  parentPort?.close()
}

function say(message: FromLeaseThread): void {
  parentPort?.postMessage(message)
}

/** Sends log lines to the main thread, which writes them in its own format. */
function forwardingLogger(context: LogFields): Logger {
  const at =
    (level: LogLevel) =>
    (message: string, fields: LogFields = {}) => {
      const all = Object.entries({ ...context, ...fields }).map(([key, value]) => [
        key,
        // Other members of an error may not be cloneable.
        value instanceof Error ? value.message : value,
      ])
      say({ kind: 'logged', level, message, fields: Object.fromEntries(all) as LogFields })
    }
  return {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    with: (fields) => forwardingLogger({ ...context, ...fields }),
  }
}
