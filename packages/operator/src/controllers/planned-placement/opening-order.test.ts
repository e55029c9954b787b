import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Node, NodeClaim, Pod } from '@tenon/api'
import { nodesWithoutRoom } from './opening-order.ts'

interface Planned {
  readonly cpu: string
  /** CPU of each pod that waits for the node. */
  readonly pods: readonly string[]
}

function openedFirst(batch: Readonly<Record<string, Planned>>): readonly string[] {
  const claims = Object.keys(batch).map(
    (name): NodeClaim => ({
      apiVersion: 'karpenter.sh/v1',
      kind: 'NodeClaim',
      metadata: { name },
      spec: { requirements: [], nodeClassRef: { group: 'g', kind: 'K', name: 'n' } },
    }),
  )
  const nodes = new Map(
    Object.entries(batch).map(([name, { cpu }]): [string, Node] => [
      name,
      { apiVersion: 'v1', kind: 'Node', metadata: { name }, status: { allocatable: { cpu, pods: '110' } } },
    ]),
  )
  const pods = new Map(
    Object.entries(batch).flatMap(([name, planned]) =>
      planned.pods.map((cpu, i): [string, Pod] => [
        `${name}/${i}`,
        {
          apiVersion: 'v1',
          kind: 'Pod',
          metadata: { name: `${name}-${i}` },
          spec: { containers: [{ name: 'c', resources: { requests: { cpu } } }] },
        },
      ]),
    ),
  )
  const first = nodesWithoutRoom(
    {
      plans: {
        podsOf: (target: { readonly name: string }) =>
          [...pods.keys()].filter((uid) => uid.startsWith(`${target.name}/`)),
      },
      pods: { unplaced: (uid: string) => pods.get(uid) },
      nodeOf: (claim: NodeClaim) => nodes.get(claim.metadata.name),
    },
    {
      nodeClaims: {
        get: ({ name }: { readonly name: string }) => claims.find((c) => c.metadata.name === name),
      },
    },
    new Set(Object.keys(batch)),
  )
  return [...first]
}

test('a node that its own pods fill opens before one where a pod of another would fit', () => {
  const batch = { full: { cpu: '4', pods: ['2', '2'] }, roomy: { cpu: '4', pods: ['1'] } }
  assert.deepEqual(openedFirst(batch), ['full'])
})

test('room that no pod of another node fits into does not count', () => {
  const batch = { small: { cpu: '2', pods: ['1500m'] }, large: { cpu: '8', pods: ['3', '3'] } }
  assert.deepEqual(openedFirst(batch), ['small'])
})

test('pods of the same size on one node alone do not hold it back', () => {
  assert.deepEqual(openedFirst({ only: { cpu: '8', pods: ['1', '1'] } }), ['only'])
})

test('a claim whose Node is not there any more is not waited for as one with room', () => {
  const first = openedFirst({ gone: { cpu: '0', pods: [] }, other: { cpu: '4', pods: ['1'] } })
  assert.deepEqual(first, ['gone', 'other'])
})
