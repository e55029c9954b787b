/** Builders for tests of scale-down. */
import type { Node, Pod, PodDisruptionBudget, PodSpec, ResourceList, Taint } from '@tenon/api'
import { PodReader, Snapshot, VolumeIndex } from '@tenon/filters'
import type { NodeGroup } from '@tenon/provider'
import { annotations, toBeDeletedTaint } from '../names.ts'
import { type LoopView, type NodeGroupIndex, noGroups, type PodController } from '../model.ts'
import { defaultOptions, type ScaleDownOptions } from '../options/options.ts'
import type { DeviceUse } from './nodes/device-use.ts'
import { type Plan, Planner, type PlannerInput } from './planning/planner.ts'
import type { UnremovableReason } from './reasons.ts'

export const startMs = Date.parse('2026-01-01T00:00:00Z')
export const second = 1000
export const minute = 60 * second

export function atMs(ms: number): string {
  return new Date(ms).toISOString()
}

export interface NodeTraits {
  readonly cpu?: string
  readonly memory?: string
  readonly extra?: ResourceList
  readonly isReady?: boolean
  readonly annotations?: Readonly<Record<string, string>>
  readonly labels?: Readonly<Record<string, string>>
  readonly taints?: readonly Taint[]
  readonly isCordoned?: boolean
  readonly uid?: string
}

export function aNode(name: string, traits: NodeTraits = {}): Node {
  const resources = { cpu: traits.cpu ?? '1', memory: traits.memory ?? '4Gi', pods: '110', ...traits.extra }
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name,
      uid: traits.uid ?? `uid-${name}`,
      labels: { 'kubernetes.io/hostname': name, ...traits.labels },
      annotations: traits.annotations ?? {},
    },
    spec: {
      providerID: `exoscale://${name}`,
      taints: traits.taints ?? [],
      ...(traits.isCordoned === true ? { unschedulable: true } : {}),
    },
    status: {
      capacity: resources,
      allocatable: resources,
      conditions: [{ type: 'Ready', status: traits.isReady === false ? 'False' : 'True' }],
    },
  }
}

/** A large node that stays and takes pods. */
export function aRoom(name = 'room'): Node {
  const kept = { [annotations.scaleDownDisabled]: 'true' }
  return aNode(name, { cpu: '100', memory: '400Gi', annotations: kept })
}

export interface PodTraits {
  readonly node?: string
  readonly namespace?: string
  readonly cpu?: string
  readonly memory?: string
  readonly extra?: ResourceList
  /** Kind of its controller, `Kind.group/version` where it is not a built-in one. `none` = it has none. */
  readonly owner?: string
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  readonly ageMs?: number
  readonly deletionTimestamp?: string
  readonly phase?: NonNullable<Pod['status']>['phase']
  readonly spec?: Partial<PodSpec>
}

const ownerVersions = new Map([
  ['ReplicationController', 'v1'],
  ['ReplicaSet', 'apps/v1'],
  ['StatefulSet', 'apps/v1'],
  ['DaemonSet', 'apps/v1'],
  ['Job', 'batch/v1'],
])

export function aPod(name: string, traits: PodTraits = {}): Pod {
  const requests = {
    ...(traits.cpu === undefined ? {} : { cpu: traits.cpu }),
    ...(traits.memory === undefined ? {} : { memory: traits.memory }),
    ...traits.extra,
  }
  const kind = traits.owner ?? 'ReplicaSet'
  const owner = {
    apiVersion: ownerVersions.get(kind) ?? 'example.com/v1',
    kind: kind.split('.')[0] ?? kind,
    name: `${name}-owner`,
    uid: `${name}-owner`,
    controller: true,
  }
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace: traits.namespace ?? 'default',
      uid: `uid-${name}`,
      labels: traits.labels ?? {},
      annotations: traits.annotations ?? {},
      creationTimestamp: atMs(startMs - (traits.ageMs ?? 60 * minute)),
      ...(traits.deletionTimestamp === undefined ? {} : { deletionTimestamp: traits.deletionTimestamp }),
      ...(kind === 'none' ? {} : { ownerReferences: [owner] }),
    },
    spec: {
      containers: [{ name: 'main', image: 'x', resources: { requests } }],
      ...(traits.node === undefined ? {} : { nodeName: traits.node }),
      ...traits.spec,
    },
    status: { phase: traits.phase ?? 'Running' },
  }
}

