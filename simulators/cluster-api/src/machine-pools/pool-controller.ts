/** Manages the instances of MachinePools, with a Machine for each or without. */
import { isDeepStrictEqual } from 'node:util'
import { apiVersionOf, isConditionTrue, ownValue, type ResourceType } from '@tenon/api'
import { defaultReplicas, hold, type HubParts, isPaused, latest, nameSuffix, release } from '../hub-parts.ts'
import {
  controllerUid,
  finalizers,
  type FullMachine,
  isLeaving,
  type MachinePool,
  type MachineShape,
  ownedBy,
} from '../kinds.ts'
import { newCondition, writeStatus } from '../statuses.ts'

/** Label of a Machine: name of its MachinePool. */
export const poolName = 'cluster.x-k8s.io/pool-name'

/** One pass over a MachinePool. */
export function reconcilePool(parts: HubParts, namespace: string, name: string): undefined {
  const { api, kinds } = parts
  const found = api.get(kinds.pool, namespace, name)
  if (found === undefined || isPaused(parts, found)) return
  if (isLeaving(found)) {
    end(parts, found)
    return
  }
  hold(api, kinds.pool, found, finalizers.pool)
  const pool = withDefaults(parts, found)
  const shape = shapeOf(parts, pool)
  const instances = instancesOf(parts, pool)
  const surplus = instances.length - (pool.spec?.replicas ?? 1)
  for (let missing = -surplus; missing > 0; missing--) {
    const type = shape.poolHasMachines === true ? kinds.machine : kinds.poolInstance
    api.create(type, newInstance(parts, type, pool))
  }
  for (const instance of victims(parts, shape, instances).slice(0, Math.max(0, surplus)))
    remove(parts, instance)
  const there = latest(api, kinds.pool, pool)
  if (there !== undefined) report(parts, there, instancesOf(parts, there))
}

interface PoolInstance {
  readonly type: ResourceType<FullMachine>
  readonly machine: FullMachine
}

/** The defaults of Cluster API's webhook. */
function withDefaults({ api, kinds, names }: HubParts, pool: MachinePool): MachinePool {
  const { annotations, labels, name, namespace } = pool.metadata
  const { clusterName = '', replicas } = pool.spec ?? {}
  if (replicas !== undefined && ownValue(labels, names.clusterName) !== undefined) return pool
  return api.patch(kinds.pool, namespace, name, {
    metadata: { labels: { [names.clusterName]: clusterName } },
    spec: { replicas: replicas ?? defaultReplicas(names, annotations, pool.status?.replicas) },
  })
}

function shapeOf({ api, kinds }: HubParts, { metadata, spec }: MachinePool): MachineShape {
  const name = spec?.template?.spec?.infrastructureRef?.name ?? ''
  return api.get(kinds.template, metadata.namespace, name)?.spec?.template?.spec ?? {}
}

function instancesOf({ api, kinds }: HubParts, { metadata }: MachinePool): readonly PoolInstance[] {
  const { namespace = '', uid } = metadata
  return [kinds.machine, kinds.poolInstance].flatMap((type) =>
    api
      .list(type, { namespace })
      .flatMap((machine) => (controllerUid(machine) === uid ? [{ type, machine }] : [])),
  )
}

/** In the order in which the infrastructure removes them: those that leave, marked ones, the oldest. */
function victims(
  { names }: HubParts,
  { poolIgnoresMarks = false }: MachineShape,
  instances: readonly PoolInstance[],
): readonly PoolInstance[] {
  const rankOf = ({ machine }: PoolInstance): number => {
    if (isLeaving(machine)) return 0
    const isMarked = ownValue(machine.metadata.annotations, names.deleteMachine) !== undefined
    return isMarked && !poolIgnoresMarks ? 1 : 2
  }
  const bornMs = ({ machine }: PoolInstance): number => Date.parse(machine.metadata.creationTimestamp ?? '')
  return instances.toSorted(
    (a, b) =>
      rankOf(a) - rankOf(b) ||
      bornMs(a) - bornMs(b) ||
      (a.machine.metadata.name < b.machine.metadata.name ? -1 : 1),
  )
}

function remove({ api }: HubParts, { type, machine }: PoolInstance): void {
  if (!isLeaving(machine)) api.delete(type, machine.metadata.namespace, machine.metadata.name)
}

function newInstance(parts: HubParts, type: ResourceType<FullMachine>, pool: MachinePool): FullMachine {
  const { kinds, names, runtime } = parts
  const { name, namespace = '' } = pool.metadata
  const { clusterName = '', template } = pool.spec ?? {}
  return {
    apiVersion: apiVersionOf(type),
    kind: type.kind,
    metadata: {
      name: `${name}-${nameSuffix(runtime.random)}`,
      namespace,
      labels: { ...template?.metadata?.labels, [names.clusterName]: clusterName, [poolName]: name },
      annotations: {
        ...template?.metadata?.annotations,
        // Cluster API drains Machines; without them, the infrastructure just ends an instance.
        ...(type === kinds.poolInstance && { 'machine.cluster.x-k8s.io/exclude-node-draining': '' }),
      },
      finalizers: [finalizers.machine],
      ownerReferences: [ownedBy(kinds.pool, pool)],
    },
    spec: { ...template?.spec, clusterName },
  }
}

function end(parts: HubParts, pool: MachinePool): void {
  const instances = instancesOf(parts, pool)
  for (const instance of instances) remove(parts, instance)
  if (instances.length === 0) release(parts.api, parts.kinds.pool, pool, finalizers.pool)
}

function report(parts: HubParts, pool: MachinePool, instances: readonly PoolInstance[]): void {
  const { api, kinds } = parts
  const wanted = pool.spec?.replicas ?? 1
  const made = instances.flatMap(({ machine }) => (machine.spec?.providerID === undefined ? [] : [machine]))
  const ids = made.map(({ spec }) => spec?.providerID)
  if (!isDeepStrictEqual(ids, pool.spec?.providerIDList ?? []))
    api.patch(kinds.pool, pool.metadata.namespace, pool.metadata.name, { spec: { providerIDList: ids } })
  const current = latest(api, kinds.pool, pool)
  if (current === undefined) return
  const ready = made.filter((machine) => isConditionTrue(machine, 'Ready')).length
  const status = {
    observedGeneration: current.metadata.generation ?? 0,
    replicas: made.length,
    readyReplicas: ready,
    nodeRefs: made.flatMap(({ status: { nodeRef } = {} }) => (nodeRef === undefined ? [] : [nodeRef])),
    phase: phaseOf(wanted, made.length),
  }
  writeStatus(parts, kinds.pool, current, status, [
    newCondition('Available', ready >= wanted, ['Available', 'NotAvailable']),
    newCondition('Paused', false, ['Paused', 'NotPaused']),
  ])
}

function phaseOf(wanted: number, there: number): string {
  if (there === wanted) return 'Running'
  return there < wanted ? 'ScalingUp' : 'ScalingDown'
}
