/** A cluster with a simulated Cluster API on virtual time, without an autoscaler. */
import assert from 'node:assert/strict'
import {
  apiVersionOf,
  type KubeObject,
  kinds,
  type Node,
  ownValue,
  type Pod,
  type ResourceType,
} from '@tenon/api'
import {
  createCredentials,
  type DevClusterOptions,
  type LocalApi,
  startDevCluster,
  type StoredObject,
} from '@tenon/devcluster'
import { readText, SeededRandom, silentLogger, VirtualClock } from '@tenon/runtime'
import type { ClusterApi, ClusterApiOptions } from './cluster-api.ts'
import {
  type FullDeployment,
  type FullMachine,
  type FullSet,
  isLeaving,
  type MachineHealthCheck,
  type MachinePool,
  type MachineShape,
  type SimulatedKinds,
} from './kinds.ts'
import { type ClusterApiCluster, clusterApiSimulator } from './simulator.ts'

const exactly = (ms: number) => ({ minMs: ms, maxMs: ms })

/**
 * Every duration is known: bootstrap data after 1 s, a provider ID after 10 s, a Node 30 s later, ready 2 s later,
 * and an end 5 s after the drain.
 */
const steady: ClusterApiOptions['settings'] = {
  deploymentDelay: exactly(100),
  controllerDelay: exactly(100),
  bootstrapDelay: exactly(1_000),
  providerIdDelay: exactly(10_000),
  nodeDelay: exactly(30_000),
  deletionDelay: exactly(5_000),
  drainRetryMs: 1_000,
}

let credentials: ReturnType<typeof createCredentials> | undefined

/** Labels of an object; none of one that is not there. */
export const labelsOf = (object: KubeObject | undefined): ReadonlyMap<string, string> =>
  new Map(Object.entries(object?.metadata.labels ?? {}))

/** A budget of the pod that {@link ClusterApiFixture.createPod} creates with this name. */
export function budget(name: string, minAvailable: number): KubeObject {
  const object: KubeObject & { readonly spec: object } = {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name, namespace: 'default' },
    spec: { minAvailable, selector: { matchLabels: { app: name } } },
  }
  return object
}

interface Commit {
  readonly revision: number
  readonly collection: string
  readonly key: string
  /** Undefined for a removal. */
  readonly object: StoredObject | undefined
}

/** A Scale. */
interface Answered {
  readonly kind: string
  readonly spec: { readonly replicas: number }
  readonly status: { readonly replicas: number }
}

interface Beginning extends ClusterApiOptions {
  readonly clock?: VirtualClock
  readonly seed?: string
  readonly initial?: DevClusterOptions<ClusterApi>['initial']
}

interface DeploymentOptions {
  readonly replicas?: number
  readonly template?: string
  readonly annotations?: Readonly<Record<string, string>>
  readonly labels?: Readonly<Record<string, string>>
  readonly templateLabels?: Readonly<Record<string, string>>
  readonly spec?: FullDeployment['spec']
}

export class ClusterApiFixture {
  readonly clock: VirtualClock
  readonly cluster: ClusterApiCluster
  /** The hub as its users see it. */
  readonly hub: LocalApi
  /** The workload cluster as its users see it. */
  readonly api: LocalApi
  readonly kinds: SimulatedKinds
  readonly #beginning: Beginning
  /** Every write since the beginning. */
  readonly #commits: Commit[] = []

