import {
  type Container,
  kinds,
  type KubeObject,
  type Node,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type Pod,
  type PodDisruptionBudget,
  type PodSpec,
  type ResourceList,
  type ResourceType,
  type StorageClass,
  type Taint,
  ownValue,
  setOwn,
} from '@tenon/api'
import { SeededRandom, silentLogger, VirtualClock } from '@tenon/runtime'
import type { LocalApi } from '../contract.ts'
import { createTestApiServer } from '../apiserver/api-server.test-support.ts'
import { type SchedulerSettings, startScheduler } from './scheduler.ts'

interface NodeOptions {
  readonly labels?: Readonly<Record<string, string>>
  readonly taints?: readonly Taint[]
  readonly unschedulable?: boolean
  readonly allocatable?: ResourceList
}

interface PodOptions extends Partial<PodSpec> {
  readonly labels?: Readonly<Record<string, string>>
  readonly namespace?: string
  readonly requests?: ResourceList
  readonly startTime?: string
  readonly nominated?: string
}

interface PriorityClass extends KubeObject {
  readonly value: number
}

const priorityClass: ResourceType<PriorityClass> = {
  group: 'scheduling.k8s.io',
  version: 'v1',
  kind: 'PriorityClass',
  plural: 'priorityclasses',
  namespaced: false,
}

/** A cluster of a scheduler alone, on virtual time. */
export class SchedulingFixture {
  readonly clock = new VirtualClock()
  readonly api: LocalApi = createTestApiServer({ clock: this.clock }).local
  readonly #seed: number
  #started = false

  constructor(seed: number) {
    this.#seed = seed
  }

  start(settings: Partial<SchedulerSettings> = {}): this {
    const { api, clock } = this
    const random = new SeededRandom(this.#seed)
    startScheduler({ api, clock, random, logger: silentLogger, settings })
    this.#started = true
    return this
  }

  async settle(ms = 100): Promise<void> {
    if (!this.#started) this.start()
    await this.clock.advance(ms)
  }

  node(name: string, { labels, taints, unschedulable, allocatable }: NodeOptions = {}): this {
    const node: Node = {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name, labels: { 'kubernetes.io/hostname': name, ...labels } },
      spec: { ...(taints && { taints }), ...(unschedulable && { unschedulable }) },
      status: { allocatable: { cpu: '4', memory: '8Gi', pods: '110', ...allocatable } },
    }
    this.api.create(kinds.node, node)
    // The API server marks new nodes as not ready; here nobody else would take that back.
    this.api.patch(kinds.node, undefined, name, { spec: { taints: taints ?? null } })
    return this
  }

  pod(name: string, options: PodOptions = {}): this {
    const { labels, namespace = 'default', requests, startTime, nominated, priority, ...spec } = options
    const pod: Pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace, ...(labels && { labels }) },
      spec: {
        containers: [{ name: 'main', image: 'app', ...(requests && { resources: { requests } }) }],
        schedulerName: 'default-scheduler',
        ...(priority !== undefined && { priorityClassName: this.#priorityClass(priority) }),
        ...spec,
      },
    }
    this.api.create(kinds.pod, complete(pod))
    const status = { ...(startTime && { startTime }), ...(nominated && { nominatedNodeName: nominated }) }
    if (Object.keys(status).length > 0) this.api.patch(kinds.pod, namespace, name, { status }, 'status')
    return this
  }

  /** Priorities come from classes: the API server sets what a pod claims for itself. */
  #priorityClass(value: number): string {
    const name = `priority-${value}`
    if (this.api.get(priorityClass, undefined, name) === undefined) {
      this.create<PriorityClass>(priorityClass, { metadata: { name }, value })
    }
    return name
  }

  create<T extends KubeObject>(type: ResourceType<T>, object: Omit<T, 'apiVersion' | 'kind'>): this {
    const apiVersion = type.group === '' ? type.version : `${type.group}/${type.version}`
    this.api.create(type, { apiVersion, kind: type.kind, ...object } as T)
    return this
  }

