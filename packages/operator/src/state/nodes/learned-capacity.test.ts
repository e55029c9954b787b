import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type InstanceType, type KubeObject, labels, type Node, parseResources } from '@tenon/api'
import { allocatableOf } from '@tenon/engine'
import { LearnedCapacity, nodeClassSettingsAnnotation } from './learned-capacity.ts'
import { aClaim, aNode, aPool } from './nodes.test-support.ts'
import { ObservedCluster } from '../observed-cluster.test-support.ts'

const day = 24 * 3_600_000

const medium: InstanceType = {
  name: 'medium',
  requirements: [],
  offerings: [],
  capacity: parseResources({ cpu: '4', memory: '8Gi', pods: '110' }),
  overhead: { kubeReserved: { memory: 512 * 2 ** 20 }, systemReserved: {}, evictionThreshold: {} },
}

function nodeClass(spec: object): KubeObject {
  const object = {
    apiVersion: 'karpenter.kwok.sh/v1alpha1',
    kind: 'KWOKNodeClass',
    metadata: { name: 'default' },
    spec,
  }
  return object
}

/** A cluster whose instances are told by name, with what they report. */
function aCluster() {
  const cluster = new ObservedCluster()
  const { state, clock, caches } = cluster
  cluster.see(nodeClass({ reserved: '0' }))
  const learned = new LearnedCapacity(caches, state, clock)
  learned.follow()
  const pool = aPool('default')
  const instance = (
    name: string,
    memory: string | undefined,
    { image = 'one', tags = {}, cpu = '4' }: Sample = {},
  ) => {
    const settings = learned.settingsOf(pool.spec.template.spec.nodeClassRef)
    const claim = aClaim(name, {
      providerID: name,
      metadata: {
        creationTimestamp: new Date(clock.now()).toISOString(),
        annotations: { [nodeClassSettingsAnnotation]: settings },
      },
    })
    cluster.see({ ...claim, status: { ...claim.status, imageID: image } } as KubeObject)
    const capacity = { cpu, pods: '110', ...(memory !== undefined && { memory }) }
    cluster.see(aNode(name, { providerID: name, pool: 'default', capacity, labels: tags }))
  }
  const gone = (name: string) => {
    cluster.miss(aNode(name))
    cluster.miss(aClaim(name))
  }
  /** Memory in MiB that decisions count on, and that of it which is for pods. */
  const memory = (): readonly [number, number] => {
    const [type = medium] = learned.corrected(pool, [medium])
    const { kubeReserved, systemReserved, evictionThreshold } = type.overhead
    const overhead = [kubeReserved, systemReserved, evictionThreshold].reduce(
      (sum, each) => sum + (each['memory'] ?? 0),
      0,
    )
    const capacity = type.capacity['memory'] ?? 0
    return [capacity / 2 ** 20, (capacity - overhead) / 2 ** 20]
  }
  return { cluster, learned, clock, pool, instance, gone, memory }
}

interface Sample {
  readonly image?: string
  readonly cpu?: string
  readonly tags?: Node['metadata']['labels'] & object
}

const nominal = [8192, 7680] as const

describe('what instances really have', () => {
  test('RPT-1 the smallest that was seen counts, and the same types stay the same objects', () => {
    const { learned, instance, memory, pool } = aCluster()
    assert.deepEqual(memory(), nominal)
    instance('a', '7000Mi')
    instance('b', '7100Mi')
    assert.deepEqual(memory(), [7000, 7000])
    assert.equal(learned.corrected(pool, [medium])[0], learned.corrected(pool, [medium])[0])
  })

  test('RPT-1 an instance that has all of it changes nothing', () => {
    const { learned, instance, pool } = aCluster()
    instance('a', '9Gi')
    assert.equal(learned.corrected(pool, [medium])[0], medium)
  })

  test('RPT-1 what is not reported, none at all, or reported before the instance is ready does not count', () => {
    const { instance, memory, learned, pool } = aCluster()
    instance('a', undefined)
    instance('b', '0')
    instance('c', '1Gi', { tags: { [labels.initialized]: '' } })
    instance('d', '1Gi', { tags: { [labels.registered]: '' } })
    assert.deepEqual(memory(), nominal)
    assert.equal(learned.corrected(pool, [medium])[0], medium)
  })

  test('RPT-1 it is remembered for a day after the last such instance has gone', async () => {
    const { clock, gone, instance, memory } = aCluster()
    instance('a', '7000Mi')
    await clock.advance(3 * day)
    assert.deepEqual(memory(), [7000, 7000])
    gone('a')
    await clock.advance(day - 1)
    assert.deepEqual(memory(), [7000, 7000])
    await clock.advance(1)
    assert.deepEqual(memory(), nominal)
  })

  test('RPT-1 instances of a newer image say what there is, and so do other settings of the node class', async () => {
    const { clock, cluster, instance, memory } = aCluster()
    instance('a', '7000Mi')
    await clock.advance(1000)
    instance('b', '7300Mi', { image: 'two' })
    assert.deepEqual(memory(), [7300, 7300])
    cluster.see(nodeClass({ reserved: '1Gi' }))
    assert.deepEqual(memory(), nominal)
    instance('c', '6500Mi', { image: 'two' })
    assert.deepEqual(memory(), [6500, 6500])
  })

  test('RPT-1 an instance that reports more later is believed', () => {
    const { instance, memory } = aCluster()
    instance('a', '7000Mi')
    instance('a', '7600Mi')
    assert.deepEqual(memory(), [7600, 7600])
  })

  test('RPT-1 a move expects of unknown types what the known one most like them has', () => {
    const { learned, instance, pool } = aCluster()
    const types = [
      medium,
      { ...medium, name: 'other' },
      { ...medium, name: 'huge', capacity: parseResources({ cpu: '64', memory: '16896Mi' }) },
    ]
    const memory = () =>
      learned
        .expected(pool, learned.corrected(pool, types), types)
        .map((type) => (allocatableOf(type)['memory'] ?? 0) / 2 ** 20)
    assert.deepEqual(memory(), [7680, 7680, 16_384])
    instance('a', '3840Mi')
    assert.deepEqual(memory(), [3840, 3840, 8192])
    instance('b', '16384Mi', { tags: { [labels.instanceType]: 'huge' }, cpu: '64' })
    assert.deepEqual(memory(), [3840, 3840, 16_384])
    assert.equal(learned.corrected(pool, types)[1], types[1], 'pods that wait are not bound to that')
  })

  test('RPT-1 what an earlier process knew counts until its time is over', async () => {
    const { clock, learned, memory, pool } = aCluster()
    const ref = pool.spec.template.spec.nodeClassRef
    const figures = { capacity: { memory: 7000 * 2 ** 20 }, allocatable: { memory: 6900 * 2 ** 20 } }
    learned.restore(ref, learned.settingsOf(ref), 'medium', {
      ...figures,
      image: 'one',
      launchedMs: clock.now(),
      untilMs: clock.now() + 1000,
    })
    assert.deepEqual(memory(), [7000, 6900])
    await clock.advance(1000)
    assert.deepEqual(memory(), nominal)
  })
})