  private constructor(clock: VirtualClock, cluster: ClusterApiCluster, beginning: Beginning) {
    this.clock = clock
    this.cluster = cluster
    this.hub = cluster.cloud.hub
    this.api = cluster.server.localAs('kubectl')
    this.kinds = cluster.cloud.kinds
    this.#beginning = beginning
    const { store } = cluster.server
    for (const { collection, key, object } of beginning.initial?.objects ?? [])
      this.#commits.push({ revision: 0, collection, key, object })
    if (beginning.initial === undefined)
      for (const collection of store.collections())
        collection.scan(
          {},
          (object, key) => this.#commits.push({ revision: 0, collection: collection.id, key, object }) > 0,
        )
    store.onCommit(({ id }, { revision, key, object, type }) => {
      this.#commits.push({
        revision,
        collection: id,
        key,
        object: type === 'DELETED' ? undefined : object,
      })
    })
  }

  static async start(beginning: Beginning = {}): Promise<ClusterApiFixture> {
    const { clock = new VirtualClock(), seed = '1', initial, settings, ...options } = beginning
    credentials ??= createCredentials(clock.now())
    const cluster = startDevCluster({
      clock,
      // No two processes draw the same.
      random: new SeededRandom(`${seed} ${initial?.revision ?? 0}`),
      logger: silentLogger,
      credentials: await credentials,
      simulator: clusterApiSimulator({ ...options, settings: { ...steady, ...settings } }),
      kubelets: { readyDelay: [2_000, 2_000] },
      ...(initial && { initial }),
    })
    return new ClusterApiFixture(clock, cluster, { ...beginning, clock })
  }

  /** Number of the newest write. */
  get revision(): number {
    return this.cluster.server.store.revision
  }

  /** The process dies right after the write of this number, and a new one continues with what was saved. */
  async killedAfter(revision: number): Promise<ClusterApiFixture> {
    this.stop()
    const objects = new Map<string, Commit>()
    for (const commit of this.#commits) {
      if (commit.revision > revision) continue
      const id = `${commit.collection} ${commit.key}`
      if (commit.object === undefined) objects.delete(id)
      else objects.set(id, commit)
    }
    const saved = [...objects.values()].map(({ collection, key, object }) => ({
      collection,
      key,
      object: object as StoredObject,
    }))
    return await ClusterApiFixture.start({ ...this.#beginning, initial: { revision, objects: saved } })
  }

  get cloud(): ClusterApi {
    return this.cluster.cloud
  }

  createTemplate(name: string, shape: MachineShape): void {
    const { template } = this.kinds
    this.hub.create(template, {
      apiVersion: apiVersionOf(template),
      kind: template.kind,
      metadata: { name, namespace: 'default' },
      spec: { template: { spec: shape } },
    })
  }

  createDeployment(name: string, options: DeploymentOptions = {}): FullDeployment {
    return this.hub.create(this.kinds.deployment, this.#counted(this.kinds.deployment, name, options))
  }

  #counted(type: ResourceType, name: string, options: DeploymentOptions) {
    const { annotations = {}, labels, replicas, spec, template = 'small', templateLabels = {} } = options
    const { template: infrastructure } = this.kinds
    return {
      apiVersion: apiVersionOf(type),
      kind: type.kind,
      metadata: { name, namespace: 'default', annotations, ...(labels && { labels }) },
      spec: {
        clusterName: 'workload',
        ...(replicas !== undefined && { replicas }),
        template: {
          metadata: { labels: templateLabels },
          spec: {
            clusterName: 'workload',
            infrastructureRef: {
              apiGroup: infrastructure.group,
              kind: infrastructure.kind,
              name: template,
            },
          },
        },
        ...spec,
      },
    }
  }

  createSet(name: string, options: DeploymentOptions = {}): FullSet {
    return this.hub.create(this.kinds.set, this.#counted(this.kinds.set, name, options))
  }

  createPool(name: string, options: DeploymentOptions = {}): MachinePool {
    return this.hub.create(this.kinds.pool, this.#counted(this.kinds.pool, name, options))
  }

  pool(name: string): MachinePool | undefined {
    return this.hub.get(this.kinds.pool, 'default', name)
  }

  createHealthCheck(name: string, spec: MachineHealthCheck['spec']): void {
    const { healthCheck } = this.kinds
    this.hub.create(healthCheck, {
      apiVersion: apiVersionOf(healthCheck),
      kind: healthCheck.kind,
      metadata: { name, namespace: 'default' },
      spec: { clusterName: 'workload', ...spec },
    })
  }

  /** An administrator's request about a Scale. */
  async request(
    method: string,
    path: string,
    body?: object,
  ): Promise<{ readonly status: number; readonly body: Answered }> {
    credentials ??= createCredentials(this.clock.now())
    const authorization = `Bearer ${(await credentials).adminToken.reveal()}`
    const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json'
    const response = await this.cluster.server.handle({
      method,
      path,
      headers: { authorization, 'content-type': type },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    return { status: response.status, body: JSON.parse(await readText(response.body)) as Answered }
  }

  /** A merge patch on a MachineDeployment. */
  patch(name: string, patch: object): void {
    this.hub.patch(this.kinds.deployment, 'default', name, patch)
  }

  scale(name: string, replicas: number): void {
    this.patch(name, { spec: { replicas } })
  }

  deployment(name: string): FullDeployment | undefined {
    return this.hub.get(this.kinds.deployment, 'default', name)
  }

  /** MachineSets of a MachineDeployment, by name. */
  sets(deployment: string): readonly FullSet[] {
    return this.hub
      .list(this.kinds.set, { namespace: 'default' })
      .filter(({ metadata }) => this.#deploymentOf(metadata.labels) === deployment)
  }

  /** Machines of a MachineDeployment, or of all, by name. */
  machines(deployment?: string): readonly FullMachine[] {
    return this.hub
      .list(this.kinds.machine, { namespace: 'default' })
      .filter(
        ({ metadata }) => deployment === undefined || this.#deploymentOf(metadata.labels) === deployment,
      )
  }

  machine(name: string): FullMachine | undefined {
    return this.hub.get(this.kinds.machine, 'default', name)
  }

  /** The only Machine there is. */
  onlyMachine(): FullMachine {
    const [machine, ...others] = this.machines()
    assert.ok(machine !== undefined && others.length === 0, `${this.machines().length} Machines`)
    return machine
  }

  annotate(machine: string, annotations: Readonly<Record<string, string | null>>): void {
    this.hub.patch(this.kinds.machine, 'default', machine, { metadata: { annotations } })
  }

  deleteMachine(name: string): void {
    this.hub.delete(this.kinds.machine, 'default', name)
  }

  node(name: string): Node | undefined {
    return this.api.get(kinds.node, undefined, name)
  }

  nodes(): readonly Node[] {
    return this.api.list(kinds.node)
  }

  /** Phases of the Machines of a MachineDeployment, with how many there are of each. */
  phases(deployment?: string): Readonly<Record<string, number>> {
    const counts = new Map<string, number>()
    for (const machine of this.machines(deployment)) {
      const phase = isLeaving(machine) ? 'Deleting' : (machine.status?.phase ?? 'none')
      counts.set(phase, (counts.get(phase) ?? 0) + 1)
    }
    return Object.fromEntries(counts)
  }

  createPod(name: string, node: string): Pod {
    return this.api.create(kinds.pod, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace: 'default', labels: { app: name } },
      spec: {
        nodeName: node,
        terminationGracePeriodSeconds: 1,
        tolerations: [{ operator: 'Exists' }],
        containers: [{ name: 'app', image: 'app' }],
      },
    })
  }

  pod(name: string): Pod | undefined {
    return this.api.get(kinds.pod, 'default', name)
  }

  async seconds(count: number): Promise<void> {
    await this.clock.advance(count * 1_000)
  }

  /** Advances until `isSo`; answers how many seconds it took. */
  async until(what: string, isSo: () => boolean, limitSeconds = 600): Promise<number> {
    const from = this.clock.now()
    assert.ok(
      await this.clock.advanceUntil(isSo, limitSeconds * 1_000),
      `not within ${limitSeconds} s: ${what}`,
    )
    return (this.clock.now() - from) / 1_000
  }

  stop(): void {
    this.cluster.stop()
  }

  #deploymentOf(labels: Readonly<Record<string, string>> | undefined): string | undefined {
    return ownValue(labels, 'cluster.x-k8s.io/deployment-name')
  }
}
