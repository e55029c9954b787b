/** One migration at a time in a cluster (adoption.md 2). */
import { kinds } from '@tenon/api'
import { createLeaderElector, type LeaderElector, type WatchingKubeClient } from '@tenon/kube'
import { type Clock, durationText, type Random, silentLogger } from '@tenon/runtime'
import { CliError } from '../../errors.ts'

/** The same for all migrations of a cluster: two of them would count on the same room for their pods. */
export const lockLease = { namespace: 'kube-system', name: 'tenon-migrate' } as const
const leaseText = `lease ${lockLease.namespace}/${lockLease.name}`
/** So long a killed migration keeps the next one from beginning. */
const leaseDurationMs = 30_000
const renewDeadlineMs = 20_000
const retryPeriodMs = 4_000
const lookMs = 1_000

export interface LockOptions {
  /** Writes the lease whoever holds it. */
  readonly client: WatchingKubeClient
  readonly clock: Clock
  readonly random: Random
  /** Unique per process; others read it. */
  readonly identity: string
  readonly signal: AbortSignal
  /** Another process has the lease, and may be dead. Called once at most. */
  readonly onWaiting: (holder: string) => void
}

/** A Lease that is held, and renewed, while a migration changes something. */
export class MigrationLock {
  #elector: LeaderElector | undefined

  get isHeld(): boolean {
    return this.#elector?.isLeader === true
  }

  /**
   * Runs `work` while the lease is held. Its signal is aborted when the lease is lost.
   * @throws CliError if another process holds and renews the lease, or if it was lost.
   */
  async hold<T>(options: LockOptions, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const lost = new AbortController()
    const started = Promise.withResolvers<void>()
    this.#elector = createLeaderElector({
      ...options,
      ...lockLease,
      logger: silentLogger,
      leaseDurationMs,
      renewDeadlineMs,
      retryPeriodMs,
      onStarted: started.resolve,
      onStopped: () => {
        lost.abort()
      },
    })
    this.#elector.start()
    let isTaken = false
    try {
      await this.#acquired(options, started.promise)
      isTaken = true
      return await work(AbortSignal.any([options.signal, lost.signal]))
    } catch (cause) {
      // A write that was not sent may come before the signal.
      if (this.isHeld || !isTaken) throw cause
      throw new CliError(
        `${leaseText} could not be renewed, so that another migration may begin: nothing more is changed. Run the command again to go on`,
        { cause },
      )
    } finally {
      await this.#elector.stop()
    }
  }

  /** A lease that does not change is that of a process that was killed: it ends by itself. */
  async #acquired(
    { client, clock, identity, onWaiting, signal }: LockOptions,
    started: Promise<void>,
  ): Promise<void> {
    const endMs = clock.monotonic() + leaseDurationMs + renewDeadlineMs
    let seen: string | undefined
    while (!this.isHeld) {
      const lease = await client.get(kinds.lease, lockLease, { signal })
      const { holderIdentity: holder = '', renewTime = '' } = lease?.spec ?? {}
      if (holder !== '' && holder !== identity) {
        const version = `${holder} ${renewTime}`
        if (seen === undefined) onWaiting(holder)
        else if (seen !== version)
          throw new CliError(
            `another migration runs in this cluster: ${leaseText} is held by ${holder}, which has renewed it at ${renewTime}. Run the command again when that one has ended`,
          )
        seen = version
      }
      if (clock.monotonic() >= endMs)
        throw new CliError(
          `${leaseText} could not be taken within ${durationText(leaseDurationMs + renewDeadlineMs)}${holder === '' ? '' : `: it is held by ${holder}`}. If no migration runs, kubectl -n ${lockLease.namespace} delete lease ${lockLease.name}`,
        )
      await Promise.race([started, clock.sleep(lookMs, signal)])
    }
  }
}
