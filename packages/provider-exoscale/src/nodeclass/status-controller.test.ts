import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { karpenterKinds } from '@tenon/api'
import { KubeError } from '@tenon/kube'
import { clusterId, idOf, templateId } from '../testing/fake-cloud.test-support.ts'
import { aClaim, aNodeClass, aWorld, type World } from '../testing/world.test-support.ts'
import { type ExoscaleNodeClass, type ExoscaleNodeClassSpec, exoscaleNodeClassKind } from './types.ts'

const reconcile = (world: World, name = 'standard') => world.reconcile('exoscale.nodeclass', name)
const current = (world: World) => world.kube.all(exoscaleNodeClassKind)[0]
const condition = (world: World, type: string) =>
  current(world)?.status?.conditions?.find((one) => one.type === type)

function put(world: World, spec?: ExoscaleNodeClassSpec, name = 'standard'): void {
  const { status: _status, ...object } = aNodeClass(spec)
  world.kube.put(exoscaleNodeClassKind, { ...object, metadata: { ...object.metadata, name } })
}

function deleting(world: World): void {
  const object = aNodeClass()
  const metadata = {
    name: 'standard',
    finalizers: ['exoscale.com/nodeclass-finalizer'],
    deletionTimestamp: '2026-01-01T00:00:00Z',
  }
  world.kube.put(exoscaleNodeClassKind, { ...object, metadata })
}

const reasons = (world: World) => world.kube.events.map((event) => event.reason)

