/**
 * All that changes one MachineDeployment, one step after the other (cluster-api.md 8 to 10): claims get Machines, and
 * Machines go. Each step reads the hub again and writes the replicas once for everybody.
 */
import { type NodeClaim, ownValue } from '@tenon/api'
import { ProviderError } from '@tenon/provider'
import { type HubKey, hubText } from '../hub/keys.ts'
import type { Machine, MachineDeployment, MachineSet } from '../objects.ts'
import { type Balance, stockOf } from './balance.ts'
import { bindingOf, isStaying } from './binding.ts'
import { type Asker, DeploymentWrites, type Limit, type WorkerDependencies } from './deployment-writes.ts'
import { shrinksFirst } from './shrinking.ts'

/** How long requests are gathered: until none has come for a while, and never longer than this. */
const idleMs = 100
const gatherMs = 1000
/** How often waiting claims look for Machines when the cache says nothing. */
const pollMs = 1000
/** How long a claim waits for a Machine to exist. */
const patienceMs = 30_000
/** How long is waited for further Machines once one has changed. */
const togetherMs = 50

/** What a claim got. */
export type ClaimOutcome =
  | { readonly kind: 'bound'; readonly machine: Machine }
  /** The MachineDeployment may not grow; a clause without a full stop. */
  | { readonly kind: 'full'; readonly because: string }

interface Waiter extends Asker {
  readonly outcome: PromiseWithResolvers<ClaimOutcome>
  /** Monotonic milliseconds; set by the first step. */
  deadlineMs?: number
}

interface Release {
  readonly machine: Machine
  readonly outcome: PromiseWithResolvers<void>
}

/** Serves one MachineDeployment. It works while there is something to do. */
export class DeploymentWorker {
  readonly key: HubKey
  readonly #deps: WorkerDependencies
  readonly #writes: DeploymentWrites
  /** By UID of the claim, in order of arrival. */
  readonly #waiting = new Map<string, Waiter>()
  /** By UID of the Machine. */
  readonly #releases = new Map<string, Release>()
  #isRunning = false
  /** The step that runs now. */
  #step: Promise<void> = Promise.resolve()
  /** The MachineDeployment as the last step found it. */
  #scaled: MachineDeployment | undefined
  #hasNews = false
  #lastRequestMs = 0
  #wake = Promise.withResolvers<void>()

  constructor(key: HubKey, deps: WorkerDependencies) {
    this.key = key
    this.#deps = deps
    this.#writes = new DeploymentWrites(key, deps)
  }

  /** How many claims wait for a Machine. */
  get waiting(): number {
    return this.#waiting.size
  }

  /**
   * Binds a Machine to a claim, the one that it has already or another.
   * @param maxReplicas most replicas that the MachineDeployment may be raised to.
   * @throws KubeError or ProviderError when that did not work; a Machine may have been bound nevertheless.
   */
  async claim(claim: NodeClaim, maxReplicas: number | undefined): Promise<ClaimOutcome> {
    const uid = claim.metadata.uid ?? ''
    const known = this.#waiting.get(uid)
    if (known !== undefined) return await known.outcome.promise
    const outcome = Promise.withResolvers<ClaimOutcome>()
    this.#waiting.set(uid, { claim, maxReplicas, outcome })
    this.#requested()
    return await outcome.promise
  }

  /** Ends the waiting of a claim. Afterwards nothing is bound to it any more. */
  async forget(uid: string): Promise<void> {
    this.#waiting.get(uid)?.outcome.reject(new ProviderError('other', 'the NodeClaim is being deleted'))
    this.#waiting.delete(uid)
    await this.#step
  }

  /** Has a Machine deleted, and the replicas lowered by one for it, once. Resolves when the hub has accepted. */
  async release(machine: Machine): Promise<void> {
    const uid = machine.metadata.uid ?? ''
    const known = this.#releases.get(uid)
    if (known !== undefined) {
      await known.outcome.promise
      return
    }
    const outcome = Promise.withResolvers<void>()
    this.#releases.set(uid, { machine, outcome })
    this.#requested()
    await outcome.promise
  }

