/**
 * All changes of one MachineDeployment, one step after the other (cluster-api.md 8 to 10): binding and removing
 * Machines. Each step reads the hub again and writes the replicas once for all requests.
 */
import { type NodeClaim, ownValue } from '@tenon/api'
import { ProviderError } from '@tenon/provider'
import { type HubKey, hubKeyOf, hubText } from '../hub/keys.ts'
import type { Machine, MachineDeployment, MachineSet } from '../objects.ts'
import { replicasOf } from '../catalogue/growth.ts'
import { type Balance, stockOf } from './balance.ts'
import { bindingOf, isStaying } from './binding.ts'
import {
  type Asker,
  type Balanced,
  DeploymentWrites,
  type Limit,
  type WorkerDependencies,
} from './deployment-writes.ts'
import { hasObserved, shrinksFirst } from './shrinking.ts'

/** Requests are gathered until none arrives for `idleMs`, and at most for this time. */
const idleMs = 100
const gatherMs = 1000
/** How often waiting claims look for Machines if the cache shows no change. */
const pollMs = 1000
/** How long a claim waits for a Machine to exist. */
const patienceMs = 30_000
/** How long Cluster API may take for lowered replicas before the claim is told. */
const slowMs = 5 * 60_000
/** How long to wait for more changes after a Machine has changed. */
const togetherMs = 50

/** The result for a claim. */
export type ClaimOutcome =
  | { readonly kind: 'bound'; readonly machine: Machine }
  /** The MachineDeployment cannot grow; a clause without a full stop. */
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

/** Serves one MachineDeployment, as long as there are requests. */
export class DeploymentWorker {
  readonly key: HubKey
  readonly #deps: WorkerDependencies
  readonly #writes: DeploymentWrites
  /** By UID of the claim, in order of arrival. */
  readonly #waiting = new Map<string, Waiter>()
  /** By UID of the Machine. */
  readonly #releases = new Map<string, Release>()
  #isRunning = false
  /** The step that is running. */
  #step: Promise<void> = Promise.resolve()
  /** The MachineDeployment as read by the last step. */
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
   * Binds a Machine to a claim: its existing one, or another.
   * @param maxReplicas limit of replicas.
   * @throws KubeError or ProviderError if that failed; a Machine may be bound nevertheless.
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

  /** Cancels the wait of a claim. Afterwards nothing is bound to it any more. */
  async forget(uid: string): Promise<void> {
    this.#waiting.get(uid)?.outcome.reject(new ProviderError('other', 'the NodeClaim is being deleted'))
    this.#waiting.delete(uid)
    await this.#step
  }

  /**
   * Lowers the replicas by one for a Machine, once, and deletes it. Resolves when the hub has accepted; while Cluster
   * API has not acted on the lowered replicas the Machine is only marked, and the call is to be repeated.
   */
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

  /** Call it when a Machine of this MachineDeployment has changed. */
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

  /** Waits until no request has arrived for a while. */
  async #gather(): Promise<void> {
    const { clock } = this.#deps
    const endMs = clock.monotonic() + gatherMs
    for (;;) {
      const leftMs = Math.min(endMs, this.#lastRequestMs + idleMs) - clock.monotonic()
      if (leftMs <= 0) return
      await clock.sleep(leftMs)
    }
  }

