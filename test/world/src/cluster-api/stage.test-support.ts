/** A workload cluster whose nodes are Machines of the simulated Cluster API, and the operator on it. */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import {
  type Condition,
  karpenterKinds,
  labels,
  type NodeClaim,
  type NodePool,
  ownValue,
  pathOf,
} from '@tenon/api'
import { type ClusterAPINodeClass, clusterAPINodeClassKind, ownNames } from '@tenon/provider-cluster-api'
import {
  type ClusterApiSettings,
  type FullDeployment,
  type FullMachine,
  simulatedKinds,
} from '@tenon/simulator-cluster-api'
import { type RunningOperator, World } from '../world.ts'

type Version = Parameters<typeof simulatedKinds>[1]

const namespace = 'default'

export function aPool(requirements: NodePool['spec']['template']['spec']['requirements']): NodePool {
  const nodeClassRef = {
    group: clusterAPINodeClassKind.group,
    kind: clusterAPINodeClassKind.kind,
    name: 'default',
  }
  return {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodePool',
    metadata: { name: 'default' },
    spec: {
      template: { spec: { nodeClassRef, requirements } },
      disruption: { consolidateAfter: '0s', budgets: [{ nodes: '100%' }] },
    },
  }
}

export const aClusterApiClass: ClusterAPINodeClass = {
  apiVersion: 'karpenter.cluster.x-k8s.io/v1alpha1',
  kind: 'ClusterAPINodeClass',
  metadata: { name: 'default' },
  spec: {},
}

export function aMachineDeployment(version: Version): FullDeployment {
  return {
    apiVersion: `cluster.x-k8s.io/${version}`,
    kind: 'MachineDeployment',
    metadata: {
      name: 'md-0',
      namespace: 'default',
      labels: { 'node.cluster.x-k8s.io/karpenter-member': '' },
      annotations: {
        'cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size': '10',
        'capacity.cluster-autoscaler.kubernetes.io/cpu': '2',
        'capacity.cluster-autoscaler.kubernetes.io/memory': '4Gi',
        'capacity.cluster-autoscaler.kubernetes.io/labels': `${labels.instanceType}=small,${labels.zone}=a,${labels.arch}=amd64`,
      },
    },
    spec: { clusterName: 'workload', replicas: 0, template: { spec: { clusterName: 'workload' } } },
  }
}

/** What a stage begins with. */
interface StageOptions {
  /** That the hub serves; `v1beta2` when absent. */
  readonly version?: Version
  readonly settings?: Partial<ClusterApiSettings>
}

/** A pod to a node, on the MachineDeployment `md-0` of at most ten. */
export class Stage {
  readonly world: World
  readonly #kinds: ReturnType<typeof simulatedKinds>
  readonly #operator: RunningOperator

  private constructor(world: World, kinds: ReturnType<typeof simulatedKinds>, operator: RunningOperator) {
    this.world = world
    this.#kinds = kinds
    this.#operator = operator
    const made = new Set<string>()
    this.made = made
    world.clusterApi.hub.subscribe(kinds.machine, { added: ({ metadata }) => void made.add(metadata.name) })
  }

