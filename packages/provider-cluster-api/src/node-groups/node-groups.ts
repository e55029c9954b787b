/** MachineDeployments, MachineSets and MachinePools as node groups. */
import type { Node } from '@tenon/api'
import { isKubeError } from '@tenon/kube'
import {
  type GroupFault,
  type GroupHold,
  type GroupInstance,
  type GroupOfNode,
  type Increase,
  type NodeExample,
  type NodeGroup,
  NodeGroupError,
  type NodeGroupOptions,
  type NodeGroups,
} from '@tenon/provider'
import { type Clock, type Logger, messageOf } from '@tenon/runtime'
import { pauseOf } from '../catalogue/growth.ts'
import type { Architecture } from '../catalogue/node-labels.ts'
import type { InfrastructureTemplates } from '../catalogue/templates.ts'
import { fixedNames } from '../names.ts'
import type { Machine } from '../objects.ts'
import { clusterKeyOf, clusterNameOf, type DiscoverySpec, matchesSpec, type Owned } from './discovery.ts'
import { exampleOf, groupCapacityOf, type GroupCapacity, isAnnotated } from './example.ts'
import { type GroupHub, ownerName } from './group-hub.ts'
import { GroupWorker } from './group-worker.ts'
import { GroupWrites } from './group-writes.ts'
import { instanceOf, removableId } from './instances.ts'
import { clusterOfNode, machineKeyOf, resourceOfNode } from './node-lookup.ts'
import {
  boundsOf,
  groupIdOf,
  groupKinds,
  groupOptionsOf,
  type GroupRef,
  ownerWarnings,
  refOf,
  rolloutOf,
  type Scalable,
} from './scalable.ts'

/** Changes of the hub are looked at together. */
const gatherMs = 100
const mostWarnings = 2000

interface KnownGroup {
  readonly ref: GroupRef
  readonly min: number
  readonly max: number
}

export class ClusterApiNodeGroups implements NodeGroups {
  readonly gpuLabel = 'cluster-api/accelerator'
  /** kubeadm joins nodes with it; Cluster API's core manager removes it (reports-2.md 12). */
  readonly startupTaint: string
  readonly #hub: GroupHub
  readonly #templates: InfrastructureTemplates
  readonly #specs: readonly DiscoverySpec[]
  readonly #architecture: Architecture
  readonly #anyPoolVictim: boolean
  readonly #runtime: { readonly clock: Clock; readonly logger: Logger }
  readonly #writes: GroupWrites
  readonly #workers = new Map<string, GroupWorker>()
  /** By ID, as of the last refresh. */
  #groups: ReadonlyMap<string, KnownGroup> = new Map()
  /** Resources whose annotations are malformed, by ID, and why. */
  #invalid: ReadonlyMap<string, string> = new Map()
  /** Clusters that Nodes of the workload name. */
  readonly #own = new Set<string>()
  /** Provider IDs of the Nodes last seen, by name. */
  readonly #nodes = new Map<string, string>()
  readonly #warned = new Set<string>()
  #isObserving = false

  constructor(
    hub: GroupHub,
    templates: InfrastructureTemplates,
    settings: {
      readonly specs: readonly DiscoverySpec[]
      readonly architecture: Architecture
      readonly anyPoolVictim: boolean
    },
    runtime: { readonly clock: Clock; readonly logger: Logger },
  ) {
    this.#hub = hub
    this.startupTaint = hub.names.uninitialized
    this.#templates = templates
    this.#specs = settings.specs
    this.#architecture = settings.architecture
    this.#anyPoolVictim = settings.anyPoolVictim
    this.#runtime = runtime
    this.#writes = new GroupWrites(hub.client)
  }

