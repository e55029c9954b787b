/**
 * All writes of one group, one call after the other. Each step reads the hub again, so that a call can be repeated, or
 * continued by another process, at any point.
 */
import { ownValue } from '@tenon/api'
import { isKubeError } from '@tenon/kube'
import { type Increase, NodeGroupError } from '@tenon/provider'
import { type Clock, type Logger, messageOf, rfc3339 } from '@tenon/runtime'
import { compareAges, type HubKey, hubKeyOf, hubText } from '../hub/keys.ts'
import type { Machine, MachineSet } from '../objects.ts'
import { AwaitedMachines } from './awaited-machines.ts'
import { type GroupHub, ownerName } from './group-hub.ts'
import { type GroupWrites, markOf, ownMark } from './group-writes.ts'
import { claimOf } from './instances.ts'
import {
  boundsOfGroup,
  holdOfObject,
  instancesWithoutMachine,
  isStaying,
  keyTextOf,
  type LiveGroup,
  readMachines,
  readScalable,
  readSets,
  removableMachines,
} from './live-group.ts'
import { ReplicaContest } from './replica-contest.ts'
import { type GroupRef, groupIdOf, type Scalable } from './scalable.ts'

/** How often a call starts again after a conflict. */
const mostAttempts = 8
/** How long a call waits until Cluster API deletes the marked Machines. */
const patienceMs = 2 * 60_000
const pollMs = 500
/** An own mark of this age without a lowered number of replicas is what an ended process left. */
const leftoverMs = 5 * 60_000

/** What a call removes. */
interface Removal {
  /** The Machines to mark, of those just read. Throws if some may not go. */
  readonly victims: (live: LiveGroup) => readonly Machine[]
  /** Replicas to give up beside those of the victims: they have no Machine of their own. */
  readonly without: (live: LiveGroup) => number
  readonly belowMinimum: boolean
}

export class GroupWorker {
  readonly #ref: GroupRef
  readonly #id: string
  readonly #hub: GroupHub
  readonly #writes: GroupWrites
  readonly #clock: Clock
  readonly #logger: Logger
  /** `--clusterapi-machinepool-any-victim`. */
  readonly #anyPoolVictim: boolean
  readonly #contest: ReplicaContest
  readonly #awaited = new AwaitedMachines()
  /** IDs of a MachinePool's instances for which replicas were lowered already. */
  readonly #lowered = new Set<string>()
  #queue: Promise<unknown> = Promise.resolve()
  #waiting = 0

  constructor(
    ref: GroupRef,
    { hub, writes, anyPoolVictim }: { hub: GroupHub; writes: GroupWrites; anyPoolVictim: boolean },
    { clock, logger }: { clock: Clock; logger: Logger },
  ) {
    this.#ref = ref
    this.#id = groupIdOf(ref)
    this.#hub = hub
    this.#writes = writes
    this.#anyPoolVictim = anyPoolVictim
    this.#clock = clock
    this.#logger = logger
    this.#contest = new ReplicaContest(clock)
  }

  /** R; the last one written until the cache has it. Without R, what the status says. */
  sizeOf(object: Scalable): number {
    const { spec, status } = object
    return (
      this.#contest.newerThan(object) ??
      spec?.replicas ??
      status?.replicas ??
      this.#hub.machinesOf(this.#ref).length
    )
  }

  /** Why nothing is written to it any more: a clause. */
  get contested(): string | undefined {
    return this.#contest.because
  }

  /** The caches have changed. */
  observe(): void {
    const object = this.#hub.resource(this.#ref)
    if (object === undefined) {
      this.#awaited.cancel(this.#awaited.count, `${this.#id} does not exist any more`)
      return
    }
    this.#contest.observe(object)
    const listed = new Set(object.spec?.providerIDList)
    for (const id of this.#lowered) if (!listed.has(id)) this.#lowered.delete(id)
    this.#awaited.observe(registeredIn(object, this.#hub.machinesOf(this.#ref)))
    if (this.#contest.isUndone && this.#awaited.count > 0)
      this.#awaited.cancel(this.#awaited.count, `${this.#id}: somebody else has set spec.replicas back`)
  }

  async increase(delta: number, signal: AbortSignal): Promise<Increase> {
    if (!Number.isInteger(delta) || delta <= 0)
      throw new NodeGroupError(`group ${this.#id}: the increase must be positive, not ${String(delta)}`)
    return await this.#inTurn(() => this.#increase(delta, signal))
  }

  /** Marks members, lowers the replicas, and resolves once Cluster API deletes them. */
  async remove(ids: readonly string[], belowMinimum: boolean, signal: AbortSignal): Promise<void> {
    await this.#inTurn(async () => {
      let counted: readonly string[] = []
      const going = await this.#lower(
        {
          victims: (live) => removableMachines(this.#hub, live, ids, this.#lowered),
          without: (live) => {
            counted = this.#instancesWithoutMachine(ids, live)
            return counted.length
          },
          belowMinimum,
        },
        signal,
      )
      for (const id of counted) this.#lowered.add(id)
      await this.#untilDeleting(going, signal)
    })
  }

