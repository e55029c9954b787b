/** Numbers of pods that change quickly, on the simulated Cluster API (cluster-api.md 17). */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { conditionOf, karpenterKinds, type KubeObject, labels, type NodePool } from '@tenon/api'
import { clusterAPINodeClassKind } from '@tenon/provider-cluster-api'
import { simulatedKinds } from '@tenon/provider-cluster-api/simulator'
import { aDeployment, deploymentKind, type RunningOperator, World } from '../world.ts'

type Version = Parameters<typeof simulatedKinds>[1]

const minutes = 60_000

function aPool(requirements: NodePool['spec']['template']['spec']['requirements']): NodePool {
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

/** A pod to a node, on a MachineDeployment of at most ten. */
class Stage {
  readonly world: World
  readonly #kinds: ReturnType<typeof simulatedKinds>
  readonly #operator: RunningOperator

  private constructor(world: World, kinds: ReturnType<typeof simulatedKinds>, operator: RunningOperator) {
    this.world = world
    this.#kinds = kinds
    this.#operator = operator
  }

  /** @param version that the hub serves. */
  static async open(t: Pick<TestContext, 'after'>, version: Version = 'v1beta2'): Promise<Stage> {
    const world = await World.start({ seed: 1, provider: 'cluster-api', clusterApi: { version } })
    const kinds = simulatedKinds('cluster.x-k8s.io', version)
    world.create(clusterAPINodeClassKind, {
      apiVersion: 'karpenter.cluster.x-k8s.io/v1alpha1',
      kind: 'ClusterAPINodeClass',
      metadata: { name: 'default' },
      spec: {},
    })
    world.create(kinds.deployment, {
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
    })
    world.create(karpenterKinds.nodePool, aPool([{ key: labels.arch, operator: 'In', values: ['amd64'] }]))
    const stage = new Stage(world, kinds, await world.startOperator())
    t.after(() => stage.#close())
    await world.clock.advance(2000)
    return stage
  }

  get replicas(): number | undefined {
    return this.world.cluster.server.local.get(this.#kinds.deployment, 'default', 'md-0')?.spec?.replicas
  }

  get claims() {
    return this.world.cluster.server.local.list(karpenterKinds.nodeClaim)
  }

  get claimUids(): ReadonlySet<string> {
    return new Set(this.claims.map(({ metadata }) => metadata.uid ?? ''))
  }

  /** Whether so many pods run, on so many nodes, claims and replicas. */
  isSettled(count: number): boolean {
    const running = this.world.pods().filter(({ status }) => status?.phase === 'Running').length
    const nodes = this.world.nodes().length
    const machines = this.world.cluster.server.local.list(this.#kinds.machine).length
    return [running, nodes, this.claims.length, machines, this.replicas].every((each) => each === count)
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

test('a hub that serves v1beta1 alone does as well', async (t) => {
  const stage = await Stage.open(t, 'v1beta1')
  stage.world.create(deploymentKind, aDeployment('web', 3, { cpu: '1200m', memory: '1Gi' }))
  await stage.settles(3, 5 * minutes)
  // Cluster API's own; the claim has `namespace/name`.
  for (const { metadata } of stage.world.nodes())
    assert.equal(metadata.annotations?.['cluster.x-k8s.io/machine'], metadata.name)
  stage.world.scale('web', 1)
  await stage.settles(1, 5 * minutes)
})

test('CAP-88 five, two, eight pods in quick succession end with eight of everything within five minutes', async (t) => {
  const stage = await Stage.open(t)
  stage.world.create(deploymentKind, aDeployment('web', 5, { cpu: '1200m', memory: '1Gi' }))
  for (const count of [2, 8]) {
    await stage.world.clock.advance(15_000)
    stage.world.scale('web', count)
  }
  await stage.settles(8, 5 * minutes)
})

test('CAP-89 three, seven, two, ten, one, five pods end with five of everything, rapidly and after each has settled', async (t) => {
  const stage = await Stage.open(t)
  stage.world.create(deploymentKind, aDeployment('web', 3, { cpu: '1200m', memory: '1Gi' }))
  for (const count of [7, 2, 10, 1, 5]) {
    await stage.world.clock.advance(10_000)
    stage.world.scale('web', count)
  }
  await stage.settles(5, 10 * minutes)
  for (const count of [7, 2, 10, 1, 5]) {
    stage.world.scale('web', count)
    await stage.settles(count, 10 * minutes)
  }
})

test('CAP-90 pods that keep apart get a node each, and without them the replicas return to none', async (t) => {
  const stage = await Stage.open(t)
  stage.world.create(deploymentKind, apart(aDeployment('web', 3, { cpu: '100m', memory: '64Mi' })))
  await stage.settles(3, 5 * minutes)
  stage.world.scale('web', 0)
  await stage.settles(0, 5 * minutes)
})

test('CAP-77 nodes of a NodePool that asks for the architecture its MachineDeployment tells do not drift', async (t) => {
  const stage = await Stage.open(t)
  stage.world.create(deploymentKind, aDeployment('web', 2, { cpu: '1200m', memory: '1Gi' }))
  await stage.settles(2, 5 * minutes)
  const before = stage.claimUids
  await stage.world.clock.advance(100 * minutes)
  assert.deepEqual(stage.claimUids, before)
  for (const claim of stage.claims) assert.notEqual(conditionOf(claim, 'Drifted')?.status, 'True')
})

function apart(deployment: KubeObject): KubeObject {
  const { spec } = deployment as KubeObject & {
    readonly spec: { readonly template: { readonly spec: object; readonly metadata: object } }
  }
  const term = { topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels: { app: 'web' } } }
  const affinity = { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] } }
  const template = { ...spec.template, spec: { ...spec.template.spec, affinity } }
  return Object.assign(deployment, { spec: { ...spec, template } })
}