describe('node class status', () => {
  it('EXO-15 EXO-16 finalizer first, then four conditions and Ready', async () => {
    const world = aWorld()
    put(world)
    await reconcile(world)
    assert.deepEqual(
      world.kube.writes.map((write) => Object.keys(write.body as object)),
      [['metadata'], ['status']],
    )
    const conditions = current(world)?.status?.conditions ?? []
    assert.deepEqual(
      conditions.map(({ type, status, observedGeneration }) => [type, status, observedGeneration]),
      [
        ['TemplateResolved', 'True', 1],
        ['SecurityGroupsResolved', 'True', 1],
        ['AntiAffinityGroupsResolved', 'True', 1],
        ['PrivateNetworksResolved', 'True', 1],
        ['Ready', 'True', 1],
      ],
    )
    await world.clock.advance(300_000)
    await reconcile(world)
    assert.equal(world.kube.writes.length, 2, 'nothing changed, nothing is written')
  })

  it('EXO-17 EXO-18 every step is tried and says its own', async () => {
    const world = aWorld()
    put(world, {
      templateID: templateId,
      securityGroupSelectorTerms: [{ name: 'nope' }],
      privateNetworkSelectorTerms: [{ name: 'neither' }],
    })
    await reconcile(world)
    assert.equal(condition(world, 'SecurityGroupsResolved')?.reason, 'SecurityGroupResolutionFailed')
    assert.match(condition(world, 'SecurityGroupsResolved')?.message ?? '', /"nope"/)
    assert.match(condition(world, 'PrivateNetworksResolved')?.message ?? '', /"neither"/)
    assert.equal(condition(world, 'TemplateResolved')?.status, 'True')
    assert.deepEqual(
      [condition(world, 'Ready')?.status, condition(world, 'Ready')?.reason],
      ['False', 'ReconcilingFailed'],
    )
  })

  it('EXO-19 a missing template, EXO-20 and no look at one that is not resolved', async () => {
    const world = aWorld()
    put(world, { templateID: '99999999-0000-4000-8000-000000000000' })
    await reconcile(world)
    assert.equal(condition(world, 'TemplateResolved')?.status, 'False')
    const other = aWorld()
    put(other, { imageTemplateSelector: { version: '9.9.9' } })
    await reconcile(other)
    assert.equal(condition(other, 'TemplateResolved')?.status, 'False')
    assert.equal(other.cloud.callsTo('GET', /^\/template/).length, 0)
  })

  it('EXO-12 older ids come before terms, EXO-21 the first of a name is taken, duplicates once', async () => {
    const world = aWorld()
    const [a, b, twin] = ['a', 'b', 'b'].map((name) => world.cloud.addGroup('security-group', name))
    assert.ok(a && b && twin)
    put(world, {
      templateID: templateId,
      securityGroups: [a],
      securityGroupSelectorTerms: [{ name: 'b' }, { id: a }],
    })
    await reconcile(world)
    assert.deepEqual(current(world)?.status?.securityGroups, [a, b])
    assert.ok(world.kube.events.some(({ message }) => message.includes('securityGroupSelectorTerms')))
  })

  it('EXO-22 three classes within a minute share one list', async () => {
    const world = aWorld()
    world.cloud.addGroup('security-group', 'a')
    for (const name of ['one', 'two', 'three']) {
      put(world, { templateID: templateId, securityGroupSelectorTerms: [{ name: 'a' }] }, name)
      await reconcile(world, name)
    }
    assert.equal(world.cloud.callsTo('GET', /^\/security-group$/).length, 1)
  })

  it('EXO-23 a failed list is not remembered, EXO-125 a new group is found at once', async () => {
    const world = aWorld()
    world.cloud.addGroup('security-group', 'a')
    put(world, { templateID: templateId, securityGroupSelectorTerms: [{ name: 'a' }] })
    world.cloud.disturb('GET', /^\/security-group$/, { status: 400 })
    await reconcile(world)
    await reconcile(world)
    assert.equal(condition(world, 'Ready')?.status, 'True')
    world.cloud.addGroup('security-group', 'new')
    put(world, { templateID: templateId, securityGroupSelectorTerms: [{ name: 'new' }] })
    await reconcile(world)
    assert.equal(condition(world, 'Ready')?.status, 'True')
  })

  it('EXO-24 a fixed class is looked at again at once, a group made later within five minutes', async () => {
    const world = aWorld()
    put(world, { templateID: templateId, securityGroupSelectorTerms: [{ name: 'web' }] })
    assert.deepEqual(await reconcile(world), { kind: 'after', delayMs: 300_000 })
    assert.equal(condition(world, 'Ready')?.status, 'False')
    world.cloud.addGroup('security-group', 'web')
    await world.clock.advance(300_000)
    await reconcile(world)
    assert.equal(condition(world, 'Ready')?.status, 'True')

    world.woken('exoscale.nodeclass')
    const object = current(world) as ExoscaleNodeClass
    const metadata = { ...object.metadata, generation: 2 }
    const spec = { templateID: templateId, securityGroupSelectorTerms: [{ name: 'wbe' }] }
    world.kube.put(exoscaleNodeClassKind, { ...object, metadata, spec })
    assert.deepEqual(world.woken('exoscale.nodeclass'), ['standard'])
    await reconcile(world)
    assert.equal(condition(world, 'Ready')?.status, 'False')
    assert.deepEqual(world.woken('exoscale.nodeclass'), [], 'its own status does not wake it')
    const fixed = { ...metadata, generation: 3 }
    world.kube.put(exoscaleNodeClassKind, { ...object, metadata: fixed })
    assert.deepEqual(world.woken('exoscale.nodeclass'), ['standard'])
    await reconcile(world)
    assert.equal(condition(world, 'Ready')?.status, 'True')
  })

  it('EXO-124 a term with a blank id fails its own kind only', async () => {
    const world = aWorld()
    put(world, { templateID: templateId, securityGroupSelectorTerms: [{ id: '' }] })
    await reconcile(world)
    assert.equal(condition(world, 'SecurityGroupsResolved')?.status, 'False')
    assert.equal(condition(world, 'TemplateResolved')?.status, 'True')
  })

  it('EXO-25 a conflict is tried again without an error', async () => {
    const world = aWorld()
    put(world)
    const error = new KubeError('conflict', 409, 'modified')
    world.kube.failures.push({ verb: 'patch', plural: 'exoscalenodeclasses', error })
    assert.deepEqual(await reconcile(world), { kind: 'backoff' })
  })

  it('EXO-11 EXO-126 an unreadable reservation changes Ready alone', async () => {
    const world = aWorld()
    put(world)
    await reconcile(world)
    const object = current(world) as ExoscaleNodeClass
    const spec = { templateID: templateId, kubelet: { kubeReserved: { cpu: '1m5' } } }
    world.kube.put(exoscaleNodeClassKind, { ...object, spec })
    assert.deepEqual(await reconcile(world), { kind: 'after', delayMs: 30_000 })
    assert.equal(condition(world, 'Ready')?.reason, 'ValidationFailed')
    assert.match(condition(world, 'Ready')?.message ?? '', /^Validation failed: kubelet\.kubeReserved\.cpu/)
    assert.equal(condition(world, 'TemplateResolved')?.status, 'True')
    assert.ok(reasons(world).includes('ValidationFailed'))
  })
})

