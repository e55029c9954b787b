import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type InstanceType, labels, type NodeClaim, type NodePool } from '@tenon/api'
import { type CloudProvider, type OfferingNews, ProviderError, type ProviderInstance } from '@tenon/provider'
import { Listeners, VirtualClock } from '@tenon/runtime'
import { LaunchGuard } from './launch-guard.ts'

const minute = 60_000

function typeOf(name: string, pricePerHour: number): InstanceType {
  const one = (key: string, value: string) => ({ key, operator: 'In', values: [value] }) as const
  const place = [one(labels.zone, 'z'), one(labels.capacityType, 'on-demand')]
  return {
    name,
    requirements: [one(labels.instanceType, name), ...place],
    offerings: [{ requirements: place, pricePerHour, available: true }],
    capacity: { cpu: 4000 },
    overhead: { kubeReserved: {}, systemReserved: {}, evictionThreshold: {} },
  }
}

const types = [typeOf('small', 1), typeOf('large', 2)]
const claim: NodeClaim = {
  apiVersion: 'karpenter.sh/v1',
  kind: 'NodeClaim',
  metadata: { name: 'one' },
  spec: { nodeClassRef: { group: 'g', kind: 'K', name: 'n' }, requirements: [] },
}
const pool: NodePool = {
  apiVersion: 'karpenter.sh/v1',
  kind: 'NodePool',
  metadata: { name: 'pool' },
  spec: { template: { spec: { nodeClassRef: claim.spec.nodeClassRef, requirements: [] } } },
}
const refOf = (instanceType: string) => ({ instanceType, zone: 'z', capacityType: 'on-demand' })

function guardOf(learns: boolean) {
  const news = new Listeners<OfferingNews>()
  const provider = {
    wellKnownLabels: [],
    onOfferingNews: (listener: (event: OfferingNews) => void) => {
      news.add(listener)
    },
  } satisfies Partial<CloudProvider>
  return { news, guard: new LaunchGuard(provider, new VirtualClock(0), { learns }) }
}

const available = (offered: readonly InstanceType[]): readonly string[] =>
  offered.filter(({ offerings }) => offerings[0]?.available).map(({ name }) => name)

for (const learns of [true, false]) {
  test(`what a provider refuses for a time, decisions leave alone for that time (learns: ${learns})`, () => {
    const { news, guard } = guardOf(learns)
    const offerings = [{ ...refOf('large'), pauseMs: 2 * minute, endsOnRelease: true }]
    news.notify({ kind: 'refused', offerings, because: 'quota' })
    assert.deepEqual(available(guard.usable(types, pool)), ['small'])
    news.notify({ kind: 'released' })
    assert.deepEqual(available(guard.usable(types, pool)), ['small', 'large'])
  })
}

test('without learning, a refusal without a time is forgotten, and each launch asks the cloud once', async () => {
  const { guard } = guardOf(false)
  const offered: (readonly string[])[] = []
  const refuse = (pauseMs?: number) => (some: readonly InstanceType[]) => {
    offered.push(available(some))
    const offerings = [{ ...refOf('small'), ...(pauseMs !== undefined && { pauseMs }) }]
    return Promise.reject<ProviderInstance>(new ProviderError('insufficientCapacity', 'none', { offerings }))
  }
  await assert.rejects(guard.launch(claim, types, refuse()))
  await assert.rejects(guard.launch(claim, types, refuse(minute)))
  await assert.rejects(guard.launch(claim, types, refuse(minute)))
  assert.deepEqual(offered, [['small', 'large'], ['small', 'large'], ['large']])
})

test('what a launch is refused is remembered also when the types were not known at the time', async () => {
  const { guard } = guardOf(true)
  const offerings = [{ ...refOf('large'), pauseMs: 5 * minute }]
  const refused = () => Promise.reject(new ProviderError('insufficientCapacity', 'none', { offerings }))
  await assert.rejects(guard.launch(claim, [], refused))
  assert.deepEqual(available(guard.usable(types, pool)), ['small'])
})
