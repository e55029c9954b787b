import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { kinds, type Pod, type PodSpec } from '@tenon/api'
import type { Cache, Change } from '@tenon/kube'
import { PodIndex } from './pod-index.ts'

/** A cache that is told what it holds. */
class PodCache implements Cache<Pod> {
  readonly type = kinds.pod
  readonly isSynced = true
  readonly isListedAgain = false
  readonly isRefused = false
  readonly #pods = new Map<string, Pod>()
  readonly #listeners: ((change: Change<Pod>) => void)[] = []

  get size(): number {
    return this.#pods.size
  }

  get({ name }: { readonly name: string }): Pod | undefined {
    return this.#pods.get(name)
  }

  list(): Pod[] {
    return [...this.#pods.values()]
  }

  addIndex(): void {}

  relist(): void {}

  byIndex(_: string, nodeName: string): Pod[] {
    return this.list().filter((pod) => pod.spec.nodeName === nodeName)
  }

  onChange(listener: (change: Change<Pod>) => void): () => void {
    this.#listeners.push(listener)
    for (const object of this.list()) listener({ kind: 'added', object })
    return () => undefined
  }

  synced(): Promise<void> {
    return Promise.resolve()
  }

  put(object: Pod): void {
    const old = this.#pods.get(object.metadata.name)
    this.#pods.set(object.metadata.name, object)
    this.#tell(old === undefined ? { kind: 'added', object } : { kind: 'updated', object, old })
  }

  remove(name: string): void {
    const object = this.#pods.get(name) as Pod
    this.#pods.delete(name)
    this.#tell({ kind: 'deleted', object })
  }

  #tell(change: Change<Pod>): void {
    for (const listener of this.#listeners) listener(change)
  }
}

function aPod(name: string, spec: Partial<PodSpec> = {}, cpu = '1'): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default', uid: `uid-${name}` },
    spec: { containers: [{ name: 'app', resources: { requests: { cpu } } }], ...spec },
    status: { conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable' }] },
  }
}

const names = (pods: readonly Pod[]) => pods.map((pod) => pod.metadata.name)

describe('the index of pods', () => {
  test('pods wait until they are bound, and are gone when they are deleted', () => {
    const cache = new PodCache()
    cache.put(aPod('before'))
    const index = new PodIndex(cache)
    cache.put(aPod('a'))
    assert.deepEqual([names(index.waiting()), names(index.bound())], [['before', 'a'], []])
    cache.put(aPod('a', { nodeName: 'node' }))
    assert.deepEqual([names(index.waiting()), names(index.bound())], [['before'], ['a']])
    cache.remove('before')
    cache.remove('a')
    assert.deepEqual([index.waitingCount, names(index.bound())], [0, []])
  })

  test('what a node holds follows every change to its pods', () => {
    const cache = new PodCache()
    const index = new PodIndex(cache)
    const cpu = () => ['one', 'two'].map((node) => index.useOf(node).requests['cpu'] ?? 0)
    assert.deepEqual(cpu(), [0, 0])
    cache.put(aPod('a', { nodeName: 'one' }))
    cache.put(aPod('b', { nodeName: 'one' }, '500m'))
    assert.deepEqual(cpu(), [1500, 0])
    cache.put(aPod('a', { nodeName: 'one' }, '2'))
    assert.deepEqual(cpu(), [2500, 0])
    cache.put({ ...aPod('b', { nodeName: 'one' }, '500m'), status: { phase: 'Succeeded' } })
    assert.deepEqual(cpu(), [2000, 0])
    cache.put(aPod('a', { nodeName: 'two' }))
    assert.deepEqual(cpu(), [0, 1000])
    cache.remove('a')
    assert.deepEqual(cpu(), [0, 0])
  })

  test('a change that says only how a pod fares leaves what its node holds as it is', () => {
    const cache = new PodCache()
    const index = new PodIndex(cache)
    const pod = aPod('a', { nodeName: 'one' })
    const running = { ...pod, status: { phase: 'Running', conditions: [] } } as const
    cache.put(pod)
    const before = index.useOf('one')
    cache.put(running)
    assert.equal(index.useOf('one'), before)
    const resized = { name: 'main', allocatedResources: { cpu: '3' }, resources: { requests: { cpu: '3' } } }
    const { name = '' } = pod.spec.containers[0] ?? {}
    cache.put({ ...pod, status: { ...running.status, containerStatuses: [{ ...resized, name }] } })
    assert.equal(index.useOf('one').requests['cpu'], 3000)
    cache.put(running)
    assert.deepEqual(index.useOf('one'), before)
    cache.put({ ...pod, status: { ...running.status, phase: 'Failed' } })
    assert.equal(index.useOf('one').requests['cpu'], undefined)
  })

  test('a pod whose status comes to be misshapen cannot be read from then on', () => {
    const cache = new PodCache()
    const index = new PodIndex(cache)
    const pod = aPod('a', { nodeName: 'one' })
    const statuses: readonly unknown[] = [
      { phase: 'Running', conditions: {} },
      { phase: 'Running', conditions: [null] },
      { phase: 'Running', conditions: [{ status: 'True' }] },
      { phase: 'Running', containerStatuses: [{}] },
      'Running',
      [],
    ]
    for (const status of statuses) {
      cache.put({ ...pod, status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] } })
      assert.deepEqual(names(index.bound()), ['a'])
      cache.put({ ...pod, status: status as Pod['status'] & object })
      assert.deepEqual(names(index.bound()), [], JSON.stringify(status))
    }
  })

  test('a pod that cannot be read waits while it has no node, and counts nothing on one', () => {
    const cache = new PodCache()
    const index = new PodIndex(cache)
    const broken = { containers: null as never }
    cache.put(aPod('a', broken))
    assert.deepEqual(names(index.waiting()), ['a'])
    cache.put(aPod('a', { ...broken, nodeName: 'one' }))
    cache.put(aPod('b', { nodeName: 'one' }))
    assert.deepEqual([names(index.waiting()), names(index.bound())], [[], ['b']])
    assert.equal(index.useOf('one').requests['cpu'], 1000)
  })
})