export function aBudget(
  name: string,
  labels: Readonly<Record<string, string>>,
  disruptionsAllowed: number,
  namespace = 'default',
): PodDisruptionBudget {
  return {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name, namespace },
    spec: { selector: { matchLabels: labels } },
    status: { disruptionsAllowed },
  }
}

export function aGroup(id: string, targetSize: number, minSize = 1): NodeGroup {
  return { id, name: id, minSize, maxSize: 1000, targetSize }
}

export function anyTaint(value: string): Taint {
  return { key: toBeDeletedTaint, value, effect: 'NoSchedule' }
}

export interface ClusterFacts {
  readonly nodes: readonly Node[]
  readonly pods?: readonly Pod[]
  readonly budgets?: readonly PodDisruptionBudget[]
  /** Absent = one group `g` with all nodes and a minimum of 0. */
  readonly groups?: readonly NodeGroup[]
  /** By node name; absent = `g`, empty = none. */
  readonly groupOf?: ReadonlyMap<string, string>
  readonly unresolved?: ReadonlyMap<string, string>
  readonly faults?: ReadonlyMap<string, string>
  /** What else the cloud tells. */
  readonly index?: Partial<NodeGroupIndex>
  readonly controllerOf?: (kind: string, namespace: string, name: string) => PodController | undefined
  readonly atMs?: number
  readonly reader?: PodReader
  readonly deviceUse?: ReadonlyMap<string, DeviceUse>
}

export function aView(facts: ClusterFacts): LoopView {
  const { nodes, pods = [] } = facts
  const volumes = new VolumeIndex()
  const namespaces = new Map(
    [...new Set(pods.map((pod) => pod.metadata.namespace ?? ''))].map((name) => [name, {}]),
  )
  const snapshot = new Snapshot({ reader: facts.reader ?? new PodReader(), volumes, namespaces })
  for (const node of nodes) snapshot.setNode(node)
  for (const pod of pods) if (pod.spec.nodeName !== undefined) snapshot.assign(pod, pod.spec.nodeName)
  const groups = facts.groups ?? [aGroup('g', nodes.length, 0)]
  const groupOf = nodes.flatMap(({ metadata: { name } }): [string, string][] => {
    const id = facts.groupOf === undefined ? 'g' : (facts.groupOf.get(name) ?? '')
    return id === '' ? [] : [[name, id]]
  })
  return {
    nowMs: facts.atMs ?? startMs,
    nodes,
    index: {
      ...noGroups,
      groups: new Map(groups.map((group) => [group.id, group])),
      groupOf: new Map(groupOf),
      unresolved: facts.unresolved ?? new Map(),
      faults: facts.faults ?? new Map(),
      ...facts.index,
    },
    templates: new Map(),
    instances: new Map(),
    snapshot,
    quotas: [],
    lookups: {
      controllerOf: facts.controllerOf ?? (() => ({ replicas: 1 })),
      disruptionBudgets: facts.budgets ?? [],
      daemonSets: [],
      deviceUse: facts.deviceUse ?? new Map(),
    },
  }
}

export function someOptions(options: Partial<ScaleDownOptions> = {}): ScaleDownOptions {
  return { ...defaultOptions.scaleDown, ...options }
}

/** Runs one loop of a planner to its end. */
export function planOf(planner: Planner, facts: ClusterFacts, input: Partial<PlannerInput> = {}): Plan {
  const steps = planner.update({
    view: aView(facts),
    nodes: facts.nodes,
    goingNodes: new Set(),
    delayedUntilMs: new Map(),
    shouldStop: () => false,
    ...input,
  })
  for (;;) {
    const step = steps.next()
    if (step.done === true) return step.value
  }
}

/** The plan of a new planner. */
export function onePlan(facts: ClusterFacts, options: Partial<ScaleDownOptions> = {}): Plan {
  return planOf(new Planner(someOptions(options)), facts)
}

export function unneededNames(plan: Plan): readonly string[] {
  return plan.unneeded.map(({ node }) => node.metadata.name)
}

export function reasonOf(plan: Plan, nodeName: string): UnremovableReason['kind'] | undefined {
  return plan.unremovable.find((each) => each.nodeName === nodeName)?.reason.kind
}