  /** Waits until a Machine changes, a request arrives, or the poll interval has passed. */
  async #rest(): Promise<void> {
    const end = new AbortController()
    const pause = this.#deps.clock.sleep(pollMs, end.signal).catch(() => undefined)
    await Promise.race([pause, this.#wake.promise])
    end.abort()
    // Machines change in groups.
    if (!this.#hasNews) await this.#deps.clock.sleep(togetherMs)
  }

  /** Rejects the requests of a failed step; requests that arrived during it are served by the next one. */
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

  /** Looks for new Machines without changing replicas. */
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
    const sets = await this.#setsFor(releases)
    let machines = await reads.machinesOf(this.key)
    this.#resolveBound(machines)
    const marked = await this.#mark(sets === undefined ? [] : releases, machines)
    machines = machines.map((machine) => marked.get(machine.metadata.uid ?? '') ?? machine)
    const uncounted = this.#uncounted(deployment, sets ?? [], marked)
    // Later requests wait for the next step.
    const waiters = [...this.#waiting.values()]
    const balanced = await this.#writes.balance(deployment, machines, uncounted, { askers: waiters, sets })
    const { stock, balance, limit } = balanced
    await this.#delete(releases, marked, this.#leftToClusterApi(balanced, sets ?? [], marked))
    this.#refuse(waiters.slice(balance.served), limit)
    await this.#assign(stock.free, waiters.slice(0, balance.served))
    this.#expire(waiters, balance, machines)
  }

  /** Claims whose Machine was bound by a step that lost the response. */
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

  /**
   * Marks Machines for deletion first when their MachineSet shrinks. Returns those that were marked, by UID.
   */
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

  /** The MachineSets; undefined if nothing is to go, or if they cannot be listed, so that nothing may go. */
  async #setsFor(releases: readonly Release[]): Promise<readonly MachineSet[] | undefined> {
    if (releases.length === 0) return undefined
    try {
      return await this.#deps.reads.setsOf(this.key)
    } catch (error) {
      // Waiting claims can be served nevertheless.
      for (const release of releases) this.#refuseRelease(release, error)
      return undefined
    }
  }

  /**
   * Marked Machines for which the replicas may be lowered. For those of other MachineSets, a different Machine would be
   * deleted.
   */
  #uncounted(
    deployment: MachineDeployment,
    sets: readonly MachineSet[],
    marked: ReadonlyMap<string, Machine>,
  ): ReadonlySet<string> {
    const going = [...marked].filter(([_uid, { metadata }]) =>
      shrinksFirst(deployment, sets, ownValue(metadata.labels, this.#deps.hub.names.setName)),
    )
    return new Set(going.map(([uid]) => uid))
  }

  /**
   * UIDs of marked Machines that their MachineSet deletes once the lowered replicas reach it. Deleted before, they
   * would be replaced, and the replicas would then end another Machine (reports-2.md 12).
   */
  #leftToClusterApi(
    { balance: { released }, isObserved }: Balanced,
    sets: readonly MachineSet[],
    marked: ReadonlyMap<string, Machine>,
  ): ReadonlySet<string> {
    const lagging = new Set(sets.filter((set) => !hasObserved(set)).map(({ metadata }) => metadata.name))
    const setOf = ({ metadata }: Machine) => ownValue(metadata.labels, this.#deps.hub.names.setName) ?? ''
    const left = [...marked].filter(
      ([uid, machine]) => released.has(uid) && (!isObserved || lagging.has(setOf(machine))),
    )
    return new Set(left.map(([uid]) => uid))
  }

  async #delete(
    releases: readonly Release[],
    marked: ReadonlyMap<string, Machine>,
    left: ReadonlySet<string>,
  ): Promise<void> {
    await Promise.all(
      releases.map(async (release) => {
        const { uid = '' } = release.machine.metadata
        if (!marked.has(uid) || this.#releases.get(uid) !== release) return
        try {
          if (left.has(uid)) this.#wait(marked.get(uid) ?? release.machine)
          else await this.#writes.remove(release.machine)
          this.#released(release)
        } catch (error) {
          this.#refuseRelease(release, error)
        }
      }),
    )
  }

  /** @throws ProviderError if Cluster API has let a marked Machine stay for longer than it usually takes. */
  #wait(machine: Machine): void {
    const { clock, hub } = this.#deps
    const markedAt = Date.parse(ownValue(machine.metadata.annotations, hub.names.deleteMachine) ?? '')
    // Users may mark Machines with any text.
    if (!(clock.now() - markedAt >= slowMs)) return
    const replicas = this.#scaled === undefined ? 'lowered' : String(replicasOf(this.#scaled))
    throw new ProviderError(
      'other',
      `Machine ${hubText(hubKeyOf(machine))} is marked to be deleted first, but Cluster API has not acted on the ${replicas} replicas of MachineDeployment ${hubText(this.key)} for ${String(slowMs / 60_000)} min: see whether it is paused, and its conditions`,
    )
  }

  /** Rejects claims that exceed the limit. */
  #refuse(waiters: readonly Waiter[], { because = 'it cannot be scaled up' }: Limit): void {
    for (const { claim } of waiters)
      this.#settle(claim.metadata.uid ?? '', {
        kind: 'full',
        because: `MachineDeployment ${hubText(this.key)}: ${because}`,
      })
  }

  /** Binds free Machines to waiting claims, oldest first. */
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

  /** Ends the wait of claims that got no Machine in time. */
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
