import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { karpenterKinds, kinds, labels, nodePoolHash, type OwnerReference } from '@tenon/api'
import { ProviderError } from '@tenon/provider'
import { rfc3339 } from '@tenon/runtime'
import { intercepting, minutes, seconds, Stage } from '../testing/stage.test-support.ts'
import {
  aType,
  createPool,
  madeClaims,
  PoolCloud,
  objectsWithEvent,
  unscheduled,
  waitingPod,
} from '../testing/pools.test-support.ts'
import { aKwokPool, type WorldOptions } from '../world.ts'

/** A stage whose cloud sells one type of 4 cores. */
async function openStage(t: TestContext, options: Parameters<typeof Stage.open>[1] = {}): Promise<Stage> {
  const stage = await Stage.open(t, options)
  stage.cloud.instanceTypes = [aType('medium', 4)]
  return stage
}

/** A stage on which a test can say per pool what the cloud sells. */
async function openPools(
  t: TestContext,
  options: Partial<WorldOptions> = {},
): Promise<{ readonly stage: Stage; readonly cloud: PoolCloud }> {
  let stage: Stage | undefined
  const cloud = new PoolCloud(() => (stage as Stage).world.clock)
  cloud.instanceTypes = [aType('medium', 4)]
  stage = await Stage.open(t, { idle: true, provider: cloud, ...options })
  await stage.start()
  return { stage, cloud }
}

const owner = (apiVersion: string, kind: string): readonly OwnerReference[] => [
  { apiVersion, kind, name: 'owner', uid: 'c6a7d2f0-0000-4000-8000-000000000001' },
]

/** Names of the pods of a new ReplicaSet, whose scheduler has said nothing about them. */
async function unseenReplicas(stage: Stage, replicas: number, app = 'app'): Promise<readonly string[]> {
  const container = { name: 'app', image: 'app', resources: { requests: { cpu: '1' } } }
  const spec = {
    replicas,
    selector: { matchLabels: { app } },
    template: {
      metadata: { labels: { app } },
      spec: { schedulerName: 'by-hand', containers: [container] },
    },
  }
  stage.world.create(kinds.replicaSet, {
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    metadata: { name: app, namespace: 'default' },
    spec,
  })
  await stage.pass(seconds)
  const pods = stage.world.cluster.server.local.list(kinds.pod)
  return pods.filter(({ metadata }) => metadata.labels?.['app'] === app).map(({ metadata }) => metadata.name)
}

