/** Checks on the hub what users of Cluster API rely on. */
import { conditionOf, type Node, ownValue } from '@tenon/api'
import { toBeDeletedTaint } from '@tenon/cluster-autoscaler'
import type { HttpRequest, Transport } from '@tenon/runtime'
import type { FullMachine } from '@tenon/simulator-cluster-api'
import { boundTo, deploymentOf, isLeaving, namespace } from '../../simulation/cloud/hub-objects.ts'
import { podsOn } from '../checker.ts'
import { deleteMachine, type HubWorld, paused } from './hub-world.ts'
import { Demand, provisionMs } from './waste.ts'

export interface HubViolation {
  readonly invariant:
    | 'onlyMeantMachinesGo'
    | 'onlyDrainedMachinesAreMarked'
    | 'replicasCoverMachinesInUse'
    | 'sizesAreKept'
    | 'othersAreLeftAlone'
    | 'holdsAreKept'
    | 'growthIsNeeded'
    | 'contestsEnd'
    | 'onlyEvictionsRemovePods'
    | 'onlyTheLeaderActs'
    | 'exactSizeAtRest'
  /** A sentence that names the objects. */
  readonly text: string
  /** Virtual time. */
  readonly atMs: number
}

type Problem = readonly [invariant: HubViolation['invariant'], text: string]

const path = /\/namespaces\/default\/(machines|machinedeployments)\/([^/?]+)(\/scale)?(?:\?|$)/
const minute = 60_000
/** What happened later may not have been seen before a write. */
const graceMs = minute
/** Two writes that are undone, and one whose reply was lost. */
const mostContested = 3

export class HubChecker {
  #world: HubWorld | undefined
  #demand: Demand | undefined
  #violation: HubViolation | undefined
  /** UIDs of Machines that people or Cluster API itself delete. */
  readonly #meant = new Set<string>()
  /** Machines that go because people lower replicas, by MachineDeployment. */
  readonly #lowered = new Map<string, number>()
  /** Since when a MachineDeployment is paused. */
  readonly #pausedMs = new Map<string, number>()
  /** Writes of replicas that the topology keeps, by process and MachineDeployment. */
  readonly #contested = new Map<string, number>()

  get violation(): HubViolation | undefined {
    return this.#violation
  }

  observe(world: HubWorld): void {
    this.#world = world
    this.#demand = new Demand(world)
    const { hub, kinds } = world.cluster.cloud
    hub.subscribe(kinds.machine, {
      updated: (machine, old) => {
        if (!isLeaving(old) && isLeaving(machine)) this.#checkEnd(world, old)
      },
    })
    hub.subscribe(kinds.deployment, {
      updated: ({ metadata: { annotations, name } }) => {
        if (ownValue(annotations, paused) === undefined) this.#pausedMs.delete(name)
        else if (!this.#pausedMs.has(name)) this.#pausedMs.set(name, world.clock.monotonic())
      },
    })
  }

  /** A person deletes a Machine. */
  allow({ metadata }: FullMachine): void {
    this.#meant.add(metadata.uid ?? '')
  }

  /** A person changes replicas. */
  allowResize(name: string, by: number): void {
    if (by > 0) for (let count = 0; count < by; count++) this.#demand?.added(name)
    else this.#lowered.set(name, (this.#lowered.get(name) ?? 0) - by)
  }

  /** A person changes the topology or its replicas, so that they may be written again. */
  allowContest(): void {
    this.#contested.clear()
  }

  /** Wraps a connection of a process, before anything can happen to requests. */
  sender(inner: Transport, identity: string): Transport {
    return {
      send: (request, signal) => {
        this.#checkLeader(request, identity)
        return inner.send(request, signal)
      },
    }
  }

  /** Wraps the workload's API server. */
  api(inner: Transport): Transport {
    return {
      send: (request, signal) => {
        if (request.method === 'DELETE' && /\/(?:pods|nodes)\/[^/?]+(?:\?|$)/.test(request.path))
          this.#violate('onlyEvictionsRemovePods', `the autoscaler sends DELETE ${request.path}`)
        return inner.send(request, signal)
      },
    }
  }

  /** Wraps the hub. Refused requests violate nothing. */
  hub(inner: Transport, identity: string): Transport {
    return {
      send: async (request, signal) => {
        const problem = this.#problemOf(request, identity)
        const response = await inner.send(request, signal)
        if (response.status < 300 && problem !== undefined) this.#violate(...problem)
        return response
      },
    }
  }

  #checkLeader({ method, path: asked }: HttpRequest, identity: string): void {
    const world = this.#world
    if (world === undefined || method === 'GET' || asked.includes('/leases')) return
    const { holderIdentity = '', renewTime = '', leaseDurationSeconds = 0 } = world.lease()?.spec ?? {}
    const leftMs = Date.parse(renewTime) + leaseDurationSeconds * 1000 - world.clock.now()
    if (holderIdentity !== identity || leftMs < 0)
      this.#violate('onlyTheLeaderActs', `${identity} sends ${method} ${asked} without the lease`)
  }

