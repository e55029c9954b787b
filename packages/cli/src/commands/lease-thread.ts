/* oxlint-disable unicorn/require-post-message-target-origin -- threads, not windows */
/** Entry of the thread that holds the lease: no decision and no parsing delays a renewal. */
import { parentPort, workerData } from 'node:worker_threads'
import {
  createEventRecorder,
  createKubeClient,
  createLeaderElector,
  type KubeConfigOptions,
  loadKubeConfig,
} from '@tenon/kube'
import { JsonLogger, type LogLevel, processMonotonic, SystemClock, SystemRandom } from '@tenon/runtime'

/** What the thread is started with. */
export interface LeaseThreadData {
  readonly config: KubeConfigOptions
  readonly election: {
    readonly namespace: string
    readonly name: string
    readonly identity: string
    readonly annotations?: Readonly<Record<string, string>>
    readonly leaseDurationMs: number
    readonly renewDeadlineMs: number
    readonly retryPeriodMs: number
  }
  readonly requestTimeoutMs: number
  readonly userAgent: string
  readonly logLevel: LogLevel
  /** Until when this process leads, as {@link processMonotonic} tells it. */
  readonly until: Float64Array
}

/** `end`: gives the lease back. */
export type ToLeaseThread = 'end'

export type FromLeaseThread =
  | { readonly kind: 'started' | 'stopped' | 'ended' }
  | { readonly kind: 'logged'; readonly line: string }

const { config, election, requestTimeoutMs, userAgent, logLevel, until } = workerData as LeaseThreadData
const clock = new SystemClock()
const random = new SystemRandom()
const logger = new JsonLogger(
  clock,
  (line) => {
    say({ kind: 'logged', line })
  },
  { value: logLevel },
)
const { transport } = loadKubeConfig(config)
const client = createKubeClient({ transport, clock, userAgent, requestTimeoutMs })
const events = createEventRecorder({ client, clock, random, logger })
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
