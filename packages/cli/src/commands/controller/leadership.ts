/** Leader election: acquires the lease, leads once the caches are synced, and hands over cleanly. */
import type { LeaderElector } from '@tenon/kube'
import type { Operator } from '@tenon/operator'
import { type Clock, type Logger, type Random, StructuredError } from '@tenon/runtime'
import { CliError } from '../../errors.ts'
import type { LeadershipHooks } from './threaded-elector.ts'

export const leasePace = { leaseDurationMs: 15_000, renewDeadlineMs: 10_000, retryPeriodMs: 2000 }
/** Who does not know the cluster by then stands for the lease all the same: perhaps nobody else does. */
const headStartMs = 10_000
/** A leader gives up when nothing has come for so long of a list that it needs (operations.md 1). */
const syncLimitMs = 2 * 60_000
/** What is in progress at the end has so long to finish, then it is cut off. */
const quietLimitMs = 800
/** What nobody waits for: the last events, and the thread that decided. */
const flushLimitMs = 300

/** The lease that is stood for. */
interface Election {
  readonly namespace: string
  readonly name: string
}

export interface LeadershipOptions {
  /** Absent when this process acts without asking. */
  readonly election: Election | undefined
  readonly identity: string
  readonly clock: Clock
  readonly random: Random
  readonly logger: Logger
}

/** Makes the candidate for the lease. */
export type Elect = (election: Election, hooks: LeadershipHooks) => LeaderElector

/** What leads. */
type Led = Pick<Operator, 'observe' | 'lead' | 'quiesce' | 'stop' | 'waitingFor' | 'arrivals'> & {
  readonly framework: Pick<Operator['framework'], 'leads'>
}

/** Leadership of one process, from its start to its end. */
export class Leadership {
  readonly #options: LeadershipOptions
  #elector: LeaderElector | undefined
  #isOver = false

  constructor(options: LeadershipOptions) {
    this.#options = options
  }

  /** Whether this process may change anything, now. */
  mayAct(): boolean {
    if (this.#isOver) return false
    return this.#options.election === undefined || this.#elector?.isLeader === true
  }

  /**
   * Runs the operator until `signal` aborts.
   * @throws CliError when the lease is lost, or a leader cannot follow the cluster.
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
    // The lease is kept until nothing is in progress any more: who comes next must not meet it. Then it goes
    // first, as others wait for it.
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

/** Whether `work` has ended well after `ms` at most; it goes on. */
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

/** Told elsewhere. */
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
