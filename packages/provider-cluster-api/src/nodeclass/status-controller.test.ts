import assert from 'node:assert/strict'
import { test } from 'node:test'
import { conditionOf } from '@tenon/api'
import { KubeError, type ReconcileResult } from '@tenon/kube'
import type { HubScope, HubState } from '../hub/hub.ts'
import { capacityAnnotations } from '../names.ts'
import { aDeployment, names } from '../testing/deployments.test-support.ts'
import { CatalogueStage, kinds } from '../testing/hub.test-support.ts'
import { NodeClassStatus } from './status-controller.ts'
import { followNodeClasses } from './status-triggers.ts'
import { type ClusterAPINodeClass, clusterAPINodeClassKind } from '../node-class.ts'

const prices = { currency: 'EUR', pricesPerHour: new Map([['large', 0.25]]) }

class Classes extends CatalogueStage {
  readonly #status: NodeClassStatus

  constructor(parts: { readonly scope?: HubScope; readonly state?: HubState } = {}) {
    super({ ...parts, prices })
    this.#status = new NodeClassStatus({
      kube: this.kube,
      nodeClasses: this.kube.cache(clusterAPINodeClassKind),
      deployments: { catalogue: this.catalogue, prices, names },
      events: this.kube.recorder,
      clock: this.clock,
    })
  }

  async reconcile(): Promise<ReconcileResult> {
    return await this.#status.reconcile('default', new AbortController().signal)
  }

  get class(): ClusterAPINodeClass {
    return this.kube.all(clusterAPINodeClassKind)[0] ?? assert.fail('the class is gone')
  }

  /** Condition as `status/reason`. */
  condition(type: string): string {
    const found = conditionOf(this.class, type)
    return found === undefined ? 'none' : `${found.status}/${found.reason}`
  }

  message(type: string): string {
    return conditionOf(this.class, type)?.message ?? ''
  }

  get listed() {
    return this.class.status?.machineDeployments ?? []
  }
}

test('CAP-65 a new class becomes ready, and what has not changed is not written', async () => {
  const stage = new Classes()
  stage.put({ name: 'one' })
  assert.equal((await stage.reconcile()).kind, 'after')
  assert.equal(stage.condition('ValidationSucceeded'), 'True/ValidationSucceeded')
  assert.equal(stage.condition('MachineDeploymentsRead'), 'True/MachineDeploymentsRead')
  assert.equal(stage.condition('MachineDeploymentsFound'), 'True/MachineDeploymentsFound')
  assert.equal(stage.condition('Ready'), 'True/Ready')
  assert.deepEqual(
    stage.kube.writes.map(({ verb }) => verb),
    ['patch'],
  )
  await stage.reconcile()
  assert.equal(stage.kube.writes.length, 1)
})

test('CAP-96 a selector that is not understood makes it not ready, with field and fix, until it is fixed', async () => {
  const stage = new Classes()
  stage.put({ name: 'one' })
  stage.putClass(JSON.parse('{"matchExpressions":[{"key":"a","operator":"Near"}]}'))
  await stage.reconcile()
  assert.equal(stage.condition('ValidationSucceeded'), 'False/ValidationFailed')
  assert.equal(stage.condition('Ready'), 'False/UnhealthyDependents')
  assert.equal(
    stage.message('ValidationSucceeded'),
    'spec.scalableResourceSelector.matchExpressions[0].operator: operator "Near" is not known; write In, NotIn, Exists or DoesNotExist',
  )
  assert.deepEqual(
    stage.kube.events.map(({ reason }) => reason),
    ['ValidationFailed'],
  )
  stage.putClass({}, 2)
  await stage.reconcile()
  assert.equal(stage.condition('Ready'), 'True/Ready')
})

test('the status lists what matches, with the price, and why something is not used', async () => {
  const stage = new Classes()
  stage.put({
    name: 'b',
    nodeLabels: { 'node.kubernetes.io/instance-type': 'large', 'topology.kubernetes.io/zone': 'z' },
  })
  stage.put({ name: 'c', annotations: { [names.maxSize]: '2' }, spec: { replicas: 2 } })
  stage.put({ name: 'a', annotations: { [capacityAnnotations.memory]: 'much' } })
  await stage.reconcile()
  assert.deepEqual(stage.listed, [
    {
      namespace: 'default',
      name: 'a',
      message:
        'not used: annotation capacity.cluster-autoscaler.kubernetes.io/memory is "much", which is not a quantity of memory; write a quantity such as 16Gi',
    },
    { namespace: 'default', name: 'b', instanceType: 'large', zone: 'z', price: '0.25 EUR' },
    {
      namespace: 'default',
      name: 'c',
      instanceType: 'c',
      zone: 'zone-a',
      message:
        'MachineDeployment default/c has 2 of at most 2 replicas (annotation cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size)',
    },
  ])
  assert.equal(stage.message('MachineDeploymentsFound'), '2 used, 1 not used')
})

