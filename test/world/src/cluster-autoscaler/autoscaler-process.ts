/** A process of `tenon cluster-autoscaler` on virtual time. */
import { type AutoscalerPlan, readOptions, runAutoscaler } from '@tenon/cluster-autoscaler'
import {
  eventLoopTurns,
  type Logger,
  SeededRandom,
  type SocketServer,
  type Transport,
  type VirtualClock,
} from '@tenon/runtime'
import { ProcessClock } from '../simulation/process/process-clock.ts'
import { ProcessPort } from '../simulation/process/process-port.ts'
import { electorOver } from './elector.ts'

export const host = '127.0.0.1'
export const apiPort = 6443

/** A running autoscaler process. */
export interface AutoscalerProcess {
  /** As in the lease. */
  readonly identity: string
  /** The clock of the process, which can be wrong or paused. */
  readonly clock: ProcessClock
  /** All connections of the process, which can be made to crash. */
  readonly port: ProcessPort
  /** Stops it cleanly, and waits for the end. */
  readonly end: () => Promise<void>
  /** Why it ended by itself; undefined while it runs. */
  readonly failure: () => unknown
}

interface ProcessSetup {
  readonly seed: number
  /** Number of processes started before. */
  readonly number: number
  readonly flags: readonly string[]
  /** As in `--cloud-provider`. */
  readonly provider: string
  readonly logger: Logger
  /** Connects a process to the API server. */
  readonly api: (identity: string) => Transport
  /** What the process needs to change node groups; its connections go through `port`. */
  readonly cloud: (
    port: ProcessPort,
    identity: string,
  ) => Pick<AutoscalerPlan, 'cloud' | 'env' | 'management'>
}

/** Starts a process; several compete for one lease. */
export function startProcess(
  world: VirtualClock,
  { seed, number, flags, provider, logger, api, cloud }: ProcessSetup,
): AutoscalerProcess {
  const clock = new ProcessClock(world)
  const read = readOptions(flags, [provider])
  if (read.kind !== 'options') throw new Error(`the flags are refused: ${JSON.stringify(read)}`)
  const port = new ProcessPort(clock)
  const identity = `autoscaler-${number}`
  const transport = port.guard(api(identity))
  const candidate = {
    options: read.autoscaler,
    process: read.process,
    identity,
    clock,
    random: new SeededRandom(`autoscaler-${seed}-${number}`),
    logger,
  }
  const plan: AutoscalerPlan = {
    ...candidate,
    ...electorOver(transport, candidate),
    ...cloud(port, identity),
    warnings: read.warnings,
    kubernetes: { transport, server: `https://${host}:${apiPort}` },
    serve: () => Promise.resolve(noServer),
    userAgent: 'tenon/world',
    turns: eventLoopTurns,
  }
  const ending = new AbortController()
  let failure: unknown
  let isOver = false
  const run = async () => {
    try {
      await runAutoscaler(plan, ending.signal)
    } catch (error) {
      failure = error
    }
    isOver = true
  }
  const running = run()
  return {
    identity,
    clock,
    port,
    failure: () => failure,
    end: async () => {
      ending.abort(new Error('asked to end'))
      await world.advanceUntil(() => isOver, 60_000)
      await running
    },
  }
}

const noServer: SocketServer = { port: 8085, url: `http://${host}:8085`, close: () => Promise.resolve() }