describe('which pods get a node', () => {
  test('SCH-1 a pod the scheduler has not given up yet gets none', async (t) => {
    const stage = await openStage(t)
    waitingPod(stage, 'new', { status: { phase: 'Pending' } })
    await stage.pass(30 * seconds)
    assert.deepEqual(madeClaims(stage), [])
  })

  test('pods the scheduler has yet to look at get one with a refused one of their template', async (t) => {
    const stage = await openStage(t)
    const [first] = await unseenReplicas(stage, 3)
    await unseenReplicas(stage, 1, 'other')
    await stage.pass(30 * seconds)
    assert.deepEqual(madeClaims(stage), [])
    stage.patch(kinds.pod, first ?? '', { status: unscheduled() }, 'status', 'default')
    await stage.pass(1500)
    assert.deepEqual(
      madeClaims(stage).map(({ spec }) => spec.resources?.requests?.['cpu']),
      ['3'],
    )
  })

  test('with compatibility: karpenter, only pods that were refused themselves get one', async (t) => {
    const stage = await openStage(t, { settings: { compatibility: 'karpenter' } })
    const [first] = await unseenReplicas(stage, 3)
    stage.patch(kinds.pod, first ?? '', { status: unscheduled() }, 'status', 'default')
    await stage.pass(5 * seconds)
    assert.deepEqual(
      madeClaims(stage).map(({ spec }) => spec.resources?.requests?.['cpu']),
      ['1'],
    )
  })

  test('SCH-2 a pod behind a scheduling gate gets none', async (t) => {
    const stage = await openStage(t)
    waitingPod(stage, 'gated', { status: unscheduled('SchedulingGated') })
    await stage.pass(30 * seconds)
    assert.deepEqual(madeClaims(stage), [])
  })

  test('SCH-3 a pod that is about to preempt others waits until that is over', async (t) => {
    const stage = await openStage(t)
    await stage.join('x', { name: 'node-x' })
    waitingPod(stage, 'preempting', { status: { ...unscheduled(), nominatedNodeName: 'node-x' } })
    await stage.pass(30 * seconds)
    assert.deepEqual(madeClaims(stage), [])
    stage.patch(kinds.pod, 'preempting', { status: { nominatedNodeName: null } }, 'status', 'default')
    await stage.pass(5 * seconds)
    assert.equal(madeClaims(stage).length, 1)
  })

  test('SCH-4 pods of DaemonSets and of nodes get none', async (t) => {
    const stage = await openStage(t)
    waitingPod(stage, 'daemon', { ownerReferences: owner('apps/v1', 'DaemonSet') })
    waitingPod(stage, 'mirror', { ownerReferences: owner('v1', 'Node') })
    await stage.pass(30 * seconds)
    assert.deepEqual(madeClaims(stage), [])
  })

  test('SCH-5 the pod of another scheduler gets one', async (t) => {
    const stage = await openStage(t)
    waitingPod(stage, 'other', { spec: { schedulerName: 'somebody-else' } })
    await stage.pass(5 * seconds)
    assert.equal(madeClaims(stage).length, 1)
    assert.deepEqual(objectsWithEvent(stage, 'Nominated'), ['Pod/other'])
  })

  test('SCH-6 SCH-8 SCH-11 pods that cannot be served are left out, others proceed', async (t) => {
    const stage = await openStage(t)
    const claim = (name: string) => ({
      spec: { volumes: [{ name: 'data', persistentVolumeClaim: { claimName: name } }] },
    })
    for (const name of ['terminating', 'lost']) {
      stage.world.create(kinds.persistentVolumeClaim, {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        metadata: { name, namespace: 'default', finalizers: ['example.com/keep'] },
        spec: {
          accessModes: ['ReadWriteOnce'],
          storageClassName: 'fast',
          resources: { requests: { storage: '1Gi' } },
        },
      })
    }
    stage.world.cluster.server.local.delete(kinds.persistentVolumeClaim, 'default', 'terminating')
    stage.patch(kinds.persistentVolumeClaim, 'lost', { status: { phase: 'Lost' } }, 'status', 'default')
    waitingPod(stage, 'host', { spec: { nodeSelector: { [labels.hostname]: 'x' } } })
    waitingPod(stage, 'unmanaged', {
      spec: {
        affinity: {
          nodeAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: {
              nodeSelectorTerms: [{ matchExpressions: [{ key: labels.nodePool, operator: 'DoesNotExist' }] }],
            },
          },
        },
      },
    })
    waitingPod(stage, 'claim-missing', claim('missing'))
    waitingPod(stage, 'claim-terminating', claim('terminating'))
    waitingPod(stage, 'claim-lost', claim('lost'))
    waitingPod(stage, 'plain')
    await stage.pass(5 * seconds)
    assert.equal(madeClaims(stage).length, 1)
    assert.deepEqual(objectsWithEvent(stage, 'Nominated'), ['Pod/plain'])
    assert.deepEqual(objectsWithEvent(stage, 'FailedScheduling').toSorted(), [
      'Pod/claim-lost',
      'Pod/claim-missing',
      'Pod/claim-terminating',
      'Pod/host',
    ])
    assert.equal(await stage.metric('scheduler_ignored_pods_count'), 5)
    assert.equal(await stage.metric('scheduler_unschedulable_pods_count'), 0)
  })

  test('SCH-171 a pod with resource claims is refused, others proceed', async (t) => {
    const stage = await openStage(t)
    waitingPod(stage, 'device', {
      spec: { resourceClaims: [{ name: 'gpu', resourceClaimName: 'gpu' }] },
    })
    waitingPod(stage, 'plain')
    await stage.pass(5 * seconds)
    assert.deepEqual(objectsWithEvent(stage, 'FailedScheduling'), ['Pod/device'])
    assert.deepEqual(objectsWithEvent(stage, 'Nominated'), ['Pod/plain'])
    assert.equal(await stage.metric('scheduler_unschedulable_pods_count'), 1)
  })

  test('PGE-1 pods that are left out are counted, also when there is nothing else to decide', async (t) => {
    const stage = await openStage(t)
    const leftOut = async () => await stage.metric('tenon_pods_waiting', { code: 'leftOut' })
    waitingPod(stage, 'host', { spec: { nodeSelector: { [labels.hostname]: 'x' } } })
    await stage.pass(5 * seconds)
    assert.equal(await leftOut(), 1)
    stage.world.cluster.server.local.delete(kinds.pod, 'default', 'host', { gracePeriodSeconds: 0 })
    waitingPod(stage, 'plain')
    await stage.pass(15 * seconds)
    assert.equal(await leftOut(), 0)
  })

  test('what pods wait for is measured, and nothing is once no pod waits', async (t) => {
    const stage = await openStage(t)
    waitingPod(stage, 'flexible')
    waitingPod(stage, 'pinned', { spec: { nodeSelector: { [labels.zone]: 'zone-1' } } })
    waitingPod(stage, 'host', { spec: { nodeSelector: { [labels.hostname]: 'x' } } })
    waitingPod(stage, 'huge', { cpu: '100' })
    await stage.pass(5 * seconds)
    const zones = async (zone: string) =>
      await stage.metric('scheduler_pending_pods_by_effective_zone_count', { zone })
    assert.deepEqual([await zones('zone-1'), await zones('flexible')], [1, 2])
    assert.equal(await stage.metric('scheduler_unschedulable_pods_count'), 1)
    assert.equal(await stage.metric('scheduler_ignored_pods_count'), 1)
    assert.equal(await stage.metric('scheduler_queue_depth'), 0)
    assert.equal(await stage.metric('pods_scheduling_decision_duration_seconds'), 4)
    for (const name of ['flexible', 'pinned', 'host', 'huge'])
      stage.world.cluster.server.local.delete(kinds.pod, 'default', name, { gracePeriodSeconds: 0 })
    await stage.pass(15 * seconds)
    waitingPod(stage, 'unmanaged', { status: { phase: 'Pending' } })
    await stage.pass(15 * seconds)
    assert.deepEqual([await zones('zone-1'), await zones('flexible')], [0, 0])
    assert.equal(await stage.metric('scheduler_unschedulable_pods_count'), 0)
    assert.equal(await stage.metric('scheduler_ignored_pods_count'), 0)
  })
})

