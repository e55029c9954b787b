import assert from 'node:assert/strict'
import { test } from 'node:test'
import { aPending, aPool, aSnapshot, aType } from '../testing/clusters.test-support.ts'
import { snapshotLines } from './lines.ts'
import { redacted } from './redact.ts'

test('verdicts on nodes and the journal keep their times and prices, and lose all names', () => {
  const snapshot = redacted(
    {
      ...aSnapshot([aPool('secretpool')], [aType('small', 1)]),
      nodeDecisions: [
        {
          node: 'secretnode',
          nodeClaim: 'secretclaim',
          nodePool: 'secretpool',
          cause: 'pod',
          message: 'A pod is annotated (Pod=shop/secretpod)',
          others: [
            {
              cause: 'budget',
              message: 'No budget is left (NodePool=secretpool)',
              until: '2026-11-27T00:00:00Z',
            },
          ],
          at: '2026-11-26T12:00:00Z',
        },
      ],
      journal: [
        {
          id: 'e',
          at: '2026-11-26T11:00:00Z',
          kind: 'move',
          reason: 'Underutilized',
          message: 'delete: [secretnode]',
          nodePool: 'secretpool',
          nodes: ['secretnode'],
          nodeClaims: ['secretclaim'],
          replacements: ['secretnext'],
          pods: {
            count: 1,
            names: ['shop/secretpod'],
            workloads: [{ namespace: 'secretshop', workload: 'deployment/secretweb', pods: 1 }],
          },
          pricePerHour: { before: 2, after: 1 },
        },
        {
          id: 's',
          at: '2026-11-26T11:00:00Z',
          kind: 'spend',
          reason: 'Spend',
          message: 'secretpool',
          nodes: [],
          nodeClaims: [],
          spend: [
            {
              nodePool: 'secretpool',
              pricePerHour: 1,
              unpriced: 0,
              shares: [
                {
                  namespace: 'secretshop',
                  workload: 'deployment/secretweb',
                  pricePerHour: 1,
                  labels: { secretkey: 'secretteam' },
                },
              ],
            },
          ],
        },
      ],
    },
    'key',
  )
  assert.doesNotMatch([...snapshotLines(snapshot)].slice(-4).join('\n'), /secret/)
  const [entry] = snapshot.journal
  assert.equal(entry?.nodes[0], snapshot.nodeDecisions[0]?.node)
  assert.deepEqual(entry?.pricePerHour, { before: 2, after: 1 })
  assert.equal(snapshot.nodeDecisions[0]?.others?.[0]?.until, '2026-11-27T00:00:00Z')
})

test('ADO-5 what kubectl has applied is not repeated, and annotations that decide are kept', () => {
  const pod = aPending('web', { cpu: '1' })
  const annotations = {
    'kubectl.kubernetes.io/last-applied-configuration': '{"env":[{"name":"TOKEN","value":"planted-token"}]}',
    'karpenter.sh/do-not-disrupt': 'true',
  }
  const planted = { ...pod, metadata: { ...pod.metadata, annotations } }
  const lines = snapshotLines(redacted(aSnapshot([aPool('blue'), planted], [aType('small', 1)]), 'key'))
  const text = [...lines].join('\n')
  assert.ok(!text.includes('planted-token') && !text.includes('last-applied'))
  assert.match(text, /karpenter\.sh\/do-not-disrupt":"true"/)
})