  /** A claim; one that names its volume is bound to it. */
  claim(name: string, spec: PersistentVolumeClaim['spec']): this {
    const annotations = { 'pv.kubernetes.io/bind-completed': 'yes' }
    return this.create(kinds.persistentVolumeClaim, {
      metadata: { name, namespace: 'default', ...(spec.volumeName && { annotations }) },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, ...spec },
    })
  }

  volume(name: string, zone: string | undefined, labels: Readonly<Record<string, string>> = {}): this {
    const term = { matchExpressions: [{ key: zoneKey, operator: 'In' as const, values: [zone ?? ''] }] }
    const spec = {
      capacity: { storage: '1Gi' },
      accessModes: ['ReadWriteOnce'],
      csi: { driver: 'csi.test', volumeHandle: name },
      ...(zone === undefined ? {} : { nodeAffinity: { required: { nodeSelectorTerms: [term] } } }),
    }
    return this.create<PersistentVolume>(kinds.persistentVolume, { metadata: { name, labels }, spec })
  }

  storageClass(name: string, fields: Partial<StorageClass>): this {
    const base = { metadata: { name }, provisioner: 'csi.test' }
    return this.create<StorageClass>(kinds.storageClass, { ...base, ...fields })
  }

  budget(name: string, labels: Readonly<Record<string, string>>, disruptionsAllowed: number): this {
    this.create<PodDisruptionBudget>(kinds.podDisruptionBudget, {
      metadata: { name, namespace: 'default' },
      spec: { selector: { matchLabels: labels }, minAvailable: 1 },
    })
    const status = { disruptionsAllowed, currentHealthy: 1, desiredHealthy: 1, expectedPods: 1 }
    this.api.patch(kinds.podDisruptionBudget, 'default', name, { status }, 'status')
    return this
  }

  get(name: string, namespace = 'default'): Pod | undefined {
    return this.api.get(kinds.pod, namespace, name)
  }

  /** The node a pod is bound to. */
  nodeOf(name: string, namespace = 'default'): string | undefined {
    return this.get(name, namespace)?.spec.nodeName
  }

  /** Why a pod waits, as on its PodScheduled condition. */
  reason(name: string): string | undefined {
    const conditions = this.get(name)?.status?.conditions ?? []
    return conditions.find((one) => one.type === 'PodScheduled' && one.status === 'False')?.message
  }

  /** How many pods of this name prefix each node has. */
  spread(prefix: string): Record<string, number> {
    const counts: Record<string, number> = {}
    for (const pod of this.api.list(kinds.pod)) {
      const { nodeName } = pod.spec
      if (nodeName === undefined || !pod.metadata.name.startsWith(prefix)) continue
      setOwn(counts, nodeName, (ownValue(counts, nodeName) ?? 0) + 1)
    }
    return counts
  }
}

export const zoneKey = 'topology.kubernetes.io/zone'
export const hostKey = 'kubernetes.io/hostname'

/** Fills in what every container must have, so that tests name only what matters. */
export function complete(pod: Pod): Pod {
  const filled = (container: Container): Container => {
    const requests = container.resources?.requests ?? {}
    const limits = Object.fromEntries(Object.entries(requests).filter(([name]) => name.includes('/')))
    return { image: 'app', ...container, resources: { ...container.resources, limits } }
  }
  const { containers, initContainers } = pod.spec
  return {
    ...pod,
    spec: {
      ...pod.spec,
      containers: containers.map(filled),
      ...(initContainers && { initContainers: initContainers.map(filled) }),
    },
  }
}

/** Labels of a node in a zone. */
export function inZone(zone: string): { readonly labels: Readonly<Record<string, string>> } {
  return { labels: { [zoneKey]: zone } }
}

/** @param seed of what the scheduler draws. */
export function aCluster(seed = 1): SchedulingFixture {
  return new SchedulingFixture(seed)
}
