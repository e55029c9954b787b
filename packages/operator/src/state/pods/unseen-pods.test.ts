import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Pod } from '@tenon/api'
import { UnseenPods } from './unseen-pods.ts'

interface Parts {
  readonly owner?: string
  readonly kind?: 'ReplicaSet' | 'StatefulSet' | 'DaemonSet'
  readonly said?: 'Unschedulable' | 'SchedulerError'
  readonly node?: string
  readonly nominated?: string
  readonly scheduler?: string
  readonly gated?: boolean
}

function aPod(name: string, parts: Parts = {}): Pod {
  const { owner = 'set', kind = 'ReplicaSet', said, node, nominated, scheduler, gated = false } = parts
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      uid: name,
      ownerReferences: [{ apiVersion: 'apps/v1', kind, name: owner, uid: owner, controller: true }],
    },
    spec: {
      containers: [{ name: 'app' }],
      ...(node !== undefined && { nodeName: node }),
      ...(scheduler !== undefined && { schedulerName: scheduler }),
      ...(gated && { schedulingGates: [{ name: 'example.com/wait' }] }),
    },
    status: {
      ...(nominated !== undefined && { nominatedNodeName: nominated }),
      ...(said !== undefined && { conditions: [{ type: 'PodScheduled', status: 'False', reason: said }] }),
    },
  }
}

class Cluster {
  readonly pods = new UnseenPods()

  /** @returns names of the pods that are expected to be refused from now on. */
  see(name: string, parts: Parts & { readonly mayPreempt?: boolean } = {}): readonly string[] {
    return this.pods.see(aPod(name, parts), parts.mayPreempt ?? false).map(({ metadata }) => metadata.name)
  }

  expected(...names: readonly string[]): readonly string[] {
    return names.filter((name) => this.pods.isExpected(name))
  }
}

const other = { scheduler: 'somebody-else' } as const

describe('pods of one template', () => {
  test('are expected to be refused in either order, and told of once', () => {
    const cluster = new Cluster()
    assert.deepEqual(cluster.see('early', other), [])
    assert.deepEqual(cluster.see('stranger', { ...other, owner: 'other' }), [])
    assert.deepEqual(cluster.see('refused', { ...other, said: 'Unschedulable' }), ['early'])
    assert.deepEqual(cluster.see('late', other), ['late'])
    assert.deepEqual(cluster.see('late', other), [])
    assert.deepEqual(cluster.expected('early', 'late', 'refused', 'stranger'), ['early', 'late'])
  })

  test('stay so when the refused one gets its node, but no others follow', () => {
    const cluster = new Cluster()
    cluster.see('refused', { ...other, said: 'Unschedulable' })
    cluster.see('twin', other)
    cluster.see('refused', { ...other, said: 'Unschedulable', node: 'node' })
    cluster.see('twin', other)
    assert.deepEqual(cluster.see('fresh', other), [])
    assert.deepEqual(cluster.expected('twin', 'fresh'), ['twin'])
  })

  test('are not, once the scheduler has spoken, they have a node, or are gone', () => {
    const cluster = new Cluster()
    cluster.see('refused', { ...other, said: 'Unschedulable' })
    for (const name of ['judged', 'bound', 'gone', 'failed']) cluster.see(name, other)
    cluster.see('judged', { ...other, said: 'Unschedulable' })
    cluster.see('failed', { ...other, said: 'SchedulerError' })
    cluster.see('bound', { ...other, node: 'node' })
    cluster.pods.forget(aPod('gone', other))
    assert.deepEqual(cluster.expected('judged', 'bound', 'gone', 'failed'), [])
  })

  test('are not, when others make room for the one that was refused', () => {
    const cluster = new Cluster()
    cluster.see('waiting')
    assert.deepEqual(cluster.see('preempting', { said: 'Unschedulable', nominated: 'node' }), [])
  })

  test('of a StatefulSet are not alike', () => {
    const cluster = new Cluster()
    cluster.see('one', { ...other, kind: 'StatefulSet' })
    assert.deepEqual(cluster.see('two', { ...other, kind: 'StatefulSet', said: 'Unschedulable' }), [])
  })
})

describe('pods of a burst', () => {
  test('are expected to be refused with the first of them that was', () => {
    const cluster = new Cluster()
    cluster.see('a', { owner: 'a' })
    assert.deepEqual(cluster.see('b', { owner: 'b', said: 'Unschedulable' }), ['a'])
    assert.deepEqual(cluster.see('c', { owner: 'c' }), ['c'])
  })

  test('are not, when they are gated, have another scheduler or may preempt others', () => {
    const cluster = new Cluster()
    cluster.see('refused', { owner: 'a', said: 'Unschedulable' })
    assert.deepEqual(cluster.see('gated', { owner: 'b', gated: true }), [])
    assert.deepEqual(cluster.see('foreign', { owner: 'b', ...other }), [])
    assert.deepEqual(cluster.see('important', { owner: 'b', mayPreempt: true }), [])
    assert.deepEqual(cluster.see('daemon', { owner: 'b', kind: 'DaemonSet' }), [])
  })

  test('end with the decision: a pod that is refused for ever tells nothing of those to come', () => {
    const cluster = new Cluster()
    cluster.see('stuck', { owner: 'a', said: 'Unschedulable' })
    cluster.see('in-time', { owner: 'b' })
    cluster.pods.decided()
    assert.deepEqual(cluster.see('later', { owner: 'c' }), [])
    assert.deepEqual(cluster.see('stuck', { owner: 'a', said: 'Unschedulable' }), [])
    assert.deepEqual(cluster.see('next', { owner: 'd', said: 'Unschedulable' }), ['later'])
    assert.deepEqual(cluster.expected('in-time', 'later'), ['in-time', 'later'])
  })
})
