/** Checks on the hub what users of Cluster API rely on. */
import { conditionOf, type Node, ownValue, type Pod } from '@tenon/api'
import { toBeDeletedTaint } from '@tenon/cluster-autoscaler'
import type { HttpRequest, Transport } from '@tenon/runtime'
import type { FullMachine } from '@tenon/simulator-cluster-api'
import { deleteMachine, groupOf, type HubWorld, namespace } from './hub-world.ts'

export interface HubViolation {
  readonly invariant:
    | 'onlyMeantMachinesGo'
    | 'onlyDrainedMachinesAreMarked'
    | 'replicasCoverMachinesInUse'
    | 'sizesAreKept'
    | 'othersAreLeftAlone'
    | 'onlyEvictionsRemovePods'
    | 'onlyTheLeaderActs'
    | 'exactSizeAtRest'
  /** A sentence that names the objects. */
  readonly text: string
  /** Virtual time. */
  readonly atMs: number
}

const path = /\/namespaces\/default\/(machines|machinedeployments)\/([^/?]+)(\/scale)?(?:\?|$)/
/** Before that a Machine may still become a node. */
const provisionMs = 15 * 60_000

export class HubChecker {
  #world: HubWorld | undefined
  #violation: HubViolation | undefined
  /** UIDs of Machines that people or Cluster API itself delete. */
  readonly #meant = new Set<string>()

  get violation(): HubViolation | undefined {
    return this.#violation
  }

  observe(world: HubWorld): void {
    this.#world = world
    const { hub, kinds } = world.cluster.cloud
    hub.subscribe(kinds.machine, {
      updated: (machine, old) => {
        if (old.metadata.deletionTimestamp === undefined && machine.metadata.deletionTimestamp !== undefined)
          this.#checkEnd(world, old)
      },
    })
  }

  /** A person deletes a Machine. */
  allow({ metadata }: FullMachine): void {
    this.#meant.add(metadata.uid ?? '')
  }

  /** Wraps the connection of a process to the workload cluster. */
  api(inner: Transport, identity: string): Transport {
    return {
      send: async (request, signal) => {
        this.#checkLeader(request, identity)
        if (request.method === 'DELETE' && /\/(?:pods|nodes)\/[^/?]+(?:\?|$)/.test(request.path))
          this.#violate('onlyEvictionsRemovePods', `the autoscaler sends DELETE ${request.path}`)
        return await inner.send(request, signal)
      },
    }
  }