  async start(signal: AbortSignal): Promise<void> {
    await this.#hub.start(signal)
    this.#hub.changes.add(() => {
      this.#observe(signal)
    })
  }

  async refresh(signal: AbortSignal): Promise<readonly GroupFault[]> {
    await this.#refreshHub(signal)
    const missing = this.#hub.missingRule('Machine')
    if (missing !== undefined)
      throw new NodeGroupError(
        `the management cluster ${this.#hub.server} does not allow to ${missing}: grant it`,
      )
    const groups = new Map<string, KnownGroup>()
    const invalid = new Map<string, string>()
    const empty: { readonly id: string; readonly group: KnownGroup; readonly object: Scalable }[] = []
    for (const kind of groupKinds)
      for (const object of this.#hub.resources(kind)) {
        if (!this.#isInScope(object) || ownerName(object, 'MachineDeployment') !== undefined) continue
        const ref = refOf(kind, object)
        const id = groupIdOf(ref)
        const bounds = boundsOf(object, this.#hub.names)
        if (bounds.kind === 'invalid') invalid.set(id, bounds.reason)
        if (bounds.kind !== 'bounds') continue
        const group = { ref, min: bounds.min, max: bounds.max }
        if (this.#workerOf(ref).sizeOf(object) > 0 || this.#hub.machinesOf(ref).length > 0)
          groups.set(id, group)
        else empty.push({ id, group, object })
        for (const warning of ownerWarnings(object, this.#hub.names)) this.#warn(id, warning)
      }
    await Promise.all(
      empty.map(async ({ id, group, object }) => {
        const capacity = await this.#capacityOf(object)
        if (capacity.kind === 'known') groups.set(id, group)
        else this.#warn(id, `it has no replicas and is no node group yet: ${capacity.reason}`)
      }),
    )
    signal.throwIfAborted()
    this.#groups = groups
    this.#invalid = invalid
    for (const id of this.#workers.keys()) if (!groups.has(id) && !invalid.has(id)) this.#forget(id)
    for (const [id, reason] of invalid) this.#warn(id, reason)
    if (this.#hub.gap === undefined) this.#tidy(signal)
    return this.#faults()
  }

  list(): readonly NodeGroup[] {
    return [...this.#groups.keys()].flatMap((id) => this.group(id) ?? [])
  }

  group(id: string): NodeGroup | undefined {
    const known = this.#groups.get(id)
    const object = known && this.#hub.resource(known.ref)
    if (known === undefined || object === undefined || !this.#isOurs(object)) return undefined
    const { ref, min, max } = known
    return { id, name: id, minSize: min, maxSize: max, targetSize: this.#workerOf(ref).sizeOf(object) }
  }

  groupOf(node: Node, _signal: AbortSignal): Promise<GroupOfNode> {
    return Promise.resolve(this.#groupOf(node))
  }

  #groupOf(node: Node): GroupOfNode {
    this.#nodes.set(node.metadata.name, node.spec?.providerID ?? '')
    const own = clusterOfNode(node, this.#hub.names)
    if (own !== undefined) this.#learn(own)
    const found = resourceOfNode(this.#hub, node, (object) => this.#isOurs(object))
    if (found.kind === 'none') return found
    if (found.kind === 'ambiguous') return { kind: 'unresolved', reason: found.reason }
    const id = groupIdOf(found.ref)
    if (this.group(id) !== undefined) {
      const providerId = memberIdOf(node, found.machine)
      return { kind: 'group', groupId: id, ...(providerId !== undefined && { providerId }) }
    }
    const reason = this.#invalid.get(id)
    return { kind: 'none', ...(reason !== undefined && { reason: `${id}: ${reason}` }) }
  }

  async exampleNode(groupId: string): Promise<NodeExample | undefined> {
    const { object } = this.#known(groupId)
    const facts = await this.#templates.factsOf(object)
    const capacity = groupCapacityOf(object, facts)
    if (capacity.kind === 'unknown') {
      this.#warn(groupId, `its nodes are unknown: ${capacity.reason}`)
      return undefined
    }
    const warnings: string[] = []
    const example = exampleOf(object, facts, capacity.capacity, this.#architecture, warnings)
    for (const warning of warnings) this.#warn(groupId, warning)
    return example
  }

  optionsOf(groupId: string): NodeGroupOptions {
    const { object } = this.#known(groupId)
    const { options, warnings } = groupOptionsOf(object, this.#hub.names)
    for (const warning of warnings) this.#warn(groupId, warning)
    return options
  }

  holdOf(groupId: string): GroupHold | undefined {
    const { ref, object } = this.#known(groupId)
    const paused = pauseOf(object, fixedNames, this.#hub.cluster(object))
    const forbidden = paused ?? this.#workerOf(ref).contested
    if (forbidden !== undefined) return { forbids: 'all', reason: forbidden }
    const reason = this.#hub.gap ?? this.#strangers(object) ?? this.#rollout(ref)
    return reason === undefined ? undefined : { forbids: 'shrinking', reason }
  }

  async hasInstance(node: Node, signal: AbortSignal): Promise<boolean | undefined> {
    const key = machineKeyOf(node, this.#hub.names)
    if (key === undefined || !this.#hub.watches(key.namespace) || this.#hub.gap !== undefined)
      return undefined
    if (this.#hub.machine(key) !== undefined) return true
    // A watch that is late lacks new Machines: only an answer of the hub proves that one is gone.
    try {
      return (await this.#hub.client.get(this.#hub.kinds.machine, key, { signal })) !== undefined
    } catch (error) {
      if (!isKubeError(error)) throw error
      return undefined
    }
  }

  instances(groupId: string, _signal: AbortSignal): Promise<readonly GroupInstance[]> {
    const { ref, object } = this.#known(groupId)
    const machines = this.#hub.machinesOf(ref)
    const instances = machines.flatMap(
      (machine) => instanceOf(machine, (nodeName) => this.#nodes.get(nodeName)) ?? [],
    )
    if (ref.kind !== 'MachinePool') return Promise.resolve(instances)
    const ids = new Set(machines.flatMap(({ spec }) => spec?.providerID ?? []))
    const others = (object.spec?.providerIDList ?? []).filter((id) => !ids.has(id))
    return Promise.resolve([
      ...instances,
      ...others.map((providerId) => ({ providerId, state: 'running' }) as const),
    ])
  }

  async increaseSize(groupId: string, delta: number, signal: AbortSignal): Promise<Increase> {
    return await this.#workerOf(this.#known(groupId).ref).increase(delta, signal)
  }

  async deleteInstances(
    groupId: string,
    providerIds: readonly string[],
    signal: AbortSignal,
    { belowMinimum }: { readonly belowMinimum: boolean } = { belowMinimum: false },
  ): Promise<void> {
    const { ref, object } = this.#known(groupId)
    this.#refuseStrangers(groupId, object)
    await this.#workerOf(ref).remove(providerIds, belowMinimum, signal)
  }

  async decreaseTargetSize(
    groupId: string,
    delta: number,
    signal: AbortSignal,
  ): Promise<'done' | 'unsupported'> {
    const { ref, object } = this.#known(groupId)
    this.#refuseStrangers(groupId, object)
    return (await this.#workerOf(ref).decrease(delta, signal)) ? 'done' : 'unsupported'
  }

  async #refreshHub(signal: AbortSignal): Promise<void> {
    try {
      await this.#hub.refresh(signal)
    } catch (error) {
      if (!isKubeError(error)) throw error
      this.#runtime.logger.warn('the management cluster did not tell which versions it serves', {
        error: messageOf(error),
      })
    }
  }

  #faults(): readonly GroupFault[] {
    const { gap } = this.#hub
    const faults = [...this.#invalid].map(([groupId, reason]) => ({ groupId, reason }))
    for (const { id } of this.list()) {
      const { ref, object } = this.#known(id)
      const unset = object.spec?.replicas === undefined ? 'it has no spec.replicas: set it' : undefined
      const reason = gap ?? this.#workerOf(ref).contested ?? unset
      if (reason !== undefined) faults.push({ groupId: id, reason })
    }
    return faults
  }

  /** A template is only read where the annotations do not tell all. */
  async #capacityOf(object: Scalable): Promise<GroupCapacity> {
    const facts = isAnnotated(object) ? undefined : await this.#templates.factsOf(object)
    return groupCapacityOf(object, facts)
  }

  #isInScope(object: Owned): boolean {
    return this.#specs.length === 0 || this.#specs.some((spec) => matchesSpec(object, spec, this.#hub.names))
  }

  /** Whether flags name the Cluster of an object, so that Nodes need not. */
  #isNamed(object: Owned): boolean {
    return this.#specs.some(
      ({ namespace, clusterName }) =>
        namespace !== undefined &&
        clusterName !== undefined &&
        matchesSpec(object, { namespace, clusterName, labels: {} }, this.#hub.names),
    )
  }

  /** Whether an object may belong to the workload's Cluster: none of another one is ever changed. */
  #isOurs(object: Owned): boolean {
    const { names } = this.#hub
    if (this.#own.size === 0 || clusterNameOf(object, names) === '' || this.#isNamed(object)) return true
    return this.#own.has(clusterKeyOf(object, names))
  }

  #learn(cluster: string): void {
    if (this.#own.has(cluster)) return
    this.#own.add(cluster)
    const others = new Set(
      [...this.#groups.values()].flatMap(({ ref }) => {
        const object = this.#hub.resource(ref)
        return object === undefined || this.#isOurs(object) ? [] : clusterKeyOf(object, this.#hub.names)
      }),
    )
    if (others.size > 0)
      this.#runtime.logger.warn(
        'node groups of other Clusters are left alone; name the Cluster in --node-group-auto-discovery',
        {
          cluster,
          others: [...others].join(', '),
        },
      )
  }

  /** Why a group may be of another Cluster: a clause; undefined if it is surely of the workload's. */
  #strangers(object: Owned): string | undefined {
    if (this.#own.size > 0 || this.#isNamed(object)) return undefined
    const clusters = new Set(
      [...this.#groups.values()].flatMap(({ ref }) => {
        const each = this.#hub.resource(ref)
        return each === undefined ? [] : clusterKeyOf(each, this.#hub.names)
      }),
    )
    if (clusters.size < 2) return undefined
    return `no Node tells which Cluster this is, and ${[...clusters].join(' and ')} have node groups: name it with --node-group-auto-discovery=clusterapi:namespace=NAMESPACE,clusterName=NAME`
  }

  #refuseStrangers(groupId: string, object: Owned): void {
    const reason = this.#strangers(object)
    if (reason !== undefined) throw new NodeGroupError(`group ${groupId}: ${reason}`)
  }

  #rollout(ref: GroupRef): string | undefined {
    if (ref.kind !== 'MachineDeployment') return undefined
    const missing = this.#hub.missingRule('MachineSet')
    if (missing !== undefined) return `whether it is rolling is unknown: grant ${missing}`
    return rolloutOf(this.#hub.setsOf(ref))
  }

  #known(groupId: string): { readonly ref: GroupRef; readonly object: Scalable } {
    const known = this.#groups.get(groupId)
    const object = known && this.#hub.resource(known.ref)
    if (known === undefined || object === undefined || !this.#isOurs(object))
      throw new NodeGroupError(`node group ${groupId} is not known`)
    return { ref: known.ref, object }
  }

  #workerOf(ref: GroupRef): GroupWorker {
    const id = groupIdOf(ref)
    const known = this.#workers.get(id)
    if (known !== undefined) return known
    const parts = { hub: this.#hub, writes: this.#writes, anyPoolVictim: this.#anyPoolVictim }
    const worker = new GroupWorker(ref, parts, this.#runtime)
    this.#workers.set(id, worker)
    return worker
  }

  #forget(id: string): void {
    this.#workers.get(id)?.observe()
    this.#workers.delete(id)
  }

  #observe(signal: AbortSignal): void {
    if (this.#isObserving) return
    this.#isObserving = true
    this.#runtime.clock.after(gatherMs, () => {
      this.#isObserving = false
      if (!signal.aborted) for (const worker of this.#workers.values()) worker.observe()
    })
  }

  #tidy(signal: AbortSignal): void {
    for (const { id } of this.list()) {
      const { ref } = this.#known(id)
      if (this.holdOf(id) !== undefined) continue
      this.#workerOf(ref)
        .tidy(signal)
        .catch((error: unknown) => {
          if (!signal.aborted)
            this.#runtime.logger.debug('old marks could not be taken off', {
              nodeGroup: id,
              error: messageOf(error),
            })
        })
    }
  }

  /** Logs a problem of a group once. */
  #warn(id: string, problem: string): void {
    const text = `${id}: ${problem}`
    if (this.#warned.has(text)) return
    if (this.#warned.size >= mostWarnings) this.#warned.clear()
    this.#warned.add(text)
    this.#runtime.logger.warn('a node group has a problem', { nodeGroup: id, problem })
  }
}

/** The ID of a Node's Machine, if the Node has none. Annotations of a Node prove nothing: its Machine must name it. */
function memberIdOf(node: Node, machine: Machine | undefined): string | undefined {
  const isNamed = machine?.status?.nodeRef?.name === node.metadata.name
  return machine !== undefined && isNamed && (node.spec?.providerID ?? '') === ''
    ? removableId(machine)
    : undefined
}