describe('when a decision is made', () => {
  test('SCH-17 one pod is decided about after the idle time', async (t) => {
    const stage = await openStage(t)
    waitingPod(stage, 'lone')
    await stage.pass(900)
    assert.equal(madeClaims(stage).length, 0)
    await stage.pass(200)
    assert.equal(madeClaims(stage).length, 1)
  })

  test('SCH-20 nothing is decided while a claim has no instance', async (t) => {
    const stage = await openStage(t)
    let isRejecting = true
    stage.cloud.onCreate = () => {
      if (isRejecting) throw new Error('the cloud does not answer')
    }
    waitingPod(stage, 'first', { cpu: '3' })
    await stage.pass(5 * seconds)
    waitingPod(stage, 'second', { cpu: '3' })
    await stage.pass(30 * seconds)
    assert.equal(madeClaims(stage).length, 1)
    isRejecting = false
    await stage.pass(60 * seconds)
    assert.equal(madeClaims(stage).length, 2)
  })

  test('a pod that stays is looked at again every 10 s', async (t) => {
    const { stage, cloud } = await openPools(t)
    let listings = 0
    cloud.onListTypes = () => {
      listings++
      return []
    }
    waitingPod(stage, 'patient')
    await stage.pass(2 * seconds)
    assert.equal(listings, 1)
    await stage.pass(60 * seconds)
    assert.equal(listings, 7)
    assert.deepEqual(objectsWithEvent(stage, 'NoCompatibleInstanceTypes'), ['NodePool/default'])
  })
})

