/**
 * Everything that happened to Machines and to what owns them, in the order in which the API server stored it: resource
 * versions of all kinds count on one scale, that of etcd.
 */
import type { KubeObject, ResourceType } from '@tenon/api'
import { isKubeError, type WatchEvent, type WatchingKubeClient } from '@tenon/kube'
import type { Clock } from '@tenon/runtime'
import { capiKinds, isControlPlane, type Machine, type MachineDeployment, type MachineSet } from './kinds.ts'

const deleteMachine = 'cluster.x-k8s.io/delete-machine'
const revision = 'machinedeployment.clusters.x-k8s.io/revision'
const deploymentName = 'cluster.x-k8s.io/deployment-name'
const timeoutSeconds = 600
const retryMs = 200

type Recorded = Machine | MachineDeployment

interface Change {
  readonly kind: 'added' | 'modified' | 'deleted'
  readonly object: Recorded
}

/** Why a Machine was deleted: its mark of Tenon, a MachineHealthCheck, or a rollout; otherwise nobody meant it. */
type DeletionReason =
  | 'marked by Tenon'
  | 'marked by Tenon while rolling'
  | 'marked by another'
  | 'health check'
  | 'rollout'
  | 'none'

export interface Deletion {
  readonly machine: string
  /** The MachineDeployment; for others the owner, or {@link controlPlaneOf} a Cluster. */
  readonly group: string
  readonly reason: DeletionReason
}

/** A number of replicas that was lowered below the Machines that nobody had marked. */
export interface Undercut {
  readonly group: string
  readonly replicas: number
  readonly inUse: readonly string[]
}

/** The group of a control plane's Machines. */
export const controlPlaneOf = (cluster: string): string => `control plane of ${cluster}`

export class MachineHistory {
  readonly #client: WatchingKubeClient
  readonly #clock: Clock
  readonly #end = new AbortController()
  readonly #changes: Change[] = []
  readonly #watches: Promise<void>[] = []

  constructor(client: WatchingKubeClient, clock: Clock) {
    this.#client = client
    this.#clock = clock
  }

  /** Records from now on; resolves once all that exists is recorded. */
  async start(): Promise<void> {
    for (const type of [capiKinds.machineDeployment, capiKinds.machineSet, capiKinds.machine]) {
      const { items, resourceVersion } = await this.#client.listing<Recorded, Recorded>(
        type,
        {},
        (object) => object,
      )
      for (const object of items) this.#changes.push({ kind: 'added', object })
      this.#watches.push(this.#watch(type, resourceVersion))
    }
  }

  async stop(): Promise<void> {
    this.#end.abort()
    await Promise.all(this.#watches)
  }

  /** All deletions so far, each with its reason at the time. */
  deletions(): readonly Deletion[] {
    return this.#replay().deletions
  }

  undercuts(): readonly Undercut[] {
    return this.#replay().undercuts
  }

  /** The programs that have ever written a field of a Machine of this group. */
  writers(group: string): ReadonlySet<string> {
    const machines = this.#changes.flatMap(({ object }) =>
      object.kind === 'Machine' && ownerOf(object as Machine) === group ? [object] : [],
    )
    return new Set(
      machines.flatMap(({ metadata }) => metadata.managedFields ?? []).map(({ manager }) => manager ?? ''),
    )
  }

  async #watch(type: ResourceType<Recorded>, since: string): Promise<void> {
    let resourceVersion = since
    while (!this.#end.signal.aborted) {
      try {
        const options = { resourceVersion, timeoutSeconds, signal: this.#end.signal }
        for await (const batch of await this.#client.watch<Recorded>(type, options))
          for (const event of batch) resourceVersion = this.#take(event)
      } catch (error) {
        // A break loses nothing: the next watch goes on from the last event.
        if (!this.#end.signal.aborted && !isKubeError(error, 'transport', 'server')) throw error
      }
      await this.#clock.sleep(retryMs, this.#end.signal).catch(() => {})
    }
  }

  #take(event: WatchEvent<Recorded>): string {
    if (event.kind === 'bookmark') return event.resourceVersion
    this.#changes.push(event)
    return event.object.metadata.resourceVersion ?? ''
  }

  #replay() {
    const machines = new Map<string, Machine>()
    const sets = new Map<string, MachineSet>()
    const replicas = new Map<string, number>()
    const deletions: Deletion[] = []
    const undercuts: Undercut[] = []
    const ordered = this.#changes.toSorted((a, b) => versionOf(a.object) - versionOf(b.object))
    for (const { kind, object } of ordered) {
      const key = `${object.kind}/${object.metadata.namespace}/${object.metadata.name}`
      if (object.kind === 'MachineSet') {
        if (kind === 'deleted') sets.delete(key)
        else sets.set(key, object as MachineSet)
      } else if (object.kind === 'Machine') {
        const machine = object as Machine
        const before = machines.get(key)
        if (before !== undefined && !isGoing(before) && (kind === 'deleted' || isGoing(machine)))
          deletions.push({
            machine: machine.metadata.name,
            group: ownerOf(machine),
            reason: reasonOf(machine, sets, machines),
          })
        if (kind === 'deleted') machines.delete(key)
        else machines.set(key, machine)
      }
      if (object.kind === 'Machine' || kind === 'deleted') continue
      const { spec, metadata } = object as MachineDeployment
      if (isOwned(object)) continue
      const now = spec.replicas ?? 0
      const inUse = [...machines.values()].filter(
        (machine) =>
          machine.metadata.namespace === metadata.namespace &&
          ownerOf(machine) === metadata.name &&
          !isGoing(machine) &&
          machine.metadata.annotations?.[deleteMachine] === undefined,
      )
      if (now < (replicas.get(key) ?? 0) && now < inUse.length)
        undercuts.push({ group: metadata.name, replicas: now, inUse: inUse.map(nameOf) })
      replicas.set(key, now)
    }
    return { deletions, undercuts }
  }
}

