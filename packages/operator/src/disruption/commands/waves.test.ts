import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod } from '@tenon/api'
import { Waves } from './waves.ts'

/** Pods as the cache shows them, with their controllers' successors. */
class Scene {
  readonly pods: Pod[] = []
  readonly evicted: string[][] = []
  nowMs = 1_000_000
  readonly context = {
    clock: { now: () => this.nowMs, monotonic: () => this.nowMs },
    caches: {
      pods: {
        get: ({ name }: { readonly name: string }) =>
          this.pods.find(({ metadata }) => metadata.name === name),
        byIndex: (_: string, owner: string) =>
          this.pods.filter(({ metadata }) => metadata.ownerReferences?.some(({ uid }) => uid === owner)),
      },
    },
    evictions: {
      add: (pods: readonly Pod[]) => {
        this.evicted.push(pods.map(({ metadata }) => metadata.name))
      },
    },
  }

  pod(name: string, owner: string, nodeName: string, spec: Partial<Pod['spec']> = {}): Pod {
    const reference = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: owner, uid: owner, controller: true }
    const pod: Pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace: 'default', uid: name, ownerReferences: [reference] },
      spec: { containers: [], nodeName, ...spec },
      status: { phase: 'Running' },
    }
    this.pods.push(pod)
    return pod
  }

  remove(name: string): void {
    this.pods.splice(
      this.pods.findIndex(({ metadata }) => metadata.name === name),
      1,
    )
  }

  waves(...waves: readonly (readonly Pod[])[]): Waves {
    return new Waves(this.context, waves)
  }
}

test('a wave waits until the pods of the one before have successors with a node', () => {
  const scene = new Scene()
  const waves = scene.waves([scene.pod('large', 'a', 'one')], [scene.pod('small', 'b', 'one')])
  assert.equal(waves.advance(), false)
  assert.deepEqual(scene.evicted, [['large']])
  scene.remove('large')
  assert.equal(waves.advance(), false)
  scene.pod('large-2', 'a', '')
  assert.equal(waves.advance(), false)
  assert.deepEqual(scene.evicted, [['large']])
  scene.remove('large-2')
  scene.pod('large-2', 'a', 'two')
  assert.equal(waves.advance(), false)
  assert.deepEqual(scene.evicted, [['large'], ['small']])
  scene.remove('small')
  scene.pod('small-2', 'b', 'two')
  assert.equal(waves.advance(), true)
  assert.equal(waves.movedFrom('one'), 2)
})

test('a wave whose pods do not go, or have no successors, is not waited for longer than five seconds', () => {
  const scene = new Scene()
  const waves = scene.waves([scene.pod('held', 'a', 'one')], [scene.pod('small', 'b', 'one')])
  waves.advance()
  scene.nowMs += 4999
  waves.advance()
  assert.deepEqual(scene.evicted, [['held']])
  scene.nowMs += 1
  assert.equal(waves.advance(), false)
  assert.deepEqual(scene.evicted, [['held'], ['small']])
  scene.nowMs += 5000
  assert.equal(waves.advance(), true)
  assert.equal(waves.movedFrom('one'), 0)
})

test('pods that are gone, go already or are critical are left alone', () => {
  const scene = new Scene()
  const gone = scene.pod('gone', 'a', 'one')
  scene.remove('gone')
  const critical = scene.pod('critical', 'a', 'one', { priorityClassName: 'system-cluster-critical' })
  assert.equal(scene.waves([gone, critical], []).advance(), true)
  assert.deepEqual(scene.evicted, [])
})

test('without waves there is nothing to wait for', () => {
  assert.equal(new Scene().waves().advance(), true)
})
