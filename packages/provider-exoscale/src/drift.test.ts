import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { karpenterKinds, type NodeClaim } from '@tenon/api'
import { exoscaleNodeClassKind, type ExoscaleNodeClass } from './nodeclass/types.ts'
import { aClaim, aNodeClass, aWorld, type World } from './testing/world.test-support.ts'
import { idOf, templateId } from './testing/fake-cloud.test-support.ts'

const [a, b, c] = [idOf(1), idOf(2), idOf(3)]
const otherTemplate = '20000000-0000-4000-8000-000000000002'

interface Scene {
  readonly world: World
  readonly drift: () => Promise<string | undefined>
  readonly instance: () => NonNullable<ReturnType<World['cloud']['instances']['get']>>
  readonly change: (spec?: ExoscaleNodeClass['spec'], status?: ExoscaleNodeClass['status']) => void
}

/** `isTakenOver`: the claim was made by another installation and lacks our annotations. */
async function scene(status: ExoscaleNodeClass['status'] = {}, isTakenOver = false): Promise<Scene> {
  const world = aWorld()
  world.kube.put(exoscaleNodeClassKind, aNodeClass(undefined, status))
  const instance = await world.settle(world.provider.create(aClaim()))
  const base = aClaim()
  world.kube.put(karpenterKinds.nodeClaim, {
    ...base,
    metadata: { ...base.metadata, ...(!isTakenOver && { annotations: instance.annotations ?? {} }) },
    status: { providerID: instance.providerID, imageID: templateId },
  })
  return {
    world,
    drift: () =>
      world.settle(world.provider.isDrifted(world.kube.all(karpenterKinds.nodeClaim)[0] as NodeClaim)),
    instance: () => [...world.cloud.instances.values()][0] as never,
    change: (spec, next) => world.kube.put(exoscaleNodeClassKind, aNodeClass(spec, next ?? status)),
  }
}