const versionOf = ({ metadata }: KubeObject): number => Number(metadata.resourceVersion)

const isGoing = ({ metadata }: Machine): boolean => metadata.deletionTimestamp !== undefined

const nameOf = ({ metadata }: KubeObject): string => metadata.name

/** Whether it is the MachineSet of a MachineDeployment. */
const isOwned = ({ metadata }: KubeObject): boolean =>
  metadata.ownerReferences?.some(({ kind }) => kind === 'MachineDeployment') === true

function ownerOf(machine: Machine): string {
  const { labels, ownerReferences } = machine.metadata
  if (isControlPlane(machine)) return controlPlaneOf(machine.spec.clusterName)
  return labels?.[deploymentName] ?? ownerReferences?.[0]?.name ?? ''
}

function reasonOf(
  machine: Machine,
  sets: ReadonlyMap<string, MachineSet>,
  machines: ReadonlyMap<string, Machine>,
): DeletionReason {
  const { annotations, namespace, ownerReferences = [] } = machine.metadata
  const mark = annotations?.[deleteMachine]
  const deployment = machine.metadata.labels?.[deploymentName]
  const siblings = [...sets.values()].filter(
    ({ metadata }) => deployment !== undefined && metadata.labels?.[deploymentName] === deployment,
  )
  const newest = Math.max(...siblings.map(revisionOf))
  if (mark !== undefined) {
    if (!mark.startsWith('tenon ')) return 'marked by another'
    const isRolling = siblings.some((set) => revisionOf(set) < newest && (set.spec.replicas ?? 0) > 0)
    return isRolling ? 'marked by Tenon while rolling' : 'marked by Tenon'
  }
  const isFalse = (type: string) =>
    machine.status?.conditions?.some((each) => each.type === type && each.status === 'False') === true
  if (isFalse('HealthCheckSucceeded') && isFalse('OwnerRemediated')) return 'health check'
  if (isControlPlane(machine)) {
    const isReplaced = [...machines.values()].some(
      (other) => ownerOf(other) === ownerOf(machine) && other.spec.version !== machine.spec.version,
    )
    return isReplaced ? 'rollout' : 'none'
  }
  const own = ownerReferences.find(({ kind }) => kind === 'MachineSet')
  const set = sets.get(`MachineSet/${namespace}/${own?.name}`)
  return set !== undefined && revisionOf(set) < newest ? 'rollout' : 'none'
}

function revisionOf({ metadata }: MachineSet): number {
  return Number(metadata.annotations?.[revision])
}
