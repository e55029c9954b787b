import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { NodeClaim } from '@tenon/api'
import { type CloudProvider, ProviderError } from '@tenon/provider'
import { VirtualClock } from '@tenon/runtime'
import { measuredProvider } from './measured-provider.ts'
import { Metrics } from '../metrics/metrics.ts'

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