  static async open(t: Pick<TestContext, 'after'>, options: StageOptions = {}): Promise<Stage> {
    const { version = 'v1beta2', settings = {} } = options
    const world = await World.start({ seed: 1, provider: 'cluster-api', clusterApi: { version, settings } })
    const kinds = simulatedKinds('cluster.x-k8s.io', version)
    world.create(clusterAPINodeClassKind, aClusterApiClass)
    world.create(kinds.deployment, aMachineDeployment(version))
    world.create(karpenterKinds.nodePool, aPool([{ key: labels.arch, operator: 'In', values: ['amd64'] }]))
    const stage = new Stage(world, kinds, await world.startOperator())
    t.after(() => stage.#close())
    await world.clock.advance(2000)
    return stage
  }

  get deployment(): FullDeployment {
    const deployment = this.world.cluster.server.local.get(this.#kinds.deployment, namespace, 'md-0')
    assert.ok(deployment)
    return deployment
  }

  get replicas(): number | undefined {
    return this.deployment.spec?.replicas
  }

  get claims(): readonly NodeClaim[] {
    return this.world.cluster.server.local.list(karpenterKinds.nodeClaim)
  }

  /** Machines, oldest first. */
  get machines(): readonly FullMachine[] {
    const age = ({ metadata }: FullMachine) => `${metadata.creationTimestamp} ${metadata.name}`
    return this.world.cluster.server.local
      .list(this.#kinds.machine)
      .toSorted((a, b) => (age(a) < age(b) ? -1 : 1))
  }

  get machineNames(): readonly string[] {
    return this.machines.map(({ metadata }) => metadata.name)
  }

  /** Names of all Machines that there have been. */
  readonly made: ReadonlySet<string>

  /** Conditions of the class, by type. */
  get classConditions(): ReadonlyMap<string, Condition> {
    const found = this.world.cluster.server.local.get(clusterAPINodeClassKind, undefined, 'default')
    return new Map((found?.status?.conditions ?? []).map((condition) => [condition.type, condition]))
  }

  /** Messages of the class about its MachineDeployments. */
  get classMessages(): string {
    const found = this.world.cluster.server.local.get(clusterAPINodeClassKind, undefined, 'default')
    return (found?.status?.machineDeployments ?? []).map(({ message = '' }) => message).join('\n')
  }

  /** A merge patch on the MachineDeployment, as its user. */
  patch(patch: object): void {
    this.world.clusterApi.hub.patch(this.#kinds.deployment, namespace, 'md-0', patch)
  }

  annotateMachine(name: string, annotations: Readonly<Record<string, string>>): void {
    this.world.clusterApi.hub.patch(this.#kinds.machine, namespace, name, { metadata: { annotations } })
  }

  deleteMachine(name: string): void {
    this.world.clusterApi.hub.delete(this.#kinds.machine, namespace, name)
  }

  /** What the topology controller applies by force; it leaves the replicas to others when they are undefined. */
  async applyAsTopology(replicas: number | undefined): Promise<void> {
    const { deployment } = this.#kinds
    const object = {
      apiVersion: `${deployment.group}/${deployment.version}`,
      kind: deployment.kind,
      metadata: {
        name: 'md-0',
        namespace,
        labels: { 'topology.cluster.x-k8s.io/owned': '', 'cluster.x-k8s.io/cluster-name': 'workload' },
      },
      spec: { clusterName: 'workload', ...(replicas !== undefined && { replicas }) },
    }
    const answer = await this.world.kubeTransport().send({
      method: 'PATCH',
      path: `${pathOf(deployment, namespace, 'md-0')}?fieldManager=capi-topology&force=true`,
      headers: { 'content-type': 'application/apply-patch+yaml' },
      body: JSON.stringify(object),
    })
    assert.equal(answer.status, 200)
  }

  /** Pauses, or resumes, all that Cluster API does. */
  pauseCluster(paused: boolean): void {
    this.world.clusterApi.hub.patch(this.#kinds.cluster, namespace, 'workload', { spec: { paused } })
  }

  /** The Machine of a claim. */
  machineOf(claim: NodeClaim): FullMachine {
    const machine = this.machines.find(
      ({ metadata }) => ownValue(metadata.annotations, ownNames.nodeClaimUid) === claim.metadata.uid,
    )
    assert.ok(machine)
    return machine
  }

  get claimUids(): ReadonlySet<string> {
    return new Set(this.claims.map(({ metadata }) => metadata.uid ?? ''))
  }

  /** Whether so many pods run, on so many nodes, claims and replicas. */
  isSettled(count: number): boolean {
    const running = this.world.pods().filter(({ status }) => status?.phase === 'Running').length
    const nodes = this.world.nodes().length
    return [running, nodes, this.claims.length, this.machines.length, this.replicas].every(
      (each) => each === count,
    )
  }

  async settles(count: number, limitMs: number): Promise<void> {
    const isSettled = await this.world.clock.advanceUntil(() => this.isSettled(count), limitMs)
    assert.ok(
      isSettled,
      `${count}: ${this.world.nodes().length} nodes, ${this.claims.length} claims, ${this.replicas} replicas`,
    )
  }

  async #close(): Promise<void> {
    await this.world.bury(this.#operator)
    await this.world.stop()
  }
}
