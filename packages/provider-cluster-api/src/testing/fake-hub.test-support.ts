/** A hub on a Kubernetes API in a map, whose Cluster API is as quick and as simple as it gets. */
import { karpenterKinds, kinds, labels, type NodeClaim, type NodePool, noPrices, ownValue } from '@tenon/api'
import { createController, type KubeClient, type WatchingKubeClient } from '@tenon/kube'
import { MemoryKube } from '@tenon/provider/contract-suite'
import { rfc3339, silentLogger, VirtualClock } from '@tenon/runtime'
import { defaultArchitecture } from '../catalogue/node-labels.ts'
import { createClusterApiProvider } from '../create-provider.ts'
import type { Hub, HubScope, OpenHub } from '../hub/hub.ts'
import { type ClusterAPINodeClass, clusterAPINodeClassKind } from '../node-class.ts'
import { defaultGroup, namesOf } from '../names.ts'
import { kindsOf, type Machine, type MachineDeployment } from '../objects.ts'
import type { ClusterApiProvider } from '../provider.ts'
import { aDeployment } from './deployments.test-support.ts'

export const names: ReturnType<typeof namesOf> = namesOf(defaultGroup)
export const hubKinds: ReturnType<typeof kindsOf> = kindsOf(defaultGroup, 'v1beta2')
const nodeClassRef = {
  group: clusterAPINodeClassKind.group,
  kind: clusterAPINodeClassKind.kind,
  name: 'default',
}

/** A NodePool of the class `default`. */
export const pool: NodePool = {
  apiVersion: 'karpenter.sh/v1',
  kind: 'NodePool',
  metadata: { name: 'default' },
  spec: { template: { spec: { nodeClassRef, requirements: [] } } },
}

/** The class `default`, ready unless said otherwise. */
export function aNodeClass(parts: Partial<ClusterAPINodeClass> = {}): ClusterAPINodeClass {
  return {
    apiVersion: 'karpenter.cluster.x-k8s.io/v1alpha1',
    kind: 'ClusterAPINodeClass',
    metadata: { name: 'default' },
    spec: {},
    status: { conditions: [readiness('True')] },
    ...parts,
  }
}

export function readiness(status: 'True' | 'False' | 'Unknown', message = '') {
  return { type: 'Ready', status, reason: 'Told', message, lastTransitionTime: '2026-01-01T00:00:00Z' }
}

/** A claim as the core makes it, with a request. */
export function aClaim(
  name: string,
  { types = ['md-0', 'md-1'], cpu = '1', memory = '1Gi' }: ClaimParts = {},
): NodeClaim {
  return {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodeClaim',
    metadata: { name, uid: `uid-${name}`, labels: { [labels.nodePool]: 'default' } },
    spec: {
      nodeClassRef,
      requirements: [{ key: labels.instanceType, operator: 'In', values: types }],
      resources: { requests: { cpu, memory } },
    },
  }
}

/** What a claim asks for. */
export interface ClaimParts {
  readonly types?: readonly string[]
  readonly cpu?: string
  readonly memory?: string
}

/** Provider, workload cluster and hub; the hub is the same API unless a second one is asked for. */
export class Stage {
  readonly clock = new VirtualClock()
  readonly kube = new MemoryKube(this.clock)
  /** Milliseconds from a change of replicas to the Machines, and from a Machine to its provider ID. */
  readonly delays = { machineMs: 200, providerMs: 500, deletionMs: 2000 }
  /** Whether Machines of a MachineDeployment are made; by name. */
  readonly barren = new Set<string>()
  readonly provider: ClusterApiProvider
  #serial = 0
  readonly #scope: HubScope