describe('which NodePools launch', () => {
  test('SCH-24 pools that are not ready, unknown, leaving or static launch nothing', async (t) => {
    const apiPath = intercepting((method, path) =>
      method === 'PATCH' && path.includes('/nodepools/unknown/status') ? 'error' : 'pass',
    )
    const stage = await openStage(t, { apiPath, pool: { replicas: 0 } })
    const { template } = aKwokPool().spec
    const nodeClassRef = { ...template.spec.nodeClassRef, name: 'missing' }
    createPool(stage, aKwokPool('not-ready', { template: { spec: { ...template.spec, nodeClassRef } } }))
    createPool(stage, aKwokPool('unknown'))
    const lastTransitionTime = rfc3339(stage.now)
    const ready = { type: 'Ready', status: 'Unknown', reason: 'Waiting', message: '', lastTransitionTime }
    stage.patch(karpenterKinds.nodePool, 'unknown', { status: { conditions: [ready] } }, 'status')
    const leaving = aKwokPool('leaving')
    createPool(stage, { ...leaving, metadata: { name: 'leaving', finalizers: ['example.com/keep'] } })
    await stage.pass(2 * seconds)
    stage.delete(karpenterKinds.nodePool, 'leaving')
    assert.notEqual(stage.poolNow('leaving')?.metadata.deletionTimestamp, undefined)
    waitingPod(stage, 'pod')
    await stage.pass(30 * seconds)
    assert.deepEqual(madeClaims(stage), [])
  })

  test('SCH-25 without any pool pods are remembered as failed, in silence', async (t) => {
    const stage = await openStage(t)
    stage.delete(karpenterKinds.nodePool, 'default')
    await stage.pass(2 * seconds)
    const { metadata } = waitingPod(stage, 'pod')
    await stage.pass(5 * seconds)
    assert.deepEqual(madeClaims(stage), [])
    assert.deepEqual(objectsWithEvent(stage, 'FailedScheduling'), [])
    const { failure } = stage.operator.operator.state.podDecisions.get(metadata.uid ?? '')
    assert.match(failure ?? '', /no NodePool is ready/)
  })

  test('SCH-26 a pool whose types cannot be listed does not stop the others', async (t) => {
    const { stage, cloud } = await openPools(t)
    cloud.onListTypes = ({ metadata }) => {
      if (metadata.name === 'broken') throw new ProviderError('other', 'the catalogue is down')
      return cloud.instanceTypes
    }
    createPool(stage, aKwokPool('broken', { weight: 100 }))
    await stage.pass(2 * seconds)
    waitingPod(stage, 'pod')
    await stage.pass(5 * seconds)
    assert.deepEqual(
      madeClaims(stage).map(({ metadata }) => metadata.labels?.[labels.nodePool]),
      ['default'],
    )
    assert.deepEqual(objectsWithEvent(stage, 'NoCompatibleInstanceTypes'), ['NodePool/broken'])
  })
})

describe('the claim that is made', () => {
  test('SCH-138 it is named after its pool, owned by it and says which template it follows', async (t) => {
    const stage = await openStage(t)
    waitingPod(stage, 'pod')
    await stage.pass(5 * seconds)
    const [claim] = madeClaims(stage)
    const pool = stage.poolNow()
    assert.equal(claim?.metadata.generateName, 'default-')
    assert.match(claim.metadata.name, /^default-.+/)
    assert.deepEqual(claim.metadata.ownerReferences, [
      {
        apiVersion: 'karpenter.sh/v1',
        kind: 'NodePool',
        name: 'default',
        uid: pool?.metadata.uid,
        blockOwnerDeletion: true,
      },
    ])
    assert.equal(claim.metadata.annotations?.['karpenter.sh/nodepool-hash'], pool && nodePoolHash(pool))
    assert.equal(claim.metadata.annotations?.['karpenter.sh/nodepool-hash-version'], 'v3')
    assert.equal(claim.metadata.labels?.[labels.nodePool], 'default')
    assert.equal(claim.metadata.labels?.['karpenter.kwok.sh/kwoknodeclass'], 'default')
    assert.equal(
      await stage.metric('nodeclaims_created_total', {
        reason: 'provisioned',
        nodepool: 'default',
        min_values_relaxed: 'false',
      }),
      1,
    )
  })

  test('SCH-139 a pool that is edited meanwhile does not change it', async (t) => {
    const { stage, cloud } = await openPools(t)
    const before = stage.poolNow()
    cloud.onListTypes = async () => {
      const taints = [{ key: 'late', effect: 'NoSchedule' }]
      stage.patch(karpenterKinds.nodePool, 'default', { spec: { template: { spec: { taints } } } })
      // The edit arrives before the claim is made.
      await stage.world.clock.sleep(500)
      return cloud.instanceTypes
    }
    waitingPod(stage, 'pod')
    await stage.pass(5 * seconds)
    const [claim] = madeClaims(stage)
    assert.ok(claim !== undefined && before !== undefined)
    assert.equal(claim.metadata.annotations?.['karpenter.sh/nodepool-hash'], nodePoolHash(before))
    assert.equal(claim.spec.taints, undefined)
    assert.equal(stage.poolNow()?.spec.template.spec.taints?.length, 1)
  })

  test('SCH-128 a pool that exceeds its limit by now gets no more claims', async (t) => {
    let created = 0
    let stage: Stage | undefined
    const apiPath = intercepting((method, path) => {
      if (method === 'POST' && path.endsWith('/nodeclaims') && ++created === 1)
        stage?.patch(karpenterKinds.nodePool, 'default', { spec: { limits: { cpu: '1' } } })
      return 'pass'
    })
    stage = await openStage(t, { apiPath })
    await stage.ready('full')
    await stage.pod('filler', 'node-full', {
      spec: { containers: [{ name: 'a', image: 'i', resources: { requests: { cpu: '4' } } }] },
    })
    for (let i = 0; i < 60; i++) waitingPod(stage, `pod-${i}`, { cpu: '3' })
    await stage.pass(30 * seconds)
    const made = madeClaims(stage).length
    assert.ok(made > 0 && made < 60, `${made} claims`)
    await stage.pass(30 * seconds)
    assert.equal(madeClaims(stage).length, made)
  })

  test('SCH-147 without capacity the claim goes and the pods try again', async (t) => {
    const stage = await openStage(t)
    let attempts = 0
    stage.cloud.onCreate = () => {
      if (attempts++ === 0) throw new ProviderError('insufficientCapacity', 'sold out')
    }
    waitingPod(stage, 'pod')
    await stage.pass(3 * seconds)
    assert.deepEqual(madeClaims(stage), [])
    // What was sold out is left alone for three minutes.
    await stage.pass(240 * seconds)
    assert.equal(madeClaims(stage).length, 1)
    assert.equal(madeClaims(stage)[0]?.status?.providerID?.startsWith('fake://'), true)
    assert.equal(attempts, 2)
  })
})

