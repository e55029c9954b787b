import assert from 'node:assert/strict'
import { test } from 'node:test'
import { labels, type Pod } from '@tenon/api'
import { awaitsTwins } from './standing-nominations.ts'

function replica(name: string, app: string, maxSkew?: number): Pod {
  const spread = {
    topologyKey: labels.zone,
    whenUnsatisfiable: 'DoNotSchedule' as const,
    labelSelector: { matchLabels: { app } },
  }
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default', uid: name, labels: { app } },
    spec: {
      containers: [{ name: 'c' }],
      ...(maxSkew !== undefined && { topologySpreadConstraints: [{ ...spread, maxSkew }] }),
    },
  }
}

/** Names of the pods of one node that are not nominated yet. */
function held(...pods: readonly Pod[]): readonly string[] {
  const waiting = {
    plans: {
      get: () => ({ target: { kind: 'claim', name: 'one' } as const, madeMs: 0, steering: 'told' as const }),
      podsOf: () => pods.map(({ metadata }) => metadata.uid ?? ''),
    },
    pods: { unplaced: (uid: string) => pods.find(({ metadata }) => metadata.uid === uid) },
  }
  return pods.filter((pod) => awaitsTwins(waiting, pod)).map(({ metadata }) => metadata.name)
}

test('of pods that spread, as many are nominated for a node at a time as the skew allows', () => {
  assert.deepEqual(held(replica('a', 'x', 1), replica('b', 'x', 1), replica('c', 'x', 1)), ['b', 'c'])
  assert.deepEqual(held(replica('a', 'x', 2), replica('b', 'x', 2), replica('c', 'x', 2)), ['c'])
})

test('pods of other applications, and those that need not spread, do not hold any back', () => {
  assert.deepEqual(held(replica('a', 'x', 1), replica('b', 'y', 1), replica('c', 'z'), replica('d', 'z')), [])
})