  /**
   * Takes back replicas that this process requested and that have no Node yet.
   * @returns whether there were any.
   */
  async decrease(delta: number, signal: AbortSignal): Promise<boolean> {
    if (!Number.isInteger(delta) || delta <= 0)
      throw new NodeGroupError(`group ${this.#id}: the decrease must be positive, not ${String(delta)}`)
    return await this.#inTurn(async () => {
      this.observe()
      const count = Math.min(delta, this.#awaited.count)
      if (count === 0) return false
      const unmade = ({ replicas, machines }: LiveGroup) =>
        Math.min(count, Math.max(0, replicas - machines.filter(isStaying).length))
      let chosen: readonly string[] | undefined
      await this.#lower(
        {
          without: unmade,
          victims: (live) => {
            // A retry keeps its victims, less those that have joined meanwhile.
            const pending = live.machines.filter(
              (machine) =>
                isStaying(machine) &&
                machine.status?.nodeRef === undefined &&
                claimOf(machine, live.object, this.#hub.names) === undefined,
            )
            const newest = pending.toSorted((a, b) => compareAges(b, a)).slice(0, count - unmade(live))
            chosen ??= newest.map((machine) => hubText(hubKeyOf(machine)))
            return pending.filter((machine) => chosen?.includes(hubText(hubKeyOf(machine))))
          },
          belowMinimum: false,
        },
        signal,
      )
      this.#awaited.cancel(count, `${this.#id}: ${String(count)} replicas were taken back`)
      return true
    })
  }

  /** Removes marks that an ended process left without lowering the replicas. */
  async tidy(signal: AbortSignal): Promise<void> {
    const object = this.#hub.resource(this.#ref)
    if (this.#waiting > 0 || object === undefined) return
    const { deleteMachine } = this.#hub.names
    const isLeftover = (machine: Machine) => {
      const value = ownValue(machine.metadata.annotations, deleteMachine) ?? ''
      if (!isStaying(machine) || !value.startsWith(ownMark)) return false
      return this.#clock.now() - Date.parse(value.slice(ownMark.length)) >= leftoverMs
    }
    if (!this.#hub.machinesOf(this.#ref).some(isLeftover)) return
    await this.#inTurn(async () => {
      const live = await this.#live(signal)
      if (live.replicas < live.machines.filter(isStaying).length) return
      await this.#unmark(live.machines.filter(isLeftover), signal)
    })
  }

  /** Runs after all earlier calls, whatever became of them. */
  async #inTurn<T>(work: () => Promise<T>): Promise<T> {
    this.#waiting++
    const turn = this.#queue.then(work)
    this.#queue = turn.catch(() => undefined)
    try {
      return await turn
    } catch (error) {
      if (!isKubeError(error)) throw error
      throw new NodeGroupError(`group ${this.#id}: ${error.message}`, { cause: error })
    } finally {
      this.#waiting--
    }
  }

  async #increase(delta: number, signal: AbortSignal): Promise<Increase> {
    let intended: number | undefined
    for (let attempt = 1; ; attempt++) {
      const object = await this.#read(signal)
      this.#refuseHeld(object, [])
      const from = this.#replicasOf(object)
      // The response to an earlier attempt may have been lost.
      const isWritten = from === intended
      const to = isWritten ? from : from + delta
      const { max } = boundsOfGroup(this.#hub, this.#ref, object)
      if (!isWritten && to > max)
        throw new NodeGroupError(
          `group ${this.#id}: the increase is too large: size ${String(from)}, desired ${String(to)}, maximum ${String(max)}`,
        )
      const registered = registeredIn(object, this.#hub.machinesOf(this.#ref))
      try {
        if (!isWritten) {
          intended = to
          await this.#setReplicas(object, to, signal)
        }
        return { targetSize: to, settled: this.#awaited.add(delta, registered) }
      } catch (error) {
        if (!isUncertain(error) || attempt === mostAttempts) throw error
      }
    }
  }

  /** @returns the Machines that Cluster API will delete. */
  async #lower(removal: Removal, signal: AbortSignal): Promise<readonly HubKey[]> {
    /** Marked by this call. */
    const placed = new Set<string>()
    let intended: number | undefined
    /** Without an answer, a write may still arrive. */
    let isLost = false
    for (let attempt = 1; ; attempt++) {
      try {
        if (attempt > mostAttempts)
          throw new NodeGroupError(`group ${this.#id} or its Machines change too often; nothing is removed`)
        const live = await this.#live(signal)
        const given = live.machines.filter((machine) => placed.has(keyTextOf(machine)))
        const victims = removal.victims(live)
        // They have joined since they were marked.
        const spared = given.filter((machine) => isStaying(machine) && !victims.includes(machine))
        await this.#unmark(spared, signal)
        for (const machine of spared) placed.delete(keyTextOf(machine))
        const leftovers = this.#leftovers(live, victims, placed)
        await this.#unmark(leftovers, signal)
        if (leftovers.length > 0) continue
        // The response to an earlier attempt was lost, or somebody else wrote the same.
        if (live.replicas === intended) return victims.map(hubKeyOf)
        const next = this.#nextReplicas(live, victims, removal)
        const unmarked = victims.filter((machine) => this.#markOf(machine) === 'none')
        for (const machine of unmarked) {
          placed.add(keyTextOf(machine))
          await this.#mark(machine, signal)
        }
        // Read again with the marks: a victim may have joined, or been bound, meanwhile.
        if (unmarked.length > 0) continue
        if (next < live.replicas) {
          intended = next
          await this.#setReplicas(live.object, next, signal)
        }
        return victims.map(hubKeyOf)
      } catch (error) {
        signal.throwIfAborted()
        isLost ||= intended !== undefined && isKubeError(error, 'transport', 'server')
        if (isUncertain(error) && attempt < mostAttempts) continue
        // If a lost write arrives later, another Machine would go in place of one without its mark.
        if (!isLost) await this.#giveUp(placed, signal)
        throw error
      }
    }
  }

  /**
   * R after the removal: max(R, Machines) less the marked ones, never above R, and so never below the Machines in use.
   * @throws NodeGroupError below the minimum.
   */
  #nextReplicas(live: LiveGroup, victims: readonly Machine[], removal: Removal): number {
    const { object, replicas, machines } = live
    const staying = machines.filter(isStaying)
    const marked = staying.filter((machine) => victims.includes(machine) || this.#markOf(machine) === 'own')
    const without = removal.without(live)
    const next = Math.min(replicas, Math.max(replicas, staying.length) - marked.length - without)
    const { min } = boundsOfGroup(this.#hub, this.#ref, object)
    if (next < replicas && next < min && !removal.belowMinimum)
      throw new NodeGroupError(
        `group ${this.#id}: nothing is removed: size ${String(replicas)} would become ${String(next)}, minimum ${String(min)}`,
      )
    return Math.max(0, next)
  }

  /**
   * Own marks of earlier calls for which no replicas were lowered. If they were lowered, Cluster API is about to delete
   * these Machines, and they stay marked.
   * @throws NodeGroupError if that is true of some of them only, or someone else marked Machines.
   */
  #leftovers(
    { replicas, machines }: LiveGroup,
    victims: readonly Machine[],
    placed: ReadonlySet<string>,
  ): readonly Machine[] {
    const staying = machines.filter(isStaying)
    const sets = new Set(victims.map((machine) => ownerName(machine, 'MachineSet')))
    const foreign = staying.find(
      (machine) =>
        this.#markOf(machine) === 'foreign' &&
        !victims.includes(machine) &&
        sets.has(ownerName(machine, 'MachineSet')),
    )
    if (foreign !== undefined)
      throw new NodeGroupError(
        `group ${this.#id}: Machine ${keyTextOf(foreign)} has annotation ${this.#hub.names.deleteMachine} of someone else and would go instead: remove the annotation, or wait until it is deleted`,
      )
    const earlier = staying.filter(
      (machine) => this.#markOf(machine) !== 'none' && !placed.has(keyTextOf(machine)),
    )
    const going = Math.max(0, staying.length - replicas)
    if (going >= earlier.length) return []
    if (going > 0)
      throw new NodeGroupError(
        `group ${this.#id}: Cluster API has yet to delete ${String(going)} of ${String(earlier.length)} marked Machines`,
      )
    return earlier.filter((machine) => this.#markOf(machine) === 'own' && !victims.includes(machine))
  }

  /** @throws NodeGroupError unless `--clusterapi-machinepool-any-victim` allows what the infrastructure would choose. */
  #instancesWithoutMachine(ids: readonly string[], live: LiveGroup): readonly string[] {
    const instances = instancesWithoutMachine(this.#hub, live, ids, this.#lowered)
    const [one] = instances
    if (one !== undefined && !this.#anyPoolVictim)
      throw new NodeGroupError(
        `group ${this.#id}: ${one} has no Machine, so the infrastructure would choose what to remove; allow that with --clusterapi-machinepool-any-victim`,
      )
    return instances
  }

  async #setReplicas(object: Scalable, to: number, signal: AbortSignal): Promise<void> {
    const from = object.spec?.replicas ?? 0
    const type = this.#hub.typeOf(this.#ref.kind)
    const resourceVersion = await this.#writes.setReplicas(type, object, to, signal)
    this.#contest.wrote(from, to, resourceVersion)
    this.#logger.info('scaled a node group', { nodeGroup: this.#id, from, to })
  }

  async #mark(machine: Machine, signal: AbortSignal): Promise<void> {
    const value = `${ownMark}${rfc3339(this.#clock.now())}`
    await this.#writes.mark(this.#hub.kinds.machine, machine, this.#hub.names.deleteMachine, value, signal)
  }

  #markOf(machine: Machine): ReturnType<typeof markOf> {
    return markOf(machine, this.#hub.names.deleteMachine)
  }

  /** Takes own marks off. */
  async #unmark(machines: readonly Machine[], signal: AbortSignal): Promise<void> {
    const { kinds, client, names } = this.#hub
    for (const { metadata } of machines) {
      for (let attempt = 1; ; attempt++) {
        const machine = await client.get(kinds.machine, hubKeyOf({ metadata }), { signal })
        if (machine === undefined || metadata.uid !== machine.metadata.uid || this.#markOf(machine) !== 'own')
          break
        try {
          await this.#writes.mark(kinds.machine, machine, names.deleteMachine, null, signal)
          break
        } catch (error) {
          if (!isKubeError(error, 'conflict') || attempt === mostAttempts) throw error
        }
      }
    }
  }

  /** Takes the marks of a failed call off, unless its replicas are lowered all the same. */
  async #giveUp(placed: ReadonlySet<string>, signal: AbortSignal): Promise<void> {
    if (placed.size === 0) return
    try {
      const object = await this.#read(signal)
      const sets = await readSets(this.#hub, this.#ref, signal)
      const machines = await readMachines(this.#hub, this.#ref, object, sets, signal)
      const isLowered = (object.spec?.replicas ?? 0) < machines.filter(isStaying).length
      if (object.metadata.deletionTimestamp !== undefined || isLowered) return
      await this.#unmark(
        machines.filter((machine) => isStaying(machine) && placed.has(keyTextOf(machine))),
        signal,
      )
    } catch (error) {
      this.#logger.warn('the marks of a failed removal could not be taken off; that is tried again later', {
        nodeGroup: this.#id,
        error: messageOf(error),
      })
    }
  }

  /** @throws NodeGroupError if nothing may be removed. */
  async #live(signal: AbortSignal): Promise<LiveGroup> {
    const hub = this.#hub
    const ref = this.#ref
    if (hub.gap !== undefined) throw new NodeGroupError(`group ${this.#id}: ${hub.gap}`)
    const object = await this.#read(signal)
    const sets = await readSets(hub, ref, signal)
    this.#refuseHeld(object, sets)
    const replicas = this.#replicasOf(object)
    return { ref, object, replicas, machines: await readMachines(hub, ref, object, sets, signal) }
  }

  async #read(signal: AbortSignal): Promise<Scalable> {
    const object = await readScalable(this.#hub, this.#ref, signal)
    this.#contest.observe(object)
    return object
  }

  /** @throws NodeGroupError if nobody has set them. */
  #replicasOf({ spec }: Scalable): number {
    if (spec?.replicas === undefined)
      throw new NodeGroupError(`group ${this.#id} has no spec.replicas: set it, then it can be scaled`)
    return spec.replicas
  }

  /** @throws NodeGroupError if the group is paused, rolling, contested or being deleted. */
  #refuseHeld(object: Scalable, sets: readonly MachineSet[]): void {
    const reason = holdOfObject(this.#hub, object, sets) ?? this.contested
    if (reason !== undefined) throw new NodeGroupError(`group ${this.#id}: ${reason}`)
  }

  async #untilDeleting(keys: readonly HubKey[], signal: AbortSignal): Promise<void> {
    const endMs = this.#clock.monotonic() + patienceMs
    for (;;) {
      const left = keys.filter((key) => {
        const machine = this.#hub.machine(key)
        return machine !== undefined && isStaying(machine)
      })
      if (left.length === 0) return
      if (this.#clock.monotonic() >= endMs)
        throw new NodeGroupError(
          `group ${this.#id}: Cluster API has not begun to delete Machine ${left.map(hubText).join(' and ')} within ${String(patienceMs / 60_000)} min`,
        )
      await this.#clock.sleep(pollMs, signal)
    }
  }
}

/** Machines with Nodes; of a MachinePool without Machines, its instances. */
function registeredIn(object: Scalable, machines: readonly Machine[]): number {
  if (machines.length === 0) return object.spec?.providerIDList?.length ?? 0
  return machines.filter((machine) => isStaying(machine) && machine.status?.nodeRef !== undefined).length
}

/** Whether a write may have had an effect, or another one came first: read again, then decide. */
function isUncertain(error: unknown): boolean {
  return isKubeError(error, 'conflict', 'transport', 'server')
}