test('VER-41 a bound pod whose resize waits is no pending pod and takes the room that it asks for', async (t) => {
  const stage = await openStage(t)
  await stage.ready('a')
  const requests = (cpu: string) => ({ resources: { requests: { cpu } } })
  const containers = [{ name: 'app', image: 'registry.k8s.io/pause', ...requests('2') }]
  await stage.pod('resized', 'node-a', { spec: { containers } })
  const containerStatuses = [{ name: 'app', ready: true, restartCount: 0, ...requests('1') }]
  // From 1.37 on, a scheduler may try such a pod again and again, and say that it fits nowhere.
  const conditions = [
    { type: 'PodResizePending', status: 'True', reason: 'Deferred' },
    { type: 'PodScheduled', status: 'False', reason: 'Unschedulable' },
  ]
  stage.patch(kinds.pod, 'resized', { status: { containerStatuses, conditions } }, 'status', 'default')
  await stage.pass(2 * minutes)
  assert.deepEqual(madeClaims(stage), [])
  waitingPod(stage, 'other', { cpu: '3' })
  await stage.pass(30 * seconds)
  assert.deepEqual([madeClaims(stage).length, stage.isLeaving('resized')], [1, false])
})

describe('VER-26 a pod that needs a feature of the kubelet', () => {
  const containers = [
    {
      name: 'app',
      image: 'registry.k8s.io/pause',
      restartPolicyRules: [{ action: 'RestartAllContainers', exitCodes: { operator: 'In', values: [1] } }],
    },
  ]
  const declares = (stage: Stage, node: string, declaredFeatures: readonly string[]) => {
    stage.patch(kinds.node, node, { status: { declaredFeatures } }, 'status')
  }

  test('is held for the starting node until its kubelet declares features, and gets no second one', async (t) => {
    const { stage, cloud } = await openPools(t)
    cloud.kubeletVersion = () => 'v1.36.3'
    waitingPod(stage, 'restarts', { spec: { containers } })
    await stage.pass(30 * seconds)
    const [claim, ...others] = madeClaims(stage)
    assert.ok(claim !== undefined)
    assert.deepEqual(others, [])
    await stage.join(claim.metadata.name, { name: 'node-a' })
    await stage.pass(2 * minutes)
    assert.equal(madeClaims(stage).length, 1)
    declares(stage, 'node-a', ['RestartAllContainersOnContainerExits'])
    await stage.report('node-a')
    await stage.pass(2 * minutes)
    assert.equal(madeClaims(stage).length, 1)
  })

  test('gets none of kubelets that are not known to have it', async (t) => {
    const { stage, cloud } = await openPools(t)
    cloud.kubeletVersion = () => 'v1.35.0'
    waitingPod(stage, 'restarts', { spec: { containers } })
    await stage.pass(30 * seconds)
    assert.deepEqual(madeClaims(stage), [])
    assert.match(
      stage.events('FailedScheduling').at(-1)?.message ?? '',
      /not known to declare RestartAllContainersOnContainerExits/,
    )
  })
})