test('a list that would be too long is cut, and that is told', async () => {
  const stage = new Classes()
  for (let i = 0; i < 130; i++) stage.put({ name: `md-${i}` })
  await stage.reconcile()
  assert.equal(stage.listed.length, 100)
  assert.equal(stage.message('MachineDeploymentsFound'), '130 used, 0 not used; the first 100 are listed')
})

test('a class that matches nothing, or nothing of use, is ready and says so', async () => {
  const stage = new Classes()
  await stage.reconcile()
  assert.equal(stage.condition('Ready'), 'True/Ready')
  assert.equal(stage.condition('MachineDeploymentsFound'), 'False/NoneMatched')
  assert.match(
    stage.message('MachineDeploymentsFound'),
    /label node\.cluster\.x-k8s\.io\/karpenter-member with an empty value/,
  )
  stage.put({ name: 'a', annotations: { [capacityAnnotations.memory]: 'much' } })
  await stage.reconcile()
  assert.equal(stage.condition('MachineDeploymentsFound'), 'False/NoneUsable')
  assert.equal(stage.condition('Ready'), 'True/Ready')
})

test('members of several Clusters make it not ready, with the setting that helps', async () => {
  const stage = new Classes()
  stage.put({ name: 'a' })
  stage.put({ name: 'b', spec: { clusterName: 'other' } })
  await stage.reconcile()
  assert.equal(stage.condition('MachineDeploymentsRead'), 'False/MachineDeploymentsRefused')
  assert.match(stage.message('MachineDeploymentsRead'), /set CLUSTER_API_CLUSTER_NAME/)
  assert.equal(stage.condition('Ready'), 'False/UnhealthyDependents')
})

test('a new class waits for the hub and says why; one that was ready stays so while the hub is away', async () => {
  const waiting = { kind: 'waiting', because: 'the management cluster does not answer' } as const
  const stage = new Classes({ state: waiting })
  stage.put({ name: 'a' })
  await stage.reconcile()
  assert.equal(stage.condition('MachineDeploymentsRead'), 'Unknown/ManagementClusterNotRead')
  assert.equal(stage.message('MachineDeploymentsRead'), waiting.because)
  assert.equal(stage.condition('Ready'), 'Unknown/ReconcilingDependents')
  stage.hub.state = { kind: 'open', hub: stage.openHub }
  await stage.reconcile()
  assert.equal(stage.condition('Ready'), 'True/Ready')
  stage.hub.state = waiting
  const writes = stage.kube.writes.length
  await stage.reconcile()
  assert.equal(stage.condition('Ready'), 'True/Ready')
  assert.equal(stage.listed.length, 1)
  assert.equal(stage.kube.writes.length, writes)
})

test('CAP-66 a class that goes is left alone: there is no finalizer', async () => {
  const stage = new Classes()
  await stage.reconcile()
  assert.equal(stage.class.metadata.finalizers, undefined)
  await stage.kube.delete(clusterAPINodeClassKind, { name: 'default' })
  assert.deepEqual(await stage.reconcile(), { kind: 'done' })
})

test('a write that comes too late is repeated with what is there then', async () => {
  const stage = new Classes()
  const error = new KubeError('conflict', 409, 'the object has been modified')
  stage.kube.failures.push({ verb: 'patch', plural: clusterAPINodeClassKind.plural, error })
  assert.deepEqual(await stage.reconcile(), { kind: 'backoff' })
})

test('classes are looked at when they change, and all of them when MachineDeployments do, once the hub is there', () => {
  const stage = new Classes({ state: { kind: 'waiting', because: 'it is not there' } })
  const asked: string[] = []
  let open = () => {}
  const stop = followNodeClasses(
    { enqueue: (name, delayMs = 0) => asked.push(`${name} ${delayMs}`) },
    stage.kube.cache(clusterAPINodeClassKind),
    {
      state: stage.hub.state,
      onOpen: (listener) => {
        open = () => listener(stage.openHub)
      },
    },
  )
  const told = () => asked.splice(0)
  assert.deepEqual(told(), ['default 0'])
  stage.put({ name: 'one' })
  assert.deepEqual(told(), [])
  open()
  assert.deepEqual([...new Set(told())], ['default 2000'])
  stage.put({ name: 'one', spec: { replicas: 2 } })
  assert.deepEqual(told(), ['default 2000'])
  stage.kube.put(clusterAPINodeClassKind, { ...stage.class, status: { conditions: [] } })
  assert.deepEqual(told(), [], 'a status is no news')
  stage.putClass({}, 2)
  assert.deepEqual(told(), ['default 0'])
  stop()
  stage.kube.put(kinds.machineDeployment, aDeployment({ name: 'two' }))
  assert.deepEqual(told(), [])
})
