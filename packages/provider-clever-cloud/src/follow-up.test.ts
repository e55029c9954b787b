import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Condition, karpenterKinds, labels } from '@tenon/api'
import { KubeError } from '@tenon/kube'
import type { OfferingNews } from '@tenon/provider'
import { nodeGroupKind } from './nodegroup/types.ts'
import { type PlatformStatus, statuses } from './testing/fake-platform.test-support.ts'
import { aClaim, Stage } from './testing/stage.test-support.ts'

const condition = (type: string): Condition => ({
  type,
  status: 'True',
  reason: type,
  message: '',
  lastTransitionTime: '2026-01-01T00:00:00Z',
})

/** A stage whose loops run, with the claim `one` launched. */
async function running(...conditions: readonly string[]): Promise<Stage & { readonly news: OfferingNews[] }> {
  const stage = Object.assign(new Stage(), { news: [] as OfferingNews[] })
  stage.provider.onOfferingNews((news) => stage.news.push(news))
  stage.provider.startControllers(new AbortController().signal)
  const claim = aClaim('one')
  const { providerID } = await stage.launch(claim)
  stage.kube.put(karpenterKinds.nodeClaim, {
    ...claim,
    metadata: { ...claim.metadata, labels: { ...claim.metadata.labels, [labels.instanceType]: '2XS' } },
    status: { providerID, conditions: ['Launched', ...conditions].map(condition) },
  })
  return stage
}

const claims = (stage: Stage) => stage.kube.all(karpenterKinds.nodeClaim).map(({ metadata }) => metadata.name)

const late: readonly (readonly [string, PlatformStatus, string, number])[] = [
  ['NodeGroupQuotaExceeded', statuses.overQuota, 'quotaRejections', 6],
  ['NodeGroupRejected', statuses.refused('FlavorRetired'), 'rejections', 1],
]
for (const [event, status, metric, held] of late) {
  test(`a refusal that comes late ends the claim and is told like an early one: ${event}`, async () => {
    const stage = await running()
    stage.platform.write('one', status)
    await stage.clock.advance(5000)
    assert.deepEqual(claims(stage), [])
    assert.deepEqual(stage.events(), [`${event} one`])
    assert.equal(stage.value(metric === 'rejections' ? 'rejections' : 'quotaRejections'), 1)
    const [news] = stage.news
    assert.equal(news?.kind === 'refused' && news.offerings.length, held)
  })
}

test('RPB-25 a NodeGroup that is deleted before its node joined ends its claim at once', async () => {
  const stage = await running()
  await stage.platform.remove('one')
  await stage.clock.advance(1000)
  assert.deepEqual(claims(stage), [])
  assert.deepEqual(stage.events(), ['NodeGroupVanished one'])
  assert.equal(stage.value('vanished'), 1)
  const [news] = stage.news
  assert.equal(news?.kind === 'refused' && news.offerings[0]?.instanceType, '2XS')
})

test('RPB-25 a NodeGroup that the server still has ends no claim, whatever a watch says', async () => {
  const stage = await running()
  const group = stage.platform.group('one') ?? assert.fail('no group')
  const get = stage.kube.get.bind(stage.kube)
  stage.kube.get = async (type, key) =>
    type.plural === nodeGroupKind.plural ? (group as never) : await get(type, key)
  await stage.platform.remove('one')
  await stage.clock.advance(5000)
  assert.deepEqual(claims(stage), ['one'])
  assert.deepEqual(stage.events(), [])
})

test('RPB-25 a NodeGroup that is deleted after its node has registered is left to its Node', async () => {
  const stage = await running('Registered')
  await stage.platform.remove('one')
  await stage.clock.advance(5000)
  assert.deepEqual(claims(stage), ['one'])
})

test('a refusal ends no claim whose node has registered', async () => {
  const stage = await running('Registered')
  stage.platform.write('one', statuses.refused('FlavorRetired'))
  await stage.clock.advance(5000)
  assert.deepEqual(claims(stage), ['one'])
})

test('a refusal that the server does not confirm ends no claim', async () => {
  const stage = await running()
  const get = stage.kube.get.bind(stage.kube)
  stage.kube.get = async (type, key) => {
    const object = await get(type, key)
    return object !== undefined && type.plural === 'nodegroups'
      ? { ...object, status: statuses.ready }
      : object
  }
  stage.platform.write('one', statuses.overQuota)
  await stage.clock.advance(5000)
  assert.deepEqual(claims(stage), ['one'])
})

test('a claim that changes while it is given up is looked at again', async () => {
  const stage = await running()
  const error = new KubeError('conflict', 409, 'changed')
  stage.kube.failures.push({ verb: 'delete', plural: 'nodeclaims', error })
  stage.platform.write('one', statuses.overQuota)
  await stage.clock.advance(500)
  assert.deepEqual(claims(stage), ['one'])
  await stage.clock.advance(2000)
  assert.deepEqual(claims(stage), [])
  assert.equal(stage.value('quotaRejections'), 1)
})

test('CLV-105 a node that is not there after five minutes is told, until it is', async () => {
  const stage = await running()
  await stage.clock.advance(4.9 * 60_000)
  assert.equal(stage.value('syncOverdue'), 0)
  await stage.clock.advance(0.3 * 60_000)
  assert.equal(stage.value('syncOverdue'), 1)
  assert.deepEqual(stage.events(), ['NodeGroupSyncOverdue one'])
  stage.platform.write('one', statuses.ready)
  await stage.clock.advance(1000)
  assert.equal(stage.value('syncOverdue'), 0)
})

test('trouble that the platform has after its acknowledgement is told', async () => {
  const stage = await running()
  stage.platform.write('one', statuses.refused('UpstreamError', 'no hypervisor'))
  await stage.clock.advance(1000)
  assert.deepEqual(stage.events(), ['NodeGroupTransientFailure one'])
  assert.deepEqual(claims(stage), ['one'])
})