  /** A Machine of this MachineDeployment has changed. */
  changed(): void {
    if (this.#waiting.size > 0) this.#wake.resolve()
  }

  #requested(): void {
    this.#hasNews = true
    this.#lastRequestMs = this.#deps.clock.monotonic()
    this.#wake.resolve()
    if (!this.#isRunning) void this.#run()
  }

  async #run(): Promise<void> {
    this.#isRunning = true
    while (this.#waiting.size + this.#releases.size > 0) {
      const hasNews = this.#hasNews
      if (hasNews) await this.#gather()
      this.#hasNews = false
      this.#wake = Promise.withResolvers()
      const [waiters, releases] = [[...this.#waiting.values()], [...this.#releases.values()]]
      this.#step = (hasNews ? this.#work() : this.#look()).catch((error: unknown) => {
        this.#fail(waiters, releases, error)
      })
      await this.#step
      if (this.#waiting.size > 0 && this.#releases.size === 0) await this.#rest()
    }
    this.#isRunning = false
  }

  /** Waits until no request has come for a while. */
  async #gather(): Promise<void> {
    const { clock } = this.#deps
    const endMs = clock.monotonic() + gatherMs
    for (;;) {
      const leftMs = Math.min(endMs, this.#lastRequestMs + idleMs) - clock.monotonic()
      if (leftMs <= 0) return
      await clock.sleep(leftMs)
    }
  }

  /** Waits until a Machine changes, a request comes, or it is time to look again. */
  async #rest(): Promise<void> {
    const end = new AbortController()
    const pause = this.#deps.clock.sleep(pollMs, end.signal).catch(() => undefined)
    await Promise.race([pause, this.#wake.promise])
    end.abort()
    // Machines come in numbers.
    if (!this.#hasNews) await this.#deps.clock.sleep(togetherMs)
  }

  /** Tells those whom a step was for, as far as they wait still; who came during it has the next one. */
  #fail(waiters: readonly Waiter[], releases: readonly Release[], error: unknown): void {
    for (const waiter of waiters) {
      const { uid = '' } = waiter.claim.metadata
      waiter.outcome.reject(error)
      if (this.#waiting.get(uid) === waiter) this.#waiting.delete(uid)
    }
    for (const release of releases)
      if (this.#releases.get(release.machine.metadata.uid ?? '') === release)
        this.#refuseRelease(release, error)
  }

  /** Looks for Machines that have come since; what to do about their absence is decided again. */
  async #look(): Promise<void> {
    const { reads, hub } = this.#deps
    const machines = await reads.machinesOf(this.key)
    this.#resolveBound(machines)
    const stock = this.#scaled && stockOf(this.#scaled, machines, hub.names)
    if (stock === undefined || stock.free.length === 0) await this.#work()
    else await this.#assign(stock.free, [...this.#waiting.values()])
  }

  async #work(): Promise<void> {
    const releases = [...this.#releases.values()]
    const { reads } = this.#deps
    const deployment = await this.#writes.deployment()
    this.#scaled = deployment
    let machines = await reads.machinesOf(this.key)
    this.#resolveBound(machines)
    const marked = await this.#mark(releases, machines)
    machines = machines.map((machine) => marked.get(machine.metadata.uid ?? '') ?? machine)
    const uncounted = await this.#uncounted(deployment, marked)
    // Who comes from here on waits for the next step.
    const waiters = [...this.#waiting.values()]
    const { stock, balance, limit } = await this.#writes.balance(deployment, machines, uncounted, waiters)
    await this.#delete(releases, marked)
    this.#refuse(waiters.slice(balance.served), limit)
    await this.#assign(stock.free, waiters.slice(0, balance.served))
    this.#expire(waiters, balance, machines)
  }

  /** Claims whose Machine was bound by a step whose answer was lost. */
  #resolveBound(machines: readonly Machine[]): void {
    const { names } = this.#deps.hub
    for (const machine of machines) {
      const binding = bindingOf(machine, names)
      if (binding.kind !== 'bound' || !isStaying(machine, names)) continue
      this.#settle(binding.claimUid, { kind: 'bound', machine })
    }
  }

  #settle(claimUid: string, outcome: ClaimOutcome): void {
    this.#waiting.get(claimUid)?.outcome.resolve(outcome)
    this.#waiting.delete(claimUid)
  }

  /** Marks Machines to go first when their MachineSet shrinks; those that could be marked, by UID. */
  async #mark(
    releases: readonly Release[],
    machines: readonly Machine[],
  ): Promise<ReadonlyMap<string, Machine>> {
    const current = new Map(machines.map((machine) => [machine.metadata.uid ?? '', machine]))
    const marked = new Map<string, Machine>()
    await Promise.all(
      releases.map(async (release) => {
        const { uid = '' } = release.machine.metadata
        const machine = current.get(uid)
        if (machine?.metadata.deletionTimestamp !== undefined) {
          this.#released(release)
          return
        }
        try {
          if (machine === undefined) throw await this.#writes.absence(release.machine)
          marked.set(uid, await this.#writes.mark(machine, release.machine))
        } catch (error) {
          this.#refuseRelease(release, error)
        }
      }),
    )
    return marked
  }

  #released({ machine, outcome }: Release): void {
    this.#releases.delete(machine.metadata.uid ?? '')
    outcome.resolve()
  }

  #refuseRelease({ machine, outcome }: Release, error: unknown): void {
    this.#releases.delete(machine.metadata.uid ?? '')
    outcome.reject(error)
  }

