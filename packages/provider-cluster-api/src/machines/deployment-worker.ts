/**
 * All that changes one MachineDeployment, one step after the other (cluster-api.md 8 to 10): claims get Machines, and
 * Machines go. Each step reads the hub anew and writes the replicas once for everybody.
 */
import { type NodeClaim, ownValue } from '@tenon/api'
import { isKubeError } from '@tenon/kube'
import { ProviderError } from '@tenon/provider'
import { type Clock, type Logger, rfc3339 } from '@tenon/runtime'
import { opened, type HubReads } from '../hub/objects-of-hub.ts'
import type { Hub } from '../hub/hub.ts'
import type { ClusterApiNames } from '../names.ts'
import type { Machine, MachineDeployment } from '../objects.ts'
import { balanced, balancePatch, type Balance, stockOf, type Stock } from './balance.ts'
import { bindingOf, bindingPatch, hubKeyOf, type HubKey, hubText, isStaying } from './binding.ts'
import { shrinksFirst } from './shrinking.ts'

/** How long requests are gathered: until none has come for a while, and never longer than this. */
const idleMs = 100
const gatherMs = 1000
/** How often waiting claims look for Machines when the cache says nothing. */
const pollMs = 1000
/** How long a claim waits for a Machine to exist. */
const patienceMs = 30_000
const attempts = 3

/** What a claim got. */
export type ClaimOutcome =
  | { readonly kind: 'bound'; readonly machine: Machine }
  /** The MachineDeployment may not grow; a clause without a full stop. */
  | { readonly kind: 'full'; readonly because: string }

interface Waiter {
  readonly claim: NodeClaim
  readonly maxReplicas: number | undefined
  readonly outcome: PromiseWithResolvers<ClaimOutcome>
  /** Monotonic milliseconds; set by the first step. */
  deadlineMs?: number
}

interface Release {
  readonly machine: Machine
  readonly outcome: PromiseWithResolvers<void>
}

/** What a {@link DeploymentWorker} works with. */
export interface WorkerDependencies {
  readonly hub: Hub
  readonly reads: HubReads
  /** Identity of the workload cluster. */
  readonly identity: () => Promise<string>
  readonly clock: Clock
  readonly logger: Logger
}

/** Serves one MachineDeployment. It works while there is something to do. */
export class DeploymentWorker {
  readonly key: HubKey
  readonly #deps: WorkerDependencies
  /** By UID of the claim, in order of arrival. */
  readonly #waiting = new Map<string, Waiter>()
  /** By UID of the Machine. */
  readonly #releases = new Map<string, Release>()
  #isRunning = false
  /** The step that runs now. */
  #step: Promise<void> = Promise.resolve()
  #hasNews = false
  #lastRequestMs = 0
  #wake = Promise.withResolvers<void>()

