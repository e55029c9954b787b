import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Pod } from '@tenon/api'
import { PodTwins } from './pod-twins.ts'

interface Parts {
  readonly owner?: string
  readonly said?: 'Unschedulable' | 'SchedulerError'
  readonly node?: string
}

function replica(name: string, { owner = 'set', said, node }: Parts = {}): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      uid: name,
      ownerReferences: [
        { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: owner, uid: owner, controller: true },
      ],
    },
    spec: { containers: [{ name: 'app' }], ...(node !== undefined && { nodeName: node }) },
    status:
      said === undefined ? {} : { conditions: [{ type: 'PodScheduled', status: 'False', reason: said }] },
  }
}

const namesOf = (pods: readonly Pod[]) => pods.map(({ metadata }) => metadata.name)

describe('twins of refused pods', () => {
  test('are found in either order, and among the pods of the same controller only', () => {
    const twins = new PodTwins()
    assert.deepEqual(twins.see(replica('early')), [])
    assert.deepEqual(twins.see(replica('stranger', { owner: 'other' })), [])
    assert.deepEqual(namesOf(twins.see(replica('refused', { said: 'Unschedulable' }))), ['early'])
    assert.deepEqual(namesOf(twins.see(replica('late'))), ['late'])
    const known = ['early', 'late', 'refused', 'stranger'].filter((uid) => twins.has(uid))
    assert.deepEqual(known, ['early', 'late'])
  })

  test('are told of once, and stay when the refused one gets its node', () => {
    const twins = new PodTwins()
    twins.see(replica('refused', { said: 'Unschedulable' }))
    twins.see(replica('twin'))
    assert.deepEqual(twins.see(replica('twin')), [])
    twins.see(replica('refused', { said: 'Unschedulable', node: 'node' }))
    twins.see(replica('twin'))
    assert.ok(twins.has('twin'))
  })

  test('are none any more once the scheduler has spoken, they have a node, or are gone', () => {
    const twins = new PodTwins()
    twins.see(replica('refused', { said: 'Unschedulable' }))
    for (const name of ['judged', 'bound', 'gone', 'failed']) twins.see(replica(name))
    twins.see(replica('judged', { said: 'Unschedulable' }))
    twins.see(replica('failed', { said: 'SchedulerError' }))
    twins.see(replica('bound', { node: 'node' }))
    twins.forget(replica('gone'))
    assert.deepEqual(
      ['judged', 'bound', 'gone', 'failed'].filter((uid) => twins.has(uid)),
      [],
    )
  })

  test('come only after a refused pod that has no node yet', () => {
    const twins = new PodTwins()
    twins.see(replica('refused', { said: 'Unschedulable' }))
    twins.see(replica('refused', { said: 'Unschedulable', node: 'node' }))
    assert.deepEqual(twins.see(replica('fresh')), [])
    assert.ok(!twins.has('fresh'))
  })
})
