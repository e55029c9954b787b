import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { InstanceType, NodeClaim, NodePool } from '@tenon/api'
import { type CloudProvider, ProviderError } from '@tenon/provider'
import { type LogFields, silentLogger, VirtualClock } from '@tenon/runtime'
import { Metrics } from '../metrics/metrics.ts'
import { checkedPrices, measuredProvider } from './provider-layers.ts'

const aType = (name: string, ...prices: readonly number[]): InstanceType => ({
  name,
  requirements: [],
  offerings: prices.map((pricePerHour) => ({ requirements: [], pricePerHour, available: true })),
  capacity: {},
  overhead: { kubeReserved: {}, systemReserved: {}, evictionThreshold: {} },
})

const pool: NodePool = {
  apiVersion: 'karpenter.sh/v1',
  kind: 'NodePool',
  metadata: { name: 'default' },
  spec: {
    template: {
      spec: { nodeClassRef: { group: 'example.com', kind: 'Class', name: 'x' }, requirements: [] },
    },
  },
}

test('RPT-28 what a catalogue says that is no price is not known, and told once', async () => {
  const sound = aType('sound', 0, 0.5, 1e9)
  const broken = aType('broken', 1, Number.NaN, Number.POSITIVE_INFINITY, -1, 2e9)
  const told: LogFields[] = []
  const provider: Pick<CloudProvider, 'getInstanceTypes'> = {
    getInstanceTypes: () => Promise.resolve([sound, broken]),
  }
  const logger = { ...silentLogger, error: (_: string, fields: LogFields = {}) => told.push(fields) }
  const checked = checkedPrices(provider, logger)
  const [first, second] = await checked.getInstanceTypes(pool)
  assert.equal(first, sound)
  assert.deepEqual(
    second?.offerings.map(({ pricePerHour }) => pricePerHour),
    [1, undefined, undefined, undefined, undefined],
  )
  assert.equal((await checked.getInstanceTypes(pool))[1], second)
  assert.deepEqual(
    told.map((fields) => [fields['instance-type'], fields['prices']]),
    [['broken', 'NaN, Infinity, -1, 2000000000']],
  )
})

const claim: NodeClaim = {
  apiVersion: 'karpenter.sh/v1',
  kind: 'NodeClaim',
  metadata: { name: 'claim' },
  spec: { nodeClassRef: { group: 'g', kind: 'K', name: 'n' }, requirements: [] },
}

function aMeasured(failure?: Error) {
  const clock = new VirtualClock()
  const metrics = new Metrics({ clock })
  const cloud = {
    name: 'fake',
    repairPolicies: [],
    delete: () => (failure === undefined ? Promise.resolve() : Promise.reject(failure)),
    startControllers: () => undefined,
  }
  const partial = cloud as object as CloudProvider
  return { metrics, provider: measuredProvider(partial, 'nodeclaim.lifecycle', { metrics, clock }) }
}

const lines = async (metrics: Metrics, name: string) =>
  (await metrics.registry.metrics()).split('\n').filter((line) => line.startsWith(name))

test('a call is measured under its controller, method and provider', async () => {
  const { metrics, provider } = aMeasured()
  await provider.delete(claim)
  assert.deepEqual(await lines(metrics, 'karpenter_cloudprovider_duration_seconds_count'), [
    'karpenter_cloudprovider_duration_seconds_count{controller="nodeclaim.lifecycle",method="Delete",provider="fake"} 1',
  ])
  assert.deepEqual(await lines(metrics, 'karpenter_cloudprovider_errors_total{'), [])
})

test('an error is counted by its kind, and passed on', async () => {
  for (const [kind, name] of [
    ['insufficientCapacity', 'InsufficientCapacityError'],
    ['nodeClaimNotFound', 'NodeClaimNotFoundError'],
    ['nodeClassNotReady', 'NodeClassNotReadyError'],
    ['throttled', ''],
  ] as const) {
    const { metrics, provider } = aMeasured(new ProviderError(kind, 'no'))
    await assert.rejects(provider.delete(claim), ProviderError)
    assert.deepEqual(await lines(metrics, 'karpenter_cloudprovider_errors_total{'), [
      `karpenter_cloudprovider_errors_total{controller="nodeclaim.lifecycle",method="Delete",provider="fake",error="${name}"} 1`,
    ])
  }
})

test('what is no call to the cloud is not measured', async () => {
  const { metrics, provider } = aMeasured()
  provider.startControllers(new AbortController().signal)
  assert.deepEqual(provider.repairPolicies, [])
  assert.deepEqual(await lines(metrics, 'karpenter_cloudprovider_duration_seconds_count'), [])
})