  constructor(key: HubKey, deps: WorkerDependencies) {
    this.key = key
    this.#deps = deps
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
      if (this.#hasNews) await this.#gather()
      this.#hasNews = false
      this.#wake = Promise.withResolvers()
      this.#step = this.#work().catch((error: unknown) => {
        this.#failAll(error)
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
  }

  #failAll(error: unknown): void {
    for (const { outcome } of [...this.#waiting.values(), ...this.#releases.values()]) outcome.reject(error)
    this.#waiting.clear()
    this.#releases.clear()
  }

  async #work(): Promise<void> {
    const releases = [...this.#releases.values()]
    const { reads } = this.#deps
    const deployment = await this.#deployment()
    let machines = await reads.machinesOf(this.key)
    this.#resolveBound(machines)
    const marked = await this.#mark(releases, machines)
    machines = machines.map((machine) => marked.get(machine.metadata.uid ?? '') ?? machine)
    const uncounted = await this.#uncounted(deployment, marked)
    // Who comes from here on waits for the next step.
    const waiters = [...this.#waiting.values()]
    const { stock, balance, limit } = await this.#balance(deployment, machines, uncounted, waiters)
    await this.#delete(releases, marked)
    this.#refuse(waiters.slice(balance.served), limit)
    await this.#assign(stock.free, waiters.slice(0, balance.served))
    this.#expire(waiters, balance, machines)
  }

  async #deployment(): Promise<MachineDeployment> {
    const deployment = await this.#deps.reads.deployment(this.key)
    if (deployment !== undefined) return deployment
    throw new ProviderError('other', `MachineDeployment ${hubText(this.key)} does not exist`)
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
    const { kube, names } = this.#deps.hub
    const { kinds } = opened(this.#deps.hub)
    const now = rfc3339(this.#deps.clock.now())
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
        if (machine === undefined) {
          this.#refuseRelease(release, new ProviderError('nodeClaimNotFound', goneText(release.machine)))
          return
        }
        if (ownValue(machine.metadata.annotations, names.deleteMachine) !== undefined) {
          marked.set(uid, machine)
          return
        }
        const patch = { metadata: { uid, annotations: { [names.deleteMachine]: now } } }
        try {
          marked.set(uid, await kube.patch<Machine>(kinds.machine, hubKeyOf(machine), patch))
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
    const sets = await reads.setsOf(this.key)
    return new Set(
      [...marked]
        .filter(([_uid, { metadata }]) =>
          shrinksFirst(deployment, sets, ownValue(metadata.labels, hub.names.setName)),
        )
        .map(([uid]) => uid),
    )
  }

  /** Writes the replicas that everything needs, unless they are there. */
  async #balance(
    first: MachineDeployment,
    machines: readonly Machine[],
    release: ReadonlySet<string>,
    waiters: readonly Waiter[],
  ): Promise<{ readonly stock: Stock; readonly balance: Balance; readonly limit: Limit }> {
    const { hub, clock } = this.#deps
    let deployment = first
    for (let attempt = 1; ; attempt++) {
      const stock = stockOf(deployment, machines, hub.names)
      const limit = limitOf(deployment, waiters, hub.names)
      const demand = { waiting: waiters.length, release, ...limit }
      const balance = balanced(deployment, machines, stock, demand)
      const patch = balancePatch(deployment, balance, rfc3339(clock.now()))
      if (patch === undefined) return { stock, balance, limit }
      try {
        await this.#scale(deployment, patch, balance.replicas)
        return { stock, balance, limit }
      } catch (error) {
        // Its controllers write often.
        if (!isKubeError(error, 'conflict') || attempt === attempts) throw error
        deployment = await this.#deployment()
      }
    }
  }

  async #scale({ metadata, spec }: MachineDeployment, patch: object, to: number): Promise<void> {
    const { hub, logger } = this.#deps
    const { resourceVersion } = metadata
    const options = resourceVersion === undefined ? {} : { resourceVersion }
    await hub.kube.patch(opened(hub).kinds.machineDeployment, this.key, patch, options)
    const from = spec?.replicas ?? 0
    if (from !== to) logger.info('scaled a MachineDeployment', { MachineDeployment: this.key, from, to })
  }

  async #delete(releases: readonly Release[], marked: ReadonlyMap<string, Machine>): Promise<void> {
    const { hub } = this.#deps
    await Promise.all(
      releases.map(async (release) => {
        const { uid = '' } = release.machine.metadata
        if (!marked.has(uid)) return
        try {
          const options = uid === '' ? {} : { preconditionUid: uid }
          await hub.kube.delete(opened(hub).kinds.machine, hubKeyOf(release.machine), options)
        } catch (error) {
          if (!isKubeError(error, 'notFound')) {
            this.#refuseRelease(release, error)
            return
          }
        }
        this.#released(release)
      }),
    )
  }

  /** Tells those for whom there is no room. */
  #refuse(waiters: readonly Waiter[], { because = 'it may not grow' }: Limit): void {
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
          const bound = await this.#bind(machine, waiter.claim)
          if (bound !== undefined) this.#settle(uid, { kind: 'bound', machine: bound })
        } catch (error) {
          waiter.outcome.reject(error)
          this.#waiting.delete(uid)
        }
      }),
    )
  }

  /** The Machine with its binding; undefined when it cannot be had any more. */
  async #bind(machine: Machine, claim: NodeClaim): Promise<Machine | undefined> {
    const { hub, reads, identity } = this.#deps
    const patch = bindingPatch(claim, hub.names, await identity())
    let current: Machine | undefined = machine
    for (let attempt = 1; ; attempt++) {
      const { resourceVersion } = current.metadata
      const options = resourceVersion === undefined ? {} : { resourceVersion }
      try {
        return await hub.kube.patch<Machine>(opened(hub).kinds.machine, hubKeyOf(machine), patch, options)
      } catch (error) {
        if (isKubeError(error, 'notFound')) return undefined
        if (!isKubeError(error, 'conflict') || attempt === attempts) throw error
        current = await reads.machine(hubKeyOf(machine))
        const binding = current && bindingOf(current, hub.names)
        if (current === undefined || binding === undefined || !isStaying(current, hub.names)) return undefined
        if (binding.kind === 'bound') return binding.claimUid === claim.metadata.uid ? current : undefined
      }
    }
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

/** How far a MachineDeployment may grow. */
interface Limit {
  readonly maxReplicas?: number
  /** Why not further: a clause without a full stop. */
  readonly because?: string
}

function limitOf(deployment: MachineDeployment, waiters: readonly Waiter[], names: ClusterApiNames): Limit {
  const { metadata, spec } = deployment
  const standstill = spec?.replicas ?? 0
  if (metadata.deletionTimestamp !== undefined)
    return { maxReplicas: standstill, because: 'it is being deleted' }
  if (spec?.paused === true || ownValue(metadata.annotations, names.paused) !== undefined)
    return { maxReplicas: standstill, because: 'it is paused' }
  const known = waiters.flatMap(({ maxReplicas }) => maxReplicas ?? [])
  if (known.length === 0) return {}
  const maxReplicas = Math.min(...known)
  return { maxReplicas, because: `it may have ${String(maxReplicas)} replicas at most` }
}

function goneText(machine: Machine): string {
  return `Machine ${hubText(hubKeyOf(machine))} does not exist`
}
