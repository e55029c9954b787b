import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { karpenterKinds, type NodeClaim } from '@tenon/api'
import { isProviderError, type OfferingNews, type ProviderErrorKind } from '@tenon/provider'
import { ownNames, platformLabels } from './names.ts'
import { cleverNodeClassKind } from './nodeclass/types.ts'
import { type NodeGroup, nodeGroupKind } from './nodegroup/types.ts'
import { statuses } from './testing/fake-platform.test-support.ts'
import { aClaim, aNodeClass, pool, Stage } from './testing/stage.test-support.ts'

async function kindOf(stage: Stage, work: Promise<unknown>): Promise<ProviderErrorKind | undefined> {
  try {
    await stage.settled(work)
    return undefined
  } catch (error) {
    return isProviderError(error) ? error.kind : assert.fail(String(error))
  }
}

/** A group of a user, or one with a flavor that is not sold. */
function put(
  stage: Stage,
  name: string,
  flavor: string,
  labels: Readonly<Record<string, string>> = {},
): void {
  const metadata = { name, labels, finalizers: ['api.clever-cloud.com/nodes'] }
  const spec = { flavor, nodeCount: 1 }
  stage.kube.put(nodeGroupKind, { apiVersion: 'api.clever-cloud.com/v1', kind: 'NodeGroup', metadata, spec })
}

const managed = { [ownNames.managed]: 'true' }

async function launched(stage: Stage, name = 'one'): Promise<NodeClaim> {
  const claim = aClaim(name)
  const { providerID } = await stage.launch(claim)
  return stage.kube.put(karpenterKinds.nodeClaim, { ...claim, status: { providerID } })
}

describe('deletion', () => {
  test('CLV-25 without a provider ID the group goes that is called like the claim', async () => {
    const stage = new Stage()
    const { status: _none, ...claim } = await launched(stage)
    assert.equal(await kindOf(stage, stage.provider.delete(claim)), undefined)
    assert.notEqual(stage.platform.group('one')?.metadata.deletionTimestamp, undefined)
  })

  test('CLV-26 of a group that does not exist', async () => {
    const stage = new Stage()
    assert.equal(await kindOf(stage, stage.provider.delete(aClaim('one'))), 'nodeClaimNotFound')
  })

  test('CLV-27 a group without the label is never deleted', async () => {
    const stage = new Stage()
    put(stage, 'theirs', 'S')
    const claim = { ...aClaim('one'), status: { providerID: 'clevercloud://theirs' } }
    assert.equal(await kindOf(stage, stage.provider.delete(claim)), 'other')
    assert.equal(stage.platform.group('theirs')?.metadata.deletionTimestamp, undefined)
  })

  test('a labelled group of another claim is never deleted', async () => {
    const stage = new Stage()
    await launched(stage, 'two')
    const claim = { ...aClaim('one'), status: { providerID: 'clevercloud://two' } }
    assert.equal(await kindOf(stage, stage.provider.delete(claim)), 'nodeClaimNotFound')
    assert.equal(stage.platform.group('two')?.metadata.deletionTimestamp, undefined)
  })

  test('CLV-28 CLV-29 a group that is going: nothing is written, and no instance is left', async () => {
    const stage = new Stage()
    const claim = await launched(stage)
    await stage.settled(stage.provider.delete(claim))
    const writes = stage.kube.writes.length
    assert.equal(await kindOf(stage, stage.provider.delete(claim)), undefined)
    assert.equal(stage.kube.writes.length, writes)
    assert.equal(await kindOf(stage, stage.provider.get('clevercloud://one')), 'nodeClaimNotFound')
    const [listed] = await stage.settled(stage.provider.list())
    assert.equal(listed?.deleting, true)
  })

  test('capacity that is given back is told; that of a refused group was none', async () => {
    const stage = new Stage()
    const news: OfferingNews['kind'][] = []
    stage.provider.onOfferingNews(({ kind }) => news.push(kind))
    const claim = await launched(stage)
    stage.platform.write('one', statuses.overQuota)
    await stage.settled(stage.provider.delete(claim))
    assert.deepEqual(news, [])
    await stage.settled(stage.provider.delete(await launched(stage, 'two')))
    assert.deepEqual(news, ['released'])
  })
})