  #problemOf({ method, path: asked, body }: HttpRequest, identity: string): Problem | undefined {
    const world = this.#world
    const [, plural, name = '', scale] = path.exec(asked) ?? []
    if (world === undefined || method === 'GET' || plural === undefined) return undefined
    if (method === 'DELETE') return ['othersAreLeftAlone', `the autoscaler deletes ${plural} ${name}`]
    const written = JSON.parse(String(body)) as {
      readonly metadata?: { readonly annotations?: Readonly<Record<string, unknown>> }
      readonly spec?: { readonly replicas?: number }
    }
    if (plural === 'machines') {
      const mark = written.metadata?.annotations?.[deleteMachine]
      return this.#markProblem(world, name, typeof mark === 'string')
    }
    const replicas = written.spec?.replicas
    if (scale === undefined && replicas === undefined) return undefined
    return this.#sizeProblem(world, name, replicas ?? 0, identity)
  }

  #markProblem(world: HubWorld, name: string, marks: boolean): Problem | undefined {
    const machine = world.machines().find(({ metadata }) => metadata.name === name)
    if (machine === undefined) return undefined
    const group = world.groups.find((each) => each.name === deploymentOf(machine))
    if (group?.bounds === undefined)
      return ['othersAreLeftAlone', `Machine ${name} belongs to no group and is written`]
    const node = nodeOf(world, machine)
    if (!marks || ownValue(machine.metadata.annotations, deleteMachine) !== undefined) return undefined
    if (boundTo(machine) !== undefined)
      return ['othersAreLeftAlone', `Machine ${name} of a NodeClaim is marked`]
    const hold = this.#holdOf(world, group.name)
    if (hold !== undefined) return ['holdsAreKept', `Machine ${name} is marked, but ${group.name} is ${hold}`]
    if (node === undefined) {
      const ageMs = world.clock.now() - Date.parse(machine.metadata.creationTimestamp ?? '')
      const isMeant = ageMs >= provisionMs || machine.status?.phase === 'Failed'
      return isMeant
        ? undefined
        : ['onlyDrainedMachinesAreMarked', `Machine ${name} is marked after ${ageMs / minute} min`]
    }
    if (node.spec?.taints?.some(({ key }) => key === toBeDeletedTaint) !== true)
      return ['onlyDrainedMachinesAreMarked', `Machine ${name} is marked, and its Node is not`]
    const [pod] = podsOn(world, node)
    return pod && ['onlyDrainedMachinesAreMarked', `Machine ${name} is marked with pod ${pod.metadata.name}`]
  }

  #sizeProblem(world: HubWorld, name: string, replicas: number, identity: string): Problem | undefined {
    const group = world.groups.find((each) => each.name === name)
    if (group?.bounds === undefined)
      return ['othersAreLeftAlone', `${name} is no group and is scaled to ${replicas}`]
    const { min, max } = group.bounds
    const before = world.deployment(name)?.spec?.replicas ?? 0
    if (replicas === before) return undefined
    const text = `${name} is scaled from ${before} to ${replicas}`
    if (this.#isPausedLong(world, name)) return ['holdsAreKept', `${text}, but it is paused`]
    if (replicas > Math.max(max, before)) return ['sizesAreKept', `${text}, maximum ${max}`]
    if (replicas < Math.min(min, before)) return ['sizesAreKept', `${text}, minimum ${min}`]
    const contest = this.#contestProblem(world, name, text, identity)
    if (contest !== undefined) return contest
    if (replicas > before) {
      const waste = this.#demand?.waste()
      return waste === undefined ? undefined : ['growthIsNeeded', `${text}: ${waste}`]
    }
    const staying = world.machines(name).filter((machine) => !isLeaving(machine))
    const marked = staying.filter((machine) => markOf(machine) !== undefined)
    const inUse = staying.length - marked.length
    if (replicas < inUse) return ['replicasCoverMachinesInUse', `${text} with ${inUse} Machines in use`]
    const hold = this.#holdOf(world, name)
    if (hold !== undefined) return ['holdsAreKept', `${text}, but it is ${hold}`]
    const going = staying.length - replicas
    const theirs = marked.find((machine) => isMarkedByPerson(world, machine))
    return going > 0 && going < marked.length && theirs !== undefined
      ? ['othersAreLeftAlone', `${text}, and Machine ${theirs.metadata.name} of a person may go`]
      : undefined
  }

  #contestProblem(world: HubWorld, name: string, text: string, identity: string): Problem | undefined {
    if (world.groups.find((each) => each.name === name)?.topology?.replicas === undefined) return undefined
    const key = `${identity} ${name}`
    const count = (this.#contested.get(key) ?? 0) + 1
    this.#contested.set(key, count)
    return count > mostContested
      ? ['contestsEnd', `${text}, the ${count}th time against the topology`]
      : undefined
  }

  /** Why nothing of a group may be removed: a word; undefined if it may be. */
  #holdOf(world: HubWorld, name: string): 'paused' | 'rolling' | undefined {
    if (this.#isPausedLong(world, name)) return 'paused'
    const { hub, kinds } = world.cluster.cloud
    const filled = hub
      .list(kinds.set, { namespace })
      .filter((set) => deploymentOf(set) === name && (set.spec?.replicas ?? 0) > 0)
    const newestMs = Math.max(...filled.map(({ metadata }) => Date.parse(metadata.creationTimestamp ?? '')))
    return filled.length > 1 && world.clock.now() - newestMs > graceMs ? 'rolling' : undefined
  }

  #isPausedLong({ clock }: HubWorld, name: string): boolean {
    const sinceMs = this.#pausedMs.get(name)
    return sinceMs !== undefined && clock.monotonic() - sinceMs > graceMs
  }

  #checkEnd(world: HubWorld, machine: FullMachine): void {
    const { name, uid = '' } = machine.metadata
    const group = deploymentOf(machine)
    const isRemediated = conditionOf(machine, 'OwnerRemediated')?.status === 'False'
    if (this.#meant.has(uid) || isRemediated || markOf(machine) !== undefined) return
    // Its topology lowers the replicas.
    if (world.groups.find((each) => each.name === group)?.topology?.replicas !== undefined) return
    const { hub, kinds } = world.cluster.cloud
    // A rollout takes Machines of the former template.
    const sets = hub.list(kinds.set, { namespace }).filter((set) => deploymentOf(set) === group)
    if (sets.length > 1) return
    const lowered = this.#lowered.get(group) ?? 0
    if (lowered > 0) this.#lowered.set(group, lowered - 1)
    else this.#violate('onlyMeantMachinesGo', `Machine ${name} goes, and nobody meant it`)
  }

  /** Call it when nothing changes any more. */
  checkRest(): void {
    const world = this.#world
    if (world === undefined) return
    this.#checkMarksAtRest(world)
    this.#checkSizesAtRest(world)
  }

  #checkMarksAtRest(world: HubWorld): void {
    for (const { metadata, spec } of world.nodes())
      if (spec?.unschedulable === true || spec?.taints?.some(({ key }) => key === toBeDeletedTaint))
        this.#violate('exactSizeAtRest', `Node ${metadata.name} is still marked`)
    for (const machine of world.machines())
      if (markOf(machine) !== undefined)
        this.#violate('exactSizeAtRest', `Machine ${machine.metadata.name} is marked and stays`)
  }

  #checkSizesAtRest(world: HubWorld): void {
    const open = world.groups.find(
      ({ bounds, name, topology }) =>
        bounds !== undefined && topology?.replicas === undefined && world.machines(name).length < bounds.max,
    )
    const waiting = world
      .pods()
      .find(({ spec, status }) => spec.nodeName === undefined && status?.phase === 'Pending')
    if (waiting !== undefined && open !== undefined)
      this.#violate('exactSizeAtRest', `pod ${waiting.metadata.name} waits, and ${open.name} is not full`)
    for (const { bounds, name, topology } of world.groups) {
      const machines = world.machines(name)
      const replicas = world.deployment(name)?.spec?.replicas ?? 0
      if (machines.length !== replicas)
        this.#violate('exactSizeAtRest', `${name} has ${replicas} replicas and ${machines.length} Machines`)
      for (const machine of machines) {
        const node = nodeOf(world, machine)
        if (node === undefined)
          this.#violate('exactSizeAtRest', `Machine ${machine.metadata.name} has no Node`)
        else if (bounds === undefined || topology?.replicas !== undefined) continue
        else if (podsOn(world, node).length === 0 && machines.length > bounds.min)
          this.#violate('exactSizeAtRest', `Node ${node.metadata.name} of ${name} is empty and stays`)
      }
    }
  }

  #violate(invariant: HubViolation['invariant'], text: string): void {
    this.#violation ??= { invariant, text, atMs: this.#world?.clock.monotonic() ?? 0 }
  }
}

const markOf = ({ metadata }: FullMachine): string | undefined =>
  ownValue(metadata.annotations, deleteMachine)

/** Marks of people are times; a new one may not have been seen yet. */
function isMarkedByPerson({ clock }: HubWorld, machine: FullMachine): boolean {
  return clock.now() - Date.parse(markOf(machine) ?? '') > graceMs
}

function nodeOf(world: HubWorld, { status }: FullMachine): Node | undefined {
  return world.nodes().find(({ metadata }) => metadata.name === status?.nodeRef?.name)
}
