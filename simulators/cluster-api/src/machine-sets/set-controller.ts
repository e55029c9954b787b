/** Manages the Machines of MachineSets (cluster-api.md 18). */
import { apiVersionOf, conditionOf, isConditionTrue, ownValue } from '@tenon/api'
import { ownerRemediated } from '../health-checks/health-check-controller.ts'
import { defaultReplicas, hold, type HubParts, isPaused, latest, nameSuffix, release } from '../hub-parts.ts'
import { controllerUid, finalizers, type FullMachine, type FullSet, isLeaving, ownedBy } from '../kinds.ts'
import { newCondition, writeStatus } from '../statuses.ts'
import { deletionOrder } from './deletion-order.ts'

/** Maximum Machines that one pass creates. */
const mostAtOnce = 250

/** One pass over a MachineSet. */
export function reconcileSet(parts: HubParts, namespace: string, name: string): undefined {
  const { api, kinds } = parts
  const found = api.get(kinds.set, namespace, name)
  if (found === undefined || isPaused(parts, found)) return undefined
  if (isLeaving(found)) {
    end(parts, found)
    return undefined
  }
  hold(api, kinds.set, found, finalizers.set)
  const set = controllerUid(found) === undefined ? withDefaults(parts, found) : found
  const machines = machinesOf(parts, set)
  for (const machine of machines) {
    syncMachine(parts, set, machine)
    if (!isLeaving(machine) && conditionOf(machine, ownerRemediated)?.status === 'False')
      api.delete(kinds.machine, machine.metadata.namespace, machine.metadata.name)
  }
  // Machines being deleted count until they are gone, so that there are never too many.
  const surplus = machines.length - (set.spec?.replicas ?? 1)
  for (let missing = Math.min(-surplus, mostAtOnce); missing > 0; missing--)
    api.create(kinds.machine, newMachine(parts, set))
  if (surplus > 0) shrink(parts, set, machines, surplus)
  const there = latest(api, kinds.set, set)
  if (there !== undefined) report(parts, there, machinesOf(parts, set))
  return undefined
}

/** The defaults of Cluster API's webhook for a MachineSet without a MachineDeployment. */
function withDefaults({ api, kinds, names }: HubParts, set: FullSet): FullSet {
  const { annotations, labels, name, namespace } = set.metadata
  const { clusterName = '', replicas, selector, template } = set.spec ?? {}
  const isComplete =
    replicas !== undefined &&
    selector?.matchLabels !== undefined &&
    ownValue(labels, names.clusterName) !== undefined &&
    ownValue(template?.metadata?.labels, names.setName) !== undefined
  if (isComplete) return set
  const own = { [names.clusterName]: clusterName, [names.setName]: name }
  return api.patch(kinds.set, namespace, name, {
    metadata: { labels: { [names.clusterName]: clusterName } },
    spec: {
      replicas: replicas ?? defaultReplicas(names, annotations, set.status?.replicas),
      selector: { matchLabels: { ...selector?.matchLabels, ...own } },
      template: { metadata: { labels: own } },
    },
  })
}

function machinesOf({ api, kinds }: HubParts, { metadata }: FullSet): readonly FullMachine[] {
  const { namespace = '', uid } = metadata
  return api.list(kinds.machine, { namespace }).filter((machine) => controllerUid(machine) === uid)
}

function shrink(
  { api, kinds, names }: HubParts,
  { spec }: FullSet,
  machines: readonly FullMachine[],
  count: number,
): void {
  const policy = spec?.deletion?.order ?? spec?.deletePolicy ?? 'Random'
  for (const machine of deletionOrder(machines, policy, names.deleteMachine).slice(0, count))
    if (!isLeaving(machine)) api.delete(kinds.machine, machine.metadata.namespace, machine.metadata.name)
}

function newMachine(parts: HubParts, set: FullSet): FullMachine {
  const { kinds, names } = parts
  const { random } = parts.runtime
  const { name, namespace = '' } = set.metadata
  const { clusterName = '', template } = set.spec ?? {}
  return {
    apiVersion: apiVersionOf(kinds.machine),
    kind: kinds.machine.kind,
    metadata: {
      name: `${name}-${nameSuffix(random)}`,
      namespace,
      labels: { ...template?.metadata?.labels, [names.setName]: name },
      annotations: template?.metadata?.annotations ?? {},
      finalizers: [finalizers.machine],
      ownerReferences: [ownedBy(kinds.set, set)],
    },
    spec: { ...template?.spec, clusterName },
  }
}

/** Copies labels and annotations of the template in place; those of others stay. */
function syncMachine({ api, kinds }: HubParts, { spec }: FullSet, machine: FullMachine): void {
  const { labels = {}, annotations = {} } = spec?.template?.metadata ?? {}
  const { metadata } = machine
  const isSame =
    Object.entries(labels).every(([key, value]) => ownValue(metadata.labels, key) === value) &&
    Object.entries(annotations).every(([key, value]) => ownValue(metadata.annotations, key) === value)
  if (!isSame)
    api.patch(kinds.machine, metadata.namespace, metadata.name, { metadata: { labels, annotations } })
}

function end(parts: HubParts, set: FullSet): void {
  const { api, kinds } = parts
  const machines = machinesOf(parts, set)
  for (const machine of machines)
    if (!isLeaving(machine)) api.delete(kinds.machine, machine.metadata.namespace, machine.metadata.name)
  if (machines.length === 0) release(api, kinds.set, set, finalizers.set)
}

function report(parts: HubParts, set: FullSet, machines: readonly FullMachine[]): void {
  const { kinds } = parts
  const { generation = 0 } = set.metadata
  const wanted = set.spec?.replicas ?? 1
  const staying = machines.filter((machine) => !isLeaving(machine))
  const status = {
    observedGeneration: generation,
    selector: Object.entries(set.spec?.selector?.matchLabels ?? {})
      .map(([key, value]) => `${key}=${value}`)
      .join(','),
    replicas: machines.length,
    readyReplicas: machines.filter((machine) => isConditionTrue(machine, 'Ready')).length,
    availableReplicas: staying.filter((machine) => isConditionTrue(machine, 'Available')).length,
    ...(kinds.version === 'v1beta1' && { fullyLabeledReplicas: machines.length }),
  }
  writeStatus(parts, kinds.set, set, status, [
    newCondition('ScalingUp', machines.length < wanted, ['ScalingUp', 'NotScalingUp']),
    newCondition('ScalingDown', machines.length > wanted, ['ScalingDown', 'NotScalingDown']),
    newCondition(
      'MachinesReady',
      staying.every((machine) => isConditionTrue(machine, 'Ready')),
      ['Ready', 'NotReady'],
    ),
    newCondition('Paused', false, ['Paused', 'NotPaused']),
  ])
}
