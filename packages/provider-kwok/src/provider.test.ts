import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kinds, labels, type Node, type NodeClaim } from '@tenon/api'
import { MemoryKube } from '@tenon/provider/contract-suite'
import { type LogFields, type Logger, SeededRandom, silentLogger, VirtualClock } from '@tenon/runtime'
import { kwokNodeClassKind } from './nodeclass.ts'
import { type KwokDependencies, KwokProvider } from './provider.ts'

function open({
  logger = silentLogger,
  ...options
}: Partial<KwokDependencies> & { readonly logger?: Logger } = {}) {
  const clock = new VirtualClock()
  const client = new MemoryKube(clock)
  const annotate = (annotations: Readonly<Record<string, string>>) =>
    client.put(kwokNodeClassKind, {
      apiVersion: 'karpenter.kwok.sh/v1alpha1',
      kind: 'KWOKNodeClass',
      metadata: { name: 'default', annotations },
    })
  annotate({})
  const nodeClasses = client.cache(kwokNodeClassKind)
  const random = new SeededRandom(1)
  const deps = { client, nodeClasses, runtime: { clock, random, logger }, ...options }
  return { clock, client, annotate, provider: new KwokProvider(deps) }
}

const claim: NodeClaim = {
  apiVersion: 'karpenter.sh/v1',
  kind: 'NodeClaim',
  metadata: { name: 'one' },
  spec: {
    nodeClassRef: { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'default' },
    requirements: [{ key: labels.instanceType, operator: 'In', values: ['c-1x-amd64-linux'] }],
  },
}

test('OPS-78 a node is no instance any more as soon as its deletion is stamped', async () => {
  const { client, provider } = open()
  const { providerID } = await provider.create(claim)
  const node = client.all(kinds.node)[0] as Node
  assert.equal((await provider.get(providerID)).providerID, providerID)
  client.put(kinds.node, {
    ...node,
    metadata: { ...node.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' },
  })
  await assert.rejects(provider.get(providerID), { kind: 'nodeClaimNotFound' })
  assert.deepEqual(
    (await provider.list()).map((each) => [each.providerID, each.deleting]),
    [[providerID, true]],
  )
})

test('a deletion says at once that the instance has ended', async () => {
  const { provider } = open()
  const { providerID } = await provider.create(claim)
  await assert.rejects(provider.delete({ ...claim, status: { providerID } }), { kind: 'nodeClaimNotFound' })
})

test('nodes that are not ready are to be repaired after ten minutes', () => {
  const { provider } = open()
  assert.deepEqual(
    provider.repairPolicies.map(
      (policy) => `${policy.conditionType}=${policy.conditionStatus} ${policy.tolerationMs}`,
    ),
    ['Ready=False 600000', 'Ready=Unknown 600000'],
  )
})

test('offerings that cost the same are taken by chance', async () => {
  const zones = new Set<string | undefined>()
  const { provider } = open()
  for (let index = 0; index < 20; index++) {
    const { labels: listed } = await provider.create({ ...claim, metadata: { name: `c${index}` } })
    zones.add(listed[labels.zone])
  }
  assert.equal(zones.size, 4)
})

test('an instance that ends slowly is told as going away until it is gone', async () => {
  const { clock, client, annotate, provider } = open()
  const { providerID } = await provider.create(claim)
  const launched = { ...claim, status: { providerID } }
  annotate({ 'simulation.karpenter.kwok.sh/termination-delay': '1m' })
  await provider.delete(launched)
  assert.equal((await provider.get(providerID)).deleting, true)
  await clock.advance(59_000)
  await provider.delete(launched)
  assert.equal(client.all(kinds.node).length, 1)
  await clock.advance(1000)
  await assert.rejects(provider.delete(launched), { kind: 'nodeClaimNotFound' })
  assert.equal(client.all(kinds.node).length, 0)
})

test('throttled calls tell when to come again', async () => {
  const { clock, annotate, provider } = open()
  annotate({ 'simulation.karpenter.kwok.sh/rate-limit': '0.5' })
  await provider.create(claim)
  const another = { ...claim, metadata: { name: 'two' } }
  await assert.rejects(provider.create(another), { kind: 'throttled', retryAfterMs: 2000 })
  await clock.advance(2000)
  await provider.create(another)
})

test('an annotation that cannot be read is told once, and what to give', async () => {
  const errors: unknown[] = []
  const logger: Logger = {
    ...silentLogger,
    error: (_: string, fields?: LogFields) => {
      errors.push(fields?.['error'])
    },
  }
  const { annotate, provider } = open({ logger })
  annotate({
    'simulation.karpenter.kwok.sh/capacity-errors': 'often',
    'simulation.karpenter.kwok.sh/outages': 'zone:test-zone-a',
    'simulation.karpenter.kwok.sh/prices': 'all',
    'simulation.karpenter.kwok.sh/termination-delay': 'long',
    'simulation.karpenter.kwok.sh/rate-limit': '-1',
    'simulation.karpenter.kwok.sh/weather': 'rain',
    'example.com/other': 'text',
  })
  await provider.create(claim)
  await provider.create({ ...claim, metadata: { name: 'two' } })
  assert.equal(errors.length, 6)
  assert.match(
    String(errors[0]),
    /^KWOKNodeClass default: annotation simulation\.karpenter\.kwok\.sh\/capacity-errors: "often" is invalid; use a share/,
  )
  assert.match(String(errors[5]), /weather is unknown; known are capacity-errors, outages/)
})
