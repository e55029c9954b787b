import { kinds, type Lease } from '@tenon/api'
import { type Clock, type Logger, type Random, rfc3339Micro, unit } from '@tenon/runtime'
import { linkedAbort, withDeadline } from '../abortable.ts'
import type { WatchingKubeClient } from '../client/client.ts'
import { type EventRecorder, isKubeError, KubeError } from '../contract.ts'
import { type LeaseWatchOptions, watchLease } from './lease-watch.ts'

export interface LeaderElectorOptions {
  readonly client: WatchingKubeClient
  readonly clock: Clock
  readonly random: Random
  readonly logger: Logger
  /** Unique per process, for example `<hostname>_<uuid>`. */
  readonly identity: string
  readonly namespace: string
  readonly name: string
  /** How long other candidates wait after the last renewal; default 15 s. */
  readonly leaseDurationMs?: number
  /** A leader that could not renew for so long gives up; default 10 s, less than the lease duration. */
  readonly renewDeadlineMs?: number
  /** Pause between attempts; default 2 s. */
  readonly retryPeriodMs?: number
  /** How the lease is written: `update` needs no permission to patch. Default `patch`. */
  readonly writes?: 'patch' | 'update'
  /** Labels of a new lease. */
  readonly labels?: Readonly<Record<string, string>>
  /** Annotations that are set when the lease is acquired. */
  readonly annotations?: Readonly<Record<string, string>>
  readonly events?: EventRecorder
  /** The lease was acquired or renewed; leadership lasts so long without another renewal. */
  readonly onRenewed?: (leftMs: number) => void
  readonly onStarted: () => void
  /** Leadership was lost or released: write nothing more. Called once. */
  readonly onStopped: () => void
}

/** One candidate. It does not run again after its leadership ended. */
export interface LeaderElector {
  /** Ends by the clock, so that a process that was suspended does not continue as leader. */
  readonly isLeader: boolean
  start(): void
  /**
   * Ends the candidacy. A leader calls `onStopped` first and then releases the lease. A former leader also releases it,
   * unless another process has it.
   */
  stop(): Promise<void>
}

/**
 * Runs for leadership with a Lease. Trusts no clock but its own: a lease expires if it was not seen to change.
 */
export function createLeaderElector(options: LeaderElectorOptions): LeaderElector {
  return new LeaseElector(options)
}

/** A renewal behind bulk writes would be too late. */
const lane = 'urgent'

/** Between two warnings about a missing permission. */
const refusalPauseMs = 60_000

type LeaseSpec = NonNullable<Lease['spec']>

class LeaseElector implements LeaderElector {
  readonly #options: LeaderElectorOptions
  readonly #leaseDurationMs: number
  readonly #renewDeadlineMs: number
  readonly #retryPeriodMs: number
  readonly #stopping = new AbortController()
  #running: Promise<void> | undefined
  #isLeader = false
  #isLost = false
  /** Of the last renewal, by this process's clock. */
  #renewedAt = 0
  #lease: Lease | undefined
  /** The last seen version of the lease, by a read or the watch. */
  #version: string | undefined
  /** When the lease was last seen to change, by this process's clock. */
  #changedAt = 0
  /** Whether the lease was released since this candidate last read it. */
  #isFreed = false
  /** When a missing permission was last logged. */
  #refusalLoggedAt = Number.NEGATIVE_INFINITY
  /** Ends the pause between two reads. */
  #wake: (() => void) | undefined

  constructor(options: LeaderElectorOptions) {
    this.#options = options
    this.#leaseDurationMs = options.leaseDurationMs ?? 15_000
    this.#renewDeadlineMs = options.renewDeadlineMs ?? 10_000
    this.#retryPeriodMs = options.retryPeriodMs ?? 2_000
    if (this.#renewDeadlineMs >= this.#leaseDurationMs)
      throw new RangeError('renewDeadlineMs must be less than leaseDurationMs')
  }

  get isLeader(): boolean {
    return this.#isLeader && this.#leftMs() > 0
  }

  /** How long leadership lasts without another renewal. */
  #leftMs(): number {
    return this.#renewedAt + this.#renewDeadlineMs - this.#options.clock.monotonic()
  }