describe('reading', () => {
  test('CLV-30 a group without the label is not an instance', async () => {
    const stage = new Stage()
    put(stage, 'theirs', 'S')
    assert.equal(await kindOf(stage, stage.provider.get('clevercloud://theirs')), 'nodeClaimNotFound')
  })

  test('CLV-31 what is not a provider ID of this provider', async () => {
    const stage = new Stage()
    for (const id of ['aws:///x', '', 'clevercloud://'])
      assert.equal(await kindOf(stage, stage.provider.get(id)), 'other', id)
  })

  test('CLV-32 groups of users are not listed', async () => {
    const stage = new Stage()
    put(stage, 'theirs', 'S')
    put(stage, 'nearly', 'S', { [ownNames.managed]: 'True' })
    assert.deepEqual(await stage.settled(stage.provider.list()), [])
  })

  test('a group is said to be of the claim that its labels name when its owner references agree', async () => {
    const stage = new Stage()
    await launched(stage)
    put(stage, 'theirs', 'S', { ...managed, [ownNames.nodeClaim]: 'two' })
    const instances = await stage.settled(stage.provider.list())
    assert.deepEqual(
      instances.map(({ providerID, nodeClaimName }) => [providerID, nodeClaimName]),
      [
        ['clevercloud://one', 'one'],
        ['clevercloud://theirs', undefined],
      ],
    )
  })

  test('CLV-33 CLV-34 a flavor that is not sold is listed, with what is known of it', async () => {
    const stage = new Stage()
    put(stage, 'custom', 'CUSTOM', managed)
    put(stage, 'medium', 'M', managed)
    const instances = await stage.settled(stage.provider.list())
    assert.deepEqual(
      instances.map(({ labels }) => labels[platformLabels.flavor]),
      ['CUSTOM', 'M'],
    )
    assert.deepEqual(
      Object.values(instances[0]?.allocatable ?? {}).filter((amount) => amount.startsWith('-')),
      [],
    )
    assert.equal(stage.value('unknownFlavors'), 1)
  })

  test('CLV-37 a group of a flavor that is not sold can be deleted', async () => {
    const stage = new Stage()
    put(stage, 'one', 'CUSTOM', { ...managed, [ownNames.nodeClaim]: 'one' })
    const claim = { ...aClaim('one'), status: { providerID: 'clevercloud://one' } }
    assert.equal(await kindOf(stage, stage.provider.delete(claim)), undefined)
    assert.notEqual(stage.platform.group('one')?.metadata.deletionTimestamp, undefined)
  })

  test('a group whose content is not of the form of a NodeGroup stops nothing', async () => {
    const stage = new Stage()
    put(stage, 'odd', 'S', managed)
    const group = stage.platform.group('odd') ?? assert.fail()
    const odd = JSON.parse('{"spec":null,"status":{"conditions":"none"}}') as Pick<
      NodeGroup,
      'spec' | 'status'
    >
    stage.kube.put(nodeGroupKind, { ...group, ...odd })
    put(stage, 'medium', 'M', managed)
    assert.equal((await stage.settled(stage.provider.list())).length, 2)
  })
})

describe('drift', () => {
  test('CLV-43 a node drifts when the labels of its class change', async () => {
    const stage = new Stage()
    const claim = await launched(stage)
    assert.equal(await stage.settled(stage.provider.isDrifted(claim)), undefined)
    stage.kube.put(cleverNodeClassKind, aNodeClass({ spec: { labels: { team: 'data' } } }))
    assert.equal(await stage.settled(stage.provider.isDrifted(claim)), 'NodeClassDrifted')
  })

  test('CLV-44 no hash, or one of another generation, is no drift', async () => {
    const stage = new Stage()
    const claim = await launched(stage)
    for (const annotations of [undefined, {}, { [ownNames.hash]: '1', [ownNames.hashVersion]: 'v2' }]) {
      const group = stage.platform.group('one') ?? assert.fail()
      const { annotations: _old, ...metadata } = group.metadata
      stage.kube.put(nodeGroupKind, {
        ...group,
        metadata: { ...metadata, ...(annotations && { annotations }) },
      })
      assert.equal(await stage.settled(stage.provider.isDrifted(claim)), undefined)
    }
  })

  test('CLV-45 no group, no class, no provider ID: no drift and no error', async () => {
    const stage = new Stage()
    const claim = await launched(stage)
    const { status: _none, ...bare } = claim
    assert.equal(await stage.settled(stage.provider.isDrifted(bare)), undefined)
    await stage.kube.delete(cleverNodeClassKind, { name: 'default' })
    assert.equal(await stage.settled(stage.provider.isDrifted(claim)), undefined)
    stage.kube.put(cleverNodeClassKind, aNodeClass({ spec: { labels: { team: 'data' } } }))
    await stage.platform.remove('one')
    assert.equal(await stage.settled(stage.provider.isDrifted(claim)), undefined)
  })
})

test('CLV-82 every metric is there from the start', () => {
  const stage = new Stage()
  assert.deepEqual(
    stage.provider.metrics.map(({ name }) => name).toSorted(),
    [
      'gc_reaped_nodegroups_total',
      'gc_refused_nodegroups',
      'instancetype_flavors_config_invalid',
      'instancetype_observed_capacity_rejections_total',
      'instancetype_unknown_flavor_lookups_total',
      'nodegroup_acceptance_timeouts_total',
      'nodegroup_external_resizes',
      'nodegroup_quota_rejections_total',
      'nodegroup_rejections_total',
      'nodegroup_sync_overdue',
      'nodegroup_vanished_total',
    ].map((name) => `karpenter_clevercloud_${name}`),
  )
  for (const metric of stage.provider.metrics) assert.equal(metric.value(), 0, metric.name)
})

test('pods are planned with the labels that the class gives its nodes', () => {
  const stage = new Stage()
  const labels = { team: 'data', 'kubernetes.io/x': 'no' }
  stage.kube.put(cleverNodeClassKind, aNodeClass({ spec: { labels } }))
  assert.deepEqual(stage.provider.nodeDefaults(pool), { labels: { team: 'data' }, taints: [] })
})