  /** Wraps the connection of a process to the hub. Refused requests violate nothing. */
  hub(inner: Transport, identity: string): Transport {
    return {
      send: async (request, signal) => {
        this.#checkLeader(request, identity)
        const problem = this.#problemOf(request)
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

  #problemOf({ method, path: asked, body }: HttpRequest): [HubViolation['invariant'], string] | undefined {
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
    return sizeProblem(world, name, replicas ?? 0)
  }

  #markProblem(
    world: HubWorld,
    name: string,
    marks: boolean,
  ): [HubViolation['invariant'], string] | undefined {
    const machine = world.machines().find(({ metadata }) => metadata.name === name)
    if (machine === undefined) return undefined
    const group = world.groups.find((each) => each.name === groupOf(machine))
    if (group?.bounds === undefined)
      return ['othersAreLeftAlone', `Machine ${name} belongs to no group and is written`]
    const node = nodeOf(world, machine)
    if (!marks || ownValue(machine.metadata.annotations, deleteMachine) !== undefined) return undefined
    if (node === undefined) {
      const ageMs = world.clock.now() - Date.parse(machine.metadata.creationTimestamp ?? '')
      const isMeant = ageMs >= provisionMs || machine.status?.phase === 'Failed'
      return isMeant
        ? undefined
        : ['onlyDrainedMachinesAreMarked', `Machine ${name} is marked after ${ageMs / 60_000} min`]
    }
    if (node.spec?.taints?.some(({ key }) => key === toBeDeletedTaint) !== true)
      return ['onlyDrainedMachinesAreMarked', `Machine ${name} is marked, and its Node is not`]
    const [pod] = podsOn(world, node)
    return pod && ['onlyDrainedMachinesAreMarked', `Machine ${name} is marked with pod ${pod.metadata.name}`]
  }

  #checkEnd(world: HubWorld, machine: FullMachine): void {
    const { annotations, name, uid = '' } = machine.metadata
    const isRemediated = conditionOf(machine, 'OwnerRemediated')?.status === 'False'
    if (this.#meant.has(uid) || isRemediated) return
    if (ownValue(annotations, deleteMachine) !== undefined) return
    const { hub, kinds } = world.cluster.cloud
    // A rollout takes Machines of the former template.
    const sets = hub.list(kinds.set, { namespace }).filter((set) => groupOf(set) === groupOf(machine))
    if (sets.length > 1) return
    this.#violate('onlyMeantMachinesGo', `Machine ${name} goes, and nobody meant it`)
  }

  /** Call it when nothing changes any more. */
  checkRest(): void {
    const world = this.#world
    if (world === undefined) return
    for (const { metadata, spec } of world.nodes())
      if (spec?.taints?.some(({ key }) => key === toBeDeletedTaint))
        this.#violate('exactSizeAtRest', `Node ${metadata.name} is still marked`)
    const isFull = world.groups.every(
      ({ bounds, name }) => bounds === undefined || world.machines(name).length >= bounds.max,
    )
    const waiting = world
      .pods()
      .find(({ spec, status }) => spec.nodeName === undefined && status?.phase === 'Pending')
    if (waiting !== undefined && !isFull)
      this.#violate('exactSizeAtRest', `pod ${waiting.metadata.name} waits, and not all groups are full`)
    for (const { bounds, name } of world.groups) {
      const machines = world.machines(name)
      const replicas = world.deployment(name)?.spec?.replicas ?? 0
      if (machines.length !== replicas)
        this.#violate('exactSizeAtRest', `${name} has ${replicas} replicas and ${machines.length} Machines`)
      if (bounds === undefined) continue
      for (const machine of machines) {
        const node = nodeOf(world, machine)
        if (node === undefined)
          this.#violate('exactSizeAtRest', `Machine ${machine.metadata.name} has no Node`)
        else if (podsOn(world, node).length === 0 && machines.length > bounds.min)
          this.#violate('exactSizeAtRest', `Node ${node.metadata.name} of ${name} is empty and stays`)
        if (ownValue(machine.metadata.annotations, deleteMachine) !== undefined)
          this.#violate('exactSizeAtRest', `Machine ${machine.metadata.name} is marked and stays`)
      }
    }
  }

  #violate(invariant: HubViolation['invariant'], text: string): void {
    this.#violation ??= { invariant, text, atMs: this.#world?.clock.monotonic() ?? 0 }
  }
}

function sizeProblem(
  world: HubWorld,
  name: string,
  replicas: number,
): [HubViolation['invariant'], string] | undefined {
  const bounds = world.groups.find((group) => group.name === name)?.bounds
  if (bounds === undefined) return ['othersAreLeftAlone', `${name} is no group and is scaled to ${replicas}`]
  const before = world.deployment(name)?.spec?.replicas ?? 0
  if (replicas > Math.max(bounds.max, before))
    return ['sizesAreKept', `${name} is scaled to ${replicas}, maximum ${bounds.max}`]
  if (replicas < Math.min(bounds.min, before))
    return ['sizesAreKept', `${name} is scaled to ${replicas}, minimum ${bounds.min}`]
  const staying = world.machines(name).filter(({ metadata }) => metadata.deletionTimestamp === undefined)
  const inUse = staying.filter(
    ({ metadata }) => ownValue(metadata.annotations, deleteMachine) === undefined,
  ).length
  return replicas < before && replicas < inUse
    ? ['replicasCoverMachinesInUse', `${name} is scaled to ${replicas} with ${inUse} Machines in use`]
    : undefined
}

function nodeOf(world: HubWorld, { status }: FullMachine): Node | undefined {
  return world.nodes().find(({ metadata }) => metadata.name === status?.nodeRef?.name)
}

/** Pods that must be evicted: those of Deployments that neither have terminated nor are terminating. */
function podsOn(world: HubWorld, { metadata }: Node): readonly Pod[] {
  return world
    .pods()
    .filter(
      ({ metadata: { deletionTimestamp, ownerReferences = [] }, spec, status }) =>
        spec.nodeName === metadata.name &&
        deletionTimestamp === undefined &&
        status?.phase !== 'Succeeded' &&
        status?.phase !== 'Failed' &&
        ownerReferences.some(({ kind }) => kind === 'ReplicaSet'),
    )
}