  start(): void {
    this.#running ??= this.#run()
  }

  async stop(): Promise<void> {
    this.#stopping.abort(new Error('the candidacy is ended'))
    await this.#running
    if (!this.#isLost) return
    this.#isLost = false
    // The work of this process has ended, so that the next leader need not wait for the lease to expire.
    if (!this.#isHeldByOther()) await this.#release()
  }

  async #run(): Promise<void> {
    const { logger, onStarted, onStopped, identity } = this.#options
    if (!(await this.#acquire())) return
    logger.info('became leader', { identity })
    this.#tell('became leader')
    this.#isLeader = true
    this.#options.onRenewed?.(this.#leftMs())
    onStarted()
    await this.#keep()
    this.#isLeader = false
    onStopped()
    this.#isLost = !this.#stopping.signal.aborted
    if (this.#isLost) logger.error('leadership lost', { identity, ...this.#lateness() })
    else await this.#release()
    this.#tell('stopped leading')
  }

  /**
   * Tries to acquire the lease until it succeeds, at once when it is released or expires. Returns false if the
   * candidacy ended first.
   */
  async #acquire(): Promise<boolean> {
    const watching = linkedAbort(this.#stopping.signal)
    try {
      for (let looks = 0; ; looks++) {
        this.#isFreed = false
        this.#renewedAt = this.#options.clock.monotonic()
        if (await this.#attempt(this.#renewDeadlineMs)) return true
        // There is a lease to watch now.
        if (looks === 0) void watchLease(this.#watched(), watching.controller.signal)
        // Twice as often as a leader renews, so that a released lease is found soon even without a working
        // watch. The jitter keeps candidates from trying at the same time.
        const pauseMs = this.#retryPeriodMs * (0.4 + 0.2 * unit(this.#options.random))
        if (!(await this.#pauseUnlessFreed(this.#untilExpiry(pauseMs)))) return false
      }
    } finally {
      watching.unlink()
      watching.controller.abort(new Error('no candidate any more'))
    }
  }

  #watched(): LeaseWatchOptions {
    const { client, clock, logger } = this.#options
    return {
      client,
      clock,
      logger,
      key: this.#key(),
      pauseMs: this.#retryPeriodMs,
      seen: () => this.#lease,
      onChange: (lease) => {
        if (lease !== undefined) this.#noteVersion(lease)
        if ((lease?.spec?.holderIdentity ?? '') !== '') return
        this.#isFreed = true
        this.#wake?.()
      },
    }
  }

  /** A pause that ends when the lease expires, if that is earlier. */
  #untilExpiry(pauseMs: number): number {
    const leftMs = this.#changedAt + this.#heldMs() - this.#options.clock.monotonic()
    return leftMs > 0 ? Math.min(pauseMs, leftMs) : pauseMs
  }

  async #pauseUnlessFreed(ms: number): Promise<boolean> {
    if (this.#isFreed) return !this.#stopping.signal.aborted
    const { controller, unlink } = linkedAbort(this.#stopping.signal)
    this.#wake = () => {
      controller.abort(new Error('the lease is free'))
    }
    await this.#options.clock.sleep(ms, controller.signal).catch(ended)
    this.#wake = undefined
    unlink()
    return !this.#stopping.signal.aborted
  }

  /** Renews until the candidacy ends or the deadline passed without a renewal. */
  async #keep(): Promise<void> {
    const { clock, logger } = this.#options
    while (this.#leftMs() > 0) {
      if (!(await this.#pause(Math.min(this.#retryPeriodMs, this.#leftMs())))) return
      // After a pause that took too long, another process may lead.
      if (this.#leftMs() <= 0) return
      const startedAt = clock.monotonic()
      // Half the deadline, so that there is time for another request if one hangs.
      const limitMs = Math.min(this.#leftMs(), this.#renewDeadlineMs / 2)
      const lateness = this.#lateness()
      if (await this.#attempt(limitMs)) {
        this.#renewedAt = startedAt
        this.#options.onRenewed?.(this.#leftMs())
        if (lateness.lateMs > this.#retryPeriodMs) logger.warn('the lease was renewed late', lateness)
      } else if (this.#isHeldByOther()) return
    }
  }

  /** How late the current renewal is, and how long the lease would still have been valid. */
  #lateness(): { readonly lateMs: number; readonly leftMs: number } {
    const sinceMs = this.#options.clock.monotonic() - this.#renewedAt
    return {
      lateMs: Math.max(0, Math.round(sinceMs - this.#retryPeriodMs)),
      leftMs: Math.round(this.#leftMs()),
    }
  }

  async #attempt(limitMs: number): Promise<boolean> {
    const { clock, logger } = this.#options
    const signal = this.#stopping.signal
    if (signal.aborted) return false
    const late = () => new KubeError('transport', 0, `no answer about the lease within ${limitMs} ms`)
    try {
      return await withDeadline(clock, { ms: limitMs, late, signal }, (limited) => this.#take(limited))
    } catch (error) {
      if (isKubeError(error, 'conflict', 'notFound', 'alreadyExists')) this.#lease = undefined
      if (!signal.aborted) {
        logger.debug('lease not taken', { error })
        this.#logRefusal(error)
      }
      return false
    }
  }

  /** A candidate without permissions for its lease waits forever, so this must be visible. */
  #logRefusal(error: unknown): void {
    const { clock, logger, namespace, name, writes = 'patch' } = this.#options
    const nowMs = clock.monotonic()
    if (!isKubeError(error, 'forbidden', 'unauthorized') || nowMs - this.#refusalLoggedAt < refusalPauseMs)
      return
    this.#refusalLoggedAt = nowMs
    logger.warn(
      `the API server refuses the lease, so that this process cannot lead; grant get, create and ${writes} on leases of group coordination.k8s.io in namespace ${namespace}`,
      { lease: `${namespace}/${name}`, error },
    )
  }

  /** Creates, acquires or renews the lease; false while another process holds it. */
  async #take(signal: AbortSignal): Promise<boolean> {
    const { client, clock } = this.#options
    if (!this.#isLeader || this.#lease === undefined) {
      const seen = await client.get(kinds.lease, this.#key(), { signal, lane })
      if (seen === undefined) return this.#create(signal)
      this.#observe(seen)
    }
    const held = this.#lease
    if (held === undefined || this.#isHeldByOther()) {
      if (this.#isLeader || clock.monotonic() - this.#changedAt < this.#heldMs()) return false
    }
    const wanted = this.#ownSpec(held?.spec)
    this.#observe(stored(wanted, await this.#write(wanted, held, signal)))
    return true
  }

  async #create(signal: AbortSignal): Promise<boolean> {
    const { client, name, namespace, labels, annotations } = this.#options
    const wanted = this.#ownSpec(undefined)
    const lease = await client.create(
      kinds.lease,
      {
        apiVersion: 'coordination.k8s.io/v1',
        kind: 'Lease',
        metadata: {
          name,
          namespace,
          ...(labels !== undefined && { labels }),
          ...(annotations !== undefined && { annotations }),
        },
        spec: wanted,
      },
      { signal, lane },
    )
    this.#observe(stored(wanted, lease))
    return true
  }

  /** An interrupted renewal may have taken effect, so the lease is read after a conflict. */
  async #release(): Promise<void> {
    const { client, clock, logger } = this.#options
    const now = rfc3339Micro(clock.now())
    const spec = { holderIdentity: '', leaseDurationSeconds: 1, renewTime: now, acquireTime: now }
    const late = () => new KubeError('transport', 0, 'no answer about the lease in time')
    try {
      // As patient as a renewal: without the release, others wait for the expiry.
      await withDeadline(clock, { ms: this.#renewDeadlineMs / 2, late }, async (signal) => {
        try {
          await this.#write(spec, this.#lease, signal)
        } catch (error) {
          if (!isKubeError(error, 'conflict')) throw error
          this.#lease = await client.get(kinds.lease, this.#key(), { signal, lane })
          if (!this.#isHeldByOther()) await this.#write(spec, this.#lease, signal)
        }
      })
    } catch (error) {
      // The lease expires by itself.
      logger.info('lease not released', { error })
    }
  }

  async #write(spec: LeaseSpec, held: Lease | undefined, signal: AbortSignal): Promise<Lease> {
    const { client, writes = 'patch' } = this.#options
    if (writes === 'patch') return await this.#patch(spec, held, signal)
    const found = held ?? (await client.get(kinds.lease, this.#key(), { signal, lane }))
    if (found === undefined) throw new KubeError('notFound', 404, `there is no lease ${this.#options.name}`)
    const annotations = this.#annotationsFor(spec, found)
    return await client.update(
      kinds.lease,
      {
        ...found,
        ...(annotations !== undefined && {
          metadata: { ...found.metadata, annotations: { ...found.metadata.annotations, ...annotations } },
        }),
        spec: { ...found.spec, ...spec },
      },
      { signal, lane },
    )
  }

  /** Annotations that are written with the spec: none for a renewal or release. */
  #annotationsFor(spec: LeaseSpec, held: Lease | undefined): Readonly<Record<string, string>> | undefined {
    const { annotations, identity } = this.#options
    const isTaken = spec.holderIdentity === identity && held?.spec?.holderIdentity !== identity
    return isTaken ? annotations : undefined
  }

  #patch(spec: LeaseSpec, held: Lease | undefined, signal: AbortSignal): Promise<Lease> {
    const resourceVersion = held?.metadata.resourceVersion
    const annotations = this.#annotationsFor(spec, held)
    return this.#options.client.patch(
      kinds.lease,
      this.#key(),
      { ...(annotations !== undefined && { metadata: { annotations } }), spec },
      {
        signal,
        lane,
        ...(resourceVersion !== undefined && { resourceVersion }),
      },
    )
  }

  #observe(lease: Lease): void {
    this.#noteVersion(lease)
    this.#lease = lease
  }

  #noteVersion({ metadata: { resourceVersion } }: Lease): void {
    if (resourceVersion === this.#version) return
    this.#version = resourceVersion
    this.#changedAt = this.#options.clock.monotonic()
  }

  /** How long the lease is valid after it was seen to change. */
  #heldMs(): number {
    return (this.#lease?.spec?.leaseDurationSeconds ?? 0) * 1000
  }

  #isHeldByOther(): boolean {
    const holder = this.#lease?.spec?.holderIdentity ?? ''
    return holder !== '' && holder !== this.#options.identity
  }

  #ownSpec(before: LeaseSpec | undefined): LeaseSpec {
    const { clock, identity } = this.#options
    const now = rfc3339Micro(clock.now())
    const isRenewal = before?.holderIdentity === identity
    const transitions = before?.leaseTransitions ?? 0
    return {
      holderIdentity: identity,
      leaseDurationSeconds: Math.ceil(this.#leaseDurationMs / 1000),
      acquireTime: isRenewal ? (before.acquireTime ?? now) : now,
      renewTime: now,
      leaseTransitions: isRenewal || before === undefined ? transitions : transitions + 1,
    }
  }

  #key(): { readonly name: string; readonly namespace: string } {
    return { name: this.#options.name, namespace: this.#options.namespace }
  }

  #tell(what: string): void {
    const { events, identity } = this.#options
    if (this.#lease === undefined) return
    events?.record({
      object: { ...this.#lease, apiVersion: 'coordination.k8s.io/v1', kind: 'Lease' },
      type: 'Normal',
      reason: 'LeaderElection',
      message: `${identity} ${what}`,
    })
  }

  async #pause(ms: number): Promise<boolean> {
    try {
      await this.#options.clock.sleep(ms, this.#stopping.signal)
      return true
    } catch {
      // A sleep only ends early when the candidacy ends.
      return false
    }
  }
}

/**
 * The lease in the response to a write, if it contains what was written. A stale response has the same name and form,
 * and would create a second leader.
 * @throws KubeError if it does not.
 */
function stored(wanted: LeaseSpec, answer: Lease): Lease {
  const { holderIdentity, renewTime } = answer.spec ?? {}
  if (
    holderIdentity === wanted.holderIdentity &&
    Date.parse(renewTime ?? '') === Date.parse(wanted.renewTime ?? '')
  )
    return answer
  throw new KubeError(
    'transport',
    0,
    `the answer about lease ${answer.metadata.name} does not show what was written: it is held by ${holderIdentity ?? 'nobody'} since ${renewTime ?? 'never'}`,
  )
}

/** A pause was cut short. */
function ended(): void {}
