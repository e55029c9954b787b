import assert from 'node:assert/strict'
import { test } from 'node:test'
import { labels, type NodeClaim } from '@tenon/api'
import { rfc3339 } from '@tenon/runtime'
import { joined } from '../state/nodes/state-node.ts'
import { openZone } from './zone-order.ts'

const hour = 3_600_000
const startMs = Date.parse('2026-01-01T00:00:00Z')

interface Parts {
  readonly conditions?: readonly string[]
  readonly replaces?: string
  readonly atMs?: number
}

function claim(name: string, zone: string, { conditions = ['Initialized'], replaces, atMs = 0 }: Parts = {}) {
  const lastTransitionTime = rfc3339(startMs)
  const object: NodeClaim = {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodeClaim',
    metadata: {
      name,
      creationTimestamp: rfc3339(startMs + atMs),
      labels: { [labels.nodePool]: 'pool', [labels.zone]: zone },
      annotations: replaces === undefined ? {} : { 'tenon.sh/replaces': replaces },
    },
    spec: { nodeClassRef: { group: 'g', kind: 'K', name: 'n' }, requirements: [] },
    status: {
      conditions: conditions.map((type) => ({
        type,
        status: 'True',
        reason: type,
        message: '',
        lastTransitionTime,
      })),
    },
  }
  return joined(undefined, object, `fake://${name}`, false)
}

const drifted = { conditions: ['Initialized', 'Drifted'] }
const leaving = { conditions: ['Initialized', 'Drifted', 'DisruptionReason'] }

test('WNT-35 the zone of work under way is the only one open', () => {
  const nodes = [claim('a', 'zone-a', drifted), claim('b', 'zone-b', leaving)]
  for (const atMs of [0, hour, 7 * hour]) assert.equal(openZone(nodes, 'pool', startMs + atMs), 'zone-b')
})

test('WNT-35 a replacement that is not initialized keeps the zone of the replaced node open', () => {
  const nodes = [
    claim('a', 'zone-a', drifted),
    claim('b', 'zone-b', drifted),
    claim('next', 'zone-a', { conditions: [], replaces: 'b' }),
  ]
  assert.equal(openZone(nodes, 'pool', startMs), 'zone-b')
})

test('WNT-35 a zone is finished before the next begins', () => {
  const done = claim('new', 'zone-b', { replaces: 'old', atMs: 0 })
  const left = [claim('a', 'zone-a', drifted), claim('b', 'zone-b', drifted)]
  for (const minutes of [1, 9, 19, 29])
    assert.equal(openZone([done, ...left], 'pool', startMs + minutes * 60_000), 'zone-b')
  const finished = [done, claim('a', 'zone-a', drifted), claim('b', 'zone-b')]
  assert.equal(openZone(finished, 'pool', startMs + 60_000), 'zone-a')
})

test('WNT-35 zones whose nodes cannot go take turns with the others', () => {
  const nodes = ['a', 'b', 'c'].map((name) => claim(name, `zone-${name}`, drifted))
  const turns = [0, 10, 20].map((minutes) => openZone(nodes, 'pool', startMs + minutes * 60_000))
  assert.deepEqual(new Set(turns), new Set(['zone-a', 'zone-b', 'zone-c']))
})

test('WNT-35 where work has begun in two zones, none is open', () => {
  const nodes = [claim('a', 'zone-a', leaving), claim('b', 'zone-b', leaving)]
  assert.equal(openZone(nodes, 'pool', startMs), undefined)
})
