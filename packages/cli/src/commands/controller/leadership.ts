/** Leader election: acquires the lease, leads once the caches have synced, and hands over cleanly. */
import type { LeaderElector } from '@tenon/kube'
import type { Operator } from '@tenon/operator'
import { type Clock, type Logger, type Random, StructuredError } from '@tenon/runtime'
import { CliError } from '../../errors.ts'
import type { LeadershipHooks } from './threaded-elector.ts'

export const leasePace = { leaseDurationMs: 15_000, renewDeadlineMs: 10_000, retryPeriodMs: 2000 }
/** A candidate whose caches have not synced by then stands for election anyway: there may be no other. */
const headStartMs = 10_000
/** A leader gives up if a required list has made no progress for this long (operations.md 1). */
const syncLimitMs = 2 * 60_000
/** How long work in progress may take at shutdown before it is aborted. */
const quietLimitMs = 800
/** How long the last events and the decision thread may take at shutdown. */
const flushLimitMs = 300

/** The lease to acquire. */
interface Election {
  readonly namespace: string
  readonly name: string
}

export interface LeadershipOptions {
  /** Absent if this process leads without a lease. */
  readonly election: Election | undefined
  readonly identity: string
  readonly clock: Clock
  readonly random: Random
  readonly logger: Logger
}

export type Elect = (election: Election, hooks: LeadershipHooks) => LeaderElector

/** The parts of the operator that leadership needs. */
type Led = Pick<Operator, 'observe' | 'lead' | 'quiesce' | 'stop' | 'waitingFor' | 'arrivals'> & {
  readonly framework: Pick<Operator['framework'], 'leads'>
}

/** The leadership of one process, from start to end. */
export class Leadership {
  readonly #options: LeadershipOptions
  #elector: LeaderElector | undefined
  #isOver = false

  constructor(options: LeadershipOptions) {
    this.#options = options
  }

  /** Whether this process may change anything now. */
  mayAct(): boolean {
    if (this.#isOver) return false
    return this.#options.election === undefined || this.#elector?.isLeader === true
  }

  /**
   * Runs the operator until `signal` aborts.
   * @throws CliError if the lease is lost, or a leader cannot list the cluster.
   */
  async run(operator: Led, elect: Elect, signal: AbortSignal): Promise<void> {
    const { election, clock, logger } = this.#options
    const failed = new AbortController()
    const ending = AbortSignal.any([signal, failed.signal])
    const observed = operator.observe(ending)
    observed.catch(ignored)
    const lead = () => {
      this.#lead(operator, observed, ending).catch((error: unknown) => {
        failed.abort(error)
      })
    }
    if (election === undefined) lead()
    else {
      const { name } = election
      operator.framework.leads(name, false)
      await settled(observed, clock, headStartMs)
      this.#elector = elect(election, {
        onStarted: () => {
          operator.framework.leads(name, true)
          lead()
        },
        onStopped: () => {
          operator.framework.leads(name, false)
          failed.abort(
            new CliError(
              `lost lease ${election.namespace}/${name}; another replica may lead, this one exits`,
            ),
          )
        },
      })
      if (!ending.aborted) this.#elector.start()
    }
    await aborted(ending)
    logger.info('stopping', { isAsked: signal.aborted })
    // The lease is kept until no work is in progress, so that the next leader does not race with it. Then it is
    // released first, as others wait for it.
    await settled(operator.quiesce(), clock, quietLimitMs)
    this.#isOver = true
    await this.#elector?.stop()
    await settled(operator.stop(), clock, flushLimitMs)
    if (!signal.aborted) throw failed.signal.reason
  }

  async #lead(operator: Led, observed: Promise<void>, ending: AbortSignal): Promise<void> {
    const { clock, logger } = this.#options
    let missing: readonly string[] = []
    while (missing.length === 0) {
      const before = operator.arrivals
      const isKnown = await settled(observed, clock, syncLimitMs)
      if (ending.aborted) return
      if (isKnown) {
        operator.lead()
        return
      }
      if (operator.waitingFor.length === 0) await observed
      missing = operator.waitingFor.filter((kind) => operator.arrivals.get(kind) === before.get(kind))
      if (missing.length === 0)
        logger.warn('still listing', { arrived: Object.fromEntries(operator.arrivals) })
    }
    const error = new StructuredError('the cluster cannot be watched', {
      waitingFor: missing,
      after: '2m0s',
    })
    logger.error('giving up', { error })
    throw new CliError(
      `leading for two minutes without a list of ${missing.join(', ')}: are the CustomResourceDefinitions installed (tenon crds | kubectl apply --server-side -f -), and may this account list and watch them?`,
    )
  }
}

/** Whether `work` resolved within `ms`. Does not abort it. */
async function settled(work: Promise<unknown>, clock: Clock, ms: number): Promise<boolean> {
  return await new Promise((resolve) => {
    const cancel = clock.after(ms, () => {
      resolve(false)
    })
    const end = (isWell: boolean) => () => {
      cancel()
      resolve(isWell)
    }
    work.then(end(true), end(false))
  })
}

/** For a promise whose rejection is handled where it is awaited. */
function ignored(): void {}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      resolve()
    }
    if (signal.aborted) end()
    else signal.addEventListener('abort', end, { once: true })
  })
}