  /** Marked Machines for which the replicas are lowered. Another one would go for those of other MachineSets. */
  async #uncounted(
    deployment: MachineDeployment,
    marked: ReadonlyMap<string, Machine>,
  ): Promise<ReadonlySet<string>> {
    if (marked.size === 0) return new Set()
    const { reads, hub } = this.#deps
    let sets: readonly MachineSet[]
    try {
      sets = await reads.setsOf(this.key)
    } catch (error) {
      // Claims that wait can be served all the same.
      for (const uid of marked.keys()) {
        const release = this.#releases.get(uid)
        if (release !== undefined) this.#refuseRelease(release, error)
      }
      return new Set()
    }
    return new Set(
      [...marked]
        .filter(([_uid, { metadata }]) =>
          shrinksFirst(deployment, sets, ownValue(metadata.labels, hub.names.setName)),
        )
        .map(([uid]) => uid),
    )
  }

  async #delete(releases: readonly Release[], marked: ReadonlyMap<string, Machine>): Promise<void> {
    await Promise.all(
      releases.map(async (release) => {
        const { uid = '' } = release.machine.metadata
        if (!marked.has(uid) || this.#releases.get(uid) !== release) return
        try {
          await this.#writes.remove(release.machine)
          this.#released(release)
        } catch (error) {
          this.#refuseRelease(release, error)
        }
      }),
    )
  }

  /** Tells those for whom there is no room. */
  #refuse(waiters: readonly Waiter[], { because = 'it cannot be scaled up' }: Limit): void {
    for (const { claim } of waiters)
      this.#settle(claim.metadata.uid ?? '', {
        kind: 'full',
        because: `MachineDeployment ${hubText(this.key)}: ${because}`,
      })
  }

  /** Free Machines to those who wait, oldest first. */
  async #assign(free: readonly Machine[], waiters: readonly Waiter[]): Promise<void> {
    await Promise.all(
      waiters.slice(0, free.length).map(async (waiter, index) => {
        const machine = free[index]
        const { uid = '' } = waiter.claim.metadata
        if (machine === undefined || this.#waiting.get(uid) !== waiter) return
        try {
          const bound = await this.#writes.bind(machine, waiter.claim)
          if (bound !== undefined) this.#settle(uid, { kind: 'bound', machine: bound })
        } catch (error) {
          waiter.outcome.reject(error)
          this.#waiting.delete(uid)
        }
      }),
    )
  }

  /** Ends the waiting of those for whom no Machine came. */
  #expire(waiters: readonly Waiter[], { replicas }: Balance, machines: readonly Machine[]): void {
    const now = this.#deps.clock.monotonic()
    for (const waiter of waiters) {
      const { uid = '' } = waiter.claim.metadata
      waiter.deadlineMs ??= now + patienceMs
      if (now < waiter.deadlineMs || this.#waiting.get(uid) !== waiter) continue
      this.#waiting.delete(uid)
      waiter.outcome.reject(
        new ProviderError(
          'other',
          `MachineDeployment ${hubText(this.key)} has made no Machine within ${String(patienceMs / 1000)} s: it has ${String(machines.length)} Machines for ${String(replicas)} replicas`,
        ),
      )
    }
  }
}