  constructor({ scope = {} }: { readonly scope?: HubScope } = {}) {
    this.#scope = scope
    const { kube } = this
    kube.put(kinds.namespace, {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: 'kube-system', uid: 'this-cluster' },
    })
    kube.put(clusterAPINodeClassKind, aNodeClass())
    kube.cache(hubKinds.machineDeployment).onChange(({ object, kind }) => {
      if (kind !== 'deleted') this.#later(this.delays.machineMs, () => this.#reconcile(object.metadata))
    })
    kube.cache(hubKinds.machine).onChange(({ object, kind }) => {
      if (kind === 'added') this.#later(this.delays.providerMs, () => this.#provide(object.metadata))
      if (kind === 'updated' && object.metadata.deletionTimestamp !== undefined)
        this.#later(this.delays.deletionMs, () => this.#end(object.metadata))
      if (kind === 'deleted') this.#later(this.delays.machineMs, () => this.#reconcileOf(object))
    })
    this.provider = this.newProvider(kube)
  }

  newProvider(client: KubeClient): ClusterApiProvider {
    const { kube, clock } = this
    return createClusterApiProvider({
      hub: this.#hub(client),
      kubernetes: { client, nodeClasses: kube.cache(clusterAPINodeClassKind), events: kube.recorder },
      defaults: { prices: noPrices, architecture: defaultArchitecture(undefined) },
      runtime: { clock, logger: silentLogger },
      createController: (options) => createController(options, { clock, logger: silentLogger }),
    })
  }

  #hub(client: KubeClient): Hub & { start(signal: AbortSignal): void } {
    const { kube } = this
    const hub: OpenHub = {
      kinds: hubKinds,
      caches: {
        machineDeployments: kube.cache(hubKinds.machineDeployment),
        machines: kube.cache(hubKinds.machine),
        clusters: kube.cache(hubKinds.cluster),
      },
    }
    return {
      server: 'https://hub',
      kube: client as WatchingKubeClient,
      names,
      scope: this.#scope,
      state: { kind: 'open', hub },
      awayUntilMs: undefined,
      onOpen: (listener) => {
        listener(hub)
      },
      start: () => undefined,
    }
  }

  /** Puts a MachineDeployment there, as `aDeployment` makes it; 0 replicas unless said otherwise. */
  add(parts: Parameters<typeof aDeployment>[0] & object = {}): MachineDeployment {
    return this.kube.put(
      hubKinds.machineDeployment,
      aDeployment({ ...parts, spec: { replicas: 0, ...parts.spec } }),
    )
  }

  deployment(name = 'md-0', namespace = 'default'): MachineDeployment | undefined {
    return this.kube.cache(hubKinds.machineDeployment).get({ namespace, name })
  }

  replicas(name = 'md-0', namespace = 'default'): number | undefined {
    return this.deployment(name, namespace)?.spec?.replicas
  }

  machines(): readonly Machine[] {
    return this.kube.all(hubKinds.machine)
  }

  /** Names of Machines that a claim has. */
  boundTo(claimName: string): readonly string[] {
    return this.machines()
      .filter(({ metadata }) => ownValue(metadata.annotations, 'tenon.sh/nodeclaim') === claimName)
      .map(({ metadata }) => metadata.name)
  }

  /** Runs a call to its end on virtual time. */
  async settled<T>(work: Promise<T>, limitMs = 120_000): Promise<T> {
    let isDone = false
    const note = () => {
      isDone = true
    }
    work.then(note, note)
    await this.clock.advanceUntil(() => isDone, limitMs)
    return await work
  }

  /** Puts a claim there. */
  claim(name: string, parts: ClaimParts = {}): NodeClaim {
    return this.kube.put(karpenterKinds.nodeClaim, aClaim(name, parts))
  }

  /** Puts a claim there and launches it. */
  async launch(name: string, parts: ClaimParts = {}): ReturnType<ClusterApiProvider['create']> {
    return await this.settled(this.provider.create(this.claim(name, parts)))
  }

  /** Writes to MachineDeployments so far. */
  scalings(): number {
    return this.kube.writes.filter(({ path }) => path.includes('/machinedeployments/')).length
  }

  #later(ms: number, work: () => Promise<void> | void): void {
    this.clock.after(ms, () => {
      void work()
    })
  }

  #reconcileOf({ metadata }: Machine): Promise<void> | void {
    const name = ownValue(metadata.labels, names.deploymentName)
    if (name !== undefined) return this.#reconcile({ namespace: metadata.namespace ?? '', name })
  }

  async #reconcile(key: { readonly namespace?: string; readonly name: string }): Promise<void> {
    const { namespace = '', name } = key
    const deployment = this.deployment(name, namespace)
    if (deployment === undefined || this.barren.has(name)) return
    const own = this.machines().filter(
      ({ metadata }) =>
        metadata.namespace === namespace && ownValue(metadata.labels, names.deploymentName) === name,
    )
    const wanted = deployment.spec?.replicas ?? 0
    for (let count = own.length; count < wanted; count++) this.#make(namespace, name)
    const excess = own.toSorted(byPriority).slice(0, Math.max(0, own.length - wanted))
    for (const { metadata } of excess)
      if (metadata.deletionTimestamp === undefined)
        await this.kube.delete(hubKinds.machine, { namespace, name: metadata.name }).catch(() => undefined)
    const now = this.deployment(name, namespace)
    const { generation: observedGeneration = 0 } = deployment.metadata
    if (now !== undefined && now.status?.observedGeneration !== observedGeneration)
      this.kube.put(hubKinds.machineDeployment, { ...now, status: { ...now.status, observedGeneration } })
  }

  #make(namespace: string, deployment: string): void {
    const name = `${deployment}-${String(++this.#serial).padStart(4, '0')}`
    this.kube.put(hubKinds.machine, {
      apiVersion: 'cluster.x-k8s.io/v1beta2',
      kind: 'Machine',
      metadata: {
        name,
        namespace,
        creationTimestamp: rfc3339(this.clock.now()),
        finalizers: ['machine.cluster.x-k8s.io'],
        labels: { [names.deploymentName]: deployment, [names.setName]: `${deployment}-set` },
      },
      spec: { clusterName: 'workload' },
    })
  }

  async #provide({ namespace, name }: { readonly namespace?: string; readonly name: string }): Promise<void> {
    const key = { name, ...(namespace !== undefined && { namespace }) }
    await this.kube
      .patch(hubKinds.machine, key, { spec: { providerID: `test:///${name}` } })
      .catch(() => undefined)
  }

  async #end({ namespace, name }: { readonly namespace?: string; readonly name: string }): Promise<void> {
    const key = { name, ...(namespace !== undefined && { namespace }) }
    await this.kube.patch(hubKinds.machine, key, { metadata: { finalizers: null } }).catch(() => undefined)
  }
}

function byPriority({ metadata: a }: Machine, { metadata: b }: Machine): number {
  const rank = (metadata: Machine['metadata']) =>
    metadata.deletionTimestamp !== undefined
      ? 0
      : ownValue(metadata.annotations, names.deleteMachine) !== undefined
        ? 1
        : 2
  return rank(a) - rank(b) || (a.name < b.name ? -1 : 1)
}