describe('drift', () => {
  it('EXO-89 another image comes first', async () => {
    const { drift, instance, change } = await scene()
    Object.assign(instance(), { template: { id: otherTemplate } })
    change(undefined, { securityGroups: ['x'] })
    assert.equal(await drift(), 'ImageID')
  })

  it('EXO-90 the order of groups does not matter, EXO-91 an added group does', async () => {
    const { world, drift, change } = await scene({ securityGroups: [a, b] })
    change(undefined, { securityGroups: [b, a, a] })
    assert.equal(await drift(), undefined)
    change(undefined, { securityGroups: [a, b, c] })
    assert.equal(await drift(), 'SecurityGroups')
    assert.ok(world.kube.events.some((event) => event.reason === 'DriftDetected'))
  })

  it('groups the cloud adds on its own are no drift', async () => {
    const { drift, instance } = await scene()
    Object.assign(instance(), { 'security-groups': [{ id: a }] })
    assert.equal(await drift(), undefined)
  })

  it('EXO-92 a network detached by hand', async () => {
    const world = aWorld()
    const network = world.cloud.addGroup('private-network', 'n')
    world.kube.put(exoscaleNodeClassKind, aNodeClass(undefined, { privateNetworks: [network] }))
    const { providerID } = await world.settle(world.provider.create(aClaim()))
    for (const instance of world.cloud.instances.values()) instance['private-networks'] = []
    const claim = { ...aClaim(), status: { providerID } }
    assert.equal(await world.settle(world.provider.isDrifted(claim)), 'PrivateNetworks')
  })

  it('EXO-93 a missing label is repaired and others are kept', async () => {
    const { drift, instance } = await scene()
    instance().labels = { ...instance().labels, team: 'web' }
    delete instance().labels['exoscale.com/nodepool-name']
    assert.equal(await drift(), undefined)
    assert.equal(instance().labels['exoscale.com/nodepool-name'], 'pool')
    assert.equal(instance().labels.team, 'web')
  })

  it('extra labels alone cause no write', async () => {
    const { world, drift, instance } = await scene()
    instance().labels = { ...instance().labels, team: 'web' }
    await drift()
    assert.equal(world.cloud.callsTo('PUT', /./).length, 0)
  })

  it('EXO-94 a class that resolves to another template now', async () => {
    const { drift, change } = await scene()
    change({ templateID: otherTemplate })
    assert.equal(await drift(), 'ImageID')
  })

  const settings: readonly [string, ExoscaleNodeClass['spec']][] = [
    ['disk', { diskSize: 60 }],
    ['cluster DNS', { kubelet: { clusterDNS: ['10.96.0.53'] } }],
    ['upper image threshold', { kubelet: { imageGCHighThresholdPercent: 90 } }],
    ['lower image threshold', { kubelet: { imageGCLowThresholdPercent: 70 } }],
    ['image age', { kubelet: { imageMinimumGCAge: '5m' } }],
    ['kubelet reservation', { kubelet: { kubeReserved: { cpu: '300m' } } }],
    ['system reservation', { kubelet: { systemReserved: { memory: '200Mi' } } }],
    ['label of an earlier release', { nodeLabels: { team: 'web' } }],
    ['taint of an earlier release', { nodeTaints: [{ key: 'dedicated', effect: 'NoSchedule' }] }],
    ['reservation of an earlier release', { systemReserved: { memory: '256Mi' } }],
    ['feature gate', { kubelet: { featureGates: { InPlacePodVerticalScaling: true } } }],
  ]
  for (const [what, spec] of settings) {
    it(`another ${what} is drift`, async () => {
      const { drift, change } = await scene()
      assert.equal(await drift(), undefined)
      change({ templateID: templateId, ...spec })
      assert.equal(await drift(), 'NodeClassSettings')
    })
  }

  it('a default written out, and another order, are no drift', async () => {
    const { drift, change } = await scene()
    const kubelet = { imageMinimumGCAge: '2m', clusterDNS: ['10.96.0.10'], kubeReserved: { cpu: '200m' } }
    change({ templateID: templateId, diskSize: 50, kubelet })
    assert.equal(await drift(), undefined)
  })

  it('another anti-affinity group, and another private network, are drift', async () => {
    const { drift, change } = await scene()
    change(undefined, { antiAffinityGroups: [a] })
    assert.equal(await drift(), 'AntiAffinityGroups')
    change(undefined, { privateNetworks: [a] })
    assert.equal(await drift(), 'PrivateNetworks')
  })

  it('a new image for the same Kubernetes version, and an upgrade of the control plane, are drift', async () => {
    for (const next of ['1.34.1', '1.35.0']) {
      const { world, drift, change } = await scene()
      change({ imageTemplateSelector: {} })
      assert.equal(await drift(), undefined)
      world.kube.version = `v${next}`
      world.cloud.activeTemplates.set(`${next}/standard`, otherTemplate)
      await world.clock.advance(61_000)
      assert.equal(await drift(), 'ImageID')
    }
  })

  it('a class that is not ready says nothing about the image', async () => {
    const { world, drift } = await scene()
    const notReady = aNodeClass({ templateID: otherTemplate }, { conditions: [] })
    world.kube.put(exoscaleNodeClassKind, notReady)
    assert.equal(await drift(), undefined)
  })

  it('a fleet taken over does not drift, and sees later changes', async () => {
    const { drift, change } = await scene({}, true)
    change({ templateID: otherTemplate, diskSize: 60 })
    assert.equal(await drift(), undefined)
    change({ templateID: otherTemplate, diskSize: 70 })
    assert.equal(await drift(), 'NodeClassSettings')
  })

  it('EXO-13 an instance of the Go provider, which ignored fields of earlier releases, is not drifted for them', async () => {
    const { drift, change } = await scene({}, true)
    const spec = {
      templateID: templateId,
      nodeLabels: { environment: 'production' },
      nodeTaints: [{ key: 'dedicated', value: 'gpu', effect: 'NoSchedule' }],
      kubeReserved: { cpu: '100m' },
    }
    change(spec)
    assert.equal(await drift(), undefined)
    assert.equal(await drift(), undefined)
    change({ ...spec, nodeLabels: { environment: 'staging' } })
    assert.equal(await drift(), 'NodeClassSettings')
  })

  it('an instance whose hash is of an earlier version is not drifted for it', async () => {
    const { world, drift } = await scene()
    const claim = world.kube.all(karpenterKinds.nodeClaim)[0] as NodeClaim
    const annotations = {
      ...claim.metadata.annotations,
      'exoscale.com/node-class-hash': 'v1-0123456789abcdef',
    }
    world.kube.put(karpenterKinds.nodeClaim, { ...claim, metadata: { ...claim.metadata, annotations } })
    assert.equal(await drift(), undefined)
  })

  it('an instance that is gone is not found', async () => {
    const { world, drift } = await scene()
    world.cloud.instances.clear()
    await assert.rejects(drift(), { kind: 'nodeClaimNotFound' })
  })

  it('EXO-95 repair policies', () => {
    const told = aWorld().provider.repairPolicies.map((policy) => [
      policy.conditionType,
      policy.conditionStatus,
      policy.tolerationMs / 60_000,
    ])
    assert.deepEqual(told, [
      ['Ready', 'False', 15],
      ['DiskPressure', 'True', 10],
      ['MemoryPressure', 'True', 10],
      ['PIDPressure', 'True', 10],
      ['NetworkUnavailable', 'True', 5],
    ])
  })
})