describe('templates', () => {
  it('EXO-31 EXO-33 version of the control plane, or that of the class', async () => {
    const world = aWorld()
    put(world, { imageTemplateSelector: {} })
    await reconcile(world)
    assert.equal(world.cloud.callsTo('GET', /sks-template/)[0]?.path, '/sks-template/1.34.1/standard')
    put(world, { imageTemplateSelector: { version: '1.33.0', variant: 'nvidia' } })
    await reconcile(world)
    assert.equal(world.cloud.callsTo('GET', /sks-template/)[1]?.path, '/sks-template/1.33.0/nvidia')
  })

  it('EXO-32 an unreadable version is an error without a call, EXO-34 as is an id', async () => {
    const world = aWorld()
    world.kube.version = 'invalid'
    put(world, { imageTemplateSelector: {} })
    await reconcile(world)
    assert.match(condition(world, 'TemplateResolved')?.message ?? '', /"invalid"/)
    put(world)
    await reconcile(world)
    assert.equal(world.cloud.callsTo('GET', /sks-template/).length, 0)
  })
})

describe('node class deletion', () => {
  it('EXO-26 an active claim holds it back, EXO-28 one of another group does not', async () => {
    const world = aWorld()
    deleting(world)
    world.kube.put(karpenterKinds.nodeClaim, aClaim())
    assert.deepEqual(await reconcile(world), { kind: 'after', delayMs: 30_000 })
    assert.ok(reasons(world).includes('DeletionBlocked'))
    const nodeClassRef = { group: 'other', kind: 'ExoscaleNodeClass', name: 'standard' }
    world.kube.put(karpenterKinds.nodeClaim, aClaim('pool-abcde', { nodeClassRef }))
    await reconcile(world)
    assert.equal(current(world), undefined)
  })

  it('EXO-27 deleting claims do not hold it back', async () => {
    const world = aWorld()
    deleting(world)
    const claim = aClaim()
    world.kube.put(karpenterKinds.nodeClaim, {
      ...claim,
      metadata: { ...claim.metadata, deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: ['x'] },
    })
    await reconcile(world)
    assert.equal(current(world), undefined)
  })

  it('EXO-29 orphans of this cluster go along, others stay; EXO-30 a failed sweep is told only', async () => {
    const world = aWorld()
    const labels = (cluster: string) => ({
      'exoscale.com/managed-by': 'karpenter',
      'exoscale.com/cluster-id': cluster,
      'exoscale.com/node-claim': 'gone',
    })
    const instance = (id: string, cluster: string) =>
      world.cloud.instances.set(id, { id, state: 'running', labels: labels(cluster), 'private-networks': [] })
    instance(idOf(1), clusterId)
    instance(idOf(2), 'another')
    deleting(world)
    await reconcile(world)
    assert.deepEqual(
      [...world.cloud.instances.values()].map(({ state }) => state),
      ['destroying', 'running'],
    )
    deleting(world)
    world.cloud.disturb('GET', /^\/instance$/, { status: 400 })
    await reconcile(world)
    assert.ok(reasons(world).includes('CleanupFailed'))
    assert.equal(current(world), undefined)
  })

  it('ADO-15 instances of lost claims stay when one of several classes is deleted', async () => {
    const world = aWorld()
    const labels = {
      'exoscale.com/managed-by': 'karpenter',
      'exoscale.com/cluster-id': clusterId,
      'exoscale.com/node-claim': 'lost',
    }
    world.cloud.instances.set(idOf(1), { id: idOf(1), state: 'running', labels, 'private-networks': [] })
    put(world, undefined, 'other')
    deleting(world)
    await reconcile(world)
    assert.deepEqual(
      world.kube.all(exoscaleNodeClassKind).map(({ metadata }) => metadata.name),
      ['other'],
    )
    assert.equal(world.cloud.instances.get(idOf(1))?.state, 'running')
  })
})
