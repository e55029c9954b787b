import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { InstanceType, NodePool } from '@tenon/api'
import { cataloguePage } from './pages.ts'

const instanceTypes = Array.from(
  { length: 200 },
  (_, at): InstanceType => ({
    name: `type-${at}`,
    requirements: [{ key: 'example.com/note', operator: 'In', values: ['x'.repeat(2000)] }],
    capacity: { cpu: 1000 },
    overhead: { kubeReserved: {}, systemReserved: {}, evictionThreshold: {} },
    offerings: [],
  }),
)

function pool(name: string): NodePool {
  const nodeClassRef = { group: 'g', kind: 'K', name: 'default' }
  return {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodePool',
    metadata: { name },
    spec: { template: { spec: { nodeClassRef, requirements: [] } } },
  }
}

test('what is for sale comes in small parts, and what NodePools share comes once', async () => {
  const page = cataloguePage({
    operator: {
      questions: () => ({
        catalogue: () =>
          Promise.resolve([
            { nodePool: pool('a'), instanceTypes },
            { nodePool: pool('b'), instanceTypes: structuredClone(instanceTypes) },
            { nodePool: pool('broken'), instanceTypes: undefined, problem: 'no node class' },
          ]),
      }),
    },
    provider: { currency: () => 'EUR' },
  })
  const { body, status } = await page({ method: 'GET', path: '/debug/catalogue', headers: {} })
  assert.equal(status, 200)
  const parts: string[] = []
  for await (const part of body) parts.push(String(part))
  assert.ok(Math.max(...parts.map(({ length }) => length)) < 50_000)
  assert.deepEqual(JSON.parse(parts.join('')), {
    priceUnit: 'EUR',
    catalogues: [
      { nodePools: ['a', 'b'], instanceTypes: JSON.parse(JSON.stringify(instanceTypes)) as unknown },
      { nodePools: ['broken'], problem: 'no node class' },
    ],
  })
})
