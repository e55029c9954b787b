import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import { aNode, GroupsStage, type StageOptions } from './groups-stage.test-support.ts'

const id = 'MachineDeployment/a/md'

async function aStage(t: TestContext, options: StageOptions = {}) {
  const stage = await GroupsStage.create(options)
  t.after(() => {
    stage.stop()
  })
  return stage
}

describe('Machines as instances', () => {
  test('CAG-21 each class of Machine has its ID and state', async (t) => {
    const stage = await aStage(t)
    stage.putGroup('md', ['running'])
    const own = { set: 'md-1', deployment: 'md' }
    stage.putMachine('booting', { ...own, providerID: 'aws:///z/booting', phase: 'Provisioned' })
    stage.putMachine('deleting', { ...own, node: 'deleting', finalizers: ['example.com/hold'] })
    stage.api.delete(stage.kinds.machine, 'a', 'deleting')
    stage.putMachine('failed', { ...own, phase: 'Failed', status: { failureMessage: 'no quota' } })
    stage.putMachine('lost', { ...own, phase: 'Failed', node: 'lost', status: { failureMessage: 'gone' } })
    await stage.start()
    assert.deepEqual(await stage.groups.instances(id, stage.signal), [
      { providerId: 'pending-machine-a_booting', state: 'creating' },
      { providerId: 'deleting-machine-a_deleting', nodeName: 'deleting', state: 'deleting' },
      {
        providerId: 'failed-machine-a_failed',
        state: 'creating',
        error: { code: 'ProvisioningFailed', message: 'no quota' },
      },
      { providerId: 'failed-machine-a_lost', nodeName: 'lost' },
      { providerId: 'aws:///z/running', nodeName: 'running', state: 'running' },
    ])
  })

  test('CAG-22 a failure message in another phase is no failure', async (t) => {
    const stage = await aStage(t)
    stage.putGroup('md', [])
    stage.putMachine('m', { set: 'md-1', phase: 'Provisioning', status: { failureMessage: 'retried' } })
    await stage.start()
    assert.deepEqual(await stage.groups.instances(id, stage.signal), [
      { providerId: 'pending-machine-a_m', state: 'creating' },
    ])
  })

  test('CAG-23 v1beta2 keeps the failure under deprecated', async (t) => {
    const stage = await aStage(t)
    stage.putGroup('md', [])
    const status = { deprecated: { v1beta1: { failureMessage: 'no such image' } } }
    stage.putMachine('m', { set: 'md-1', phase: 'Failed', status })
    await stage.start()
    assert.deepEqual(await stage.groups.instances(id, stage.signal), [
      {
        providerId: 'failed-machine-a_m',
        state: 'creating',
        error: { code: 'ProvisioningFailed', message: 'no such image' },
      },
    ])
  })
})

describe('from a Node to its group', () => {
  test('CAG-24 provider IDs meet by their last part', async (t) => {
    const stage = await aStage(t)
    stage.putGroup('md', [])
    stage.putMachine('m', { set: 'md-1', providerID: 'aws:////i-1', node: 'n' })
    await stage.start()
    const found = await stage.groups.groupOf(aNode('n', { providerID: 'aws:///a/i-1' }), stage.signal)
    assert.deepEqual(found, { kind: 'group', groupId: id })
  })

  test('CAG-25 one VM name in two zones: each Node finds its own, and an unknown zone is unresolved', async (t) => {
    const stage = await aStage(t)
    stage.putGroup('one', [])
    stage.putGroup('two', [])
    stage.putMachine('m1', { set: 'one-1', providerID: 'gce://p/z1/n', node: 'n1' })
    stage.putMachine('m2', { set: 'two-1', providerID: 'gce://p/z2/n', node: 'n2' })
    await stage.start()
    const groupOf = (providerID: string) => stage.groups.groupOf(aNode('n', { providerID }), stage.signal)
    assert.deepEqual(await groupOf('gce://p/z1/n'), { kind: 'group', groupId: 'MachineDeployment/a/one' })
    assert.deepEqual(await groupOf('gce://p/z2/n'), { kind: 'group', groupId: 'MachineDeployment/a/two' })
    const found = await groupOf('gce://p/z3/n')
    assert.ok(found.kind === 'unresolved' && found.reason.includes('a/m1, a/m2'), JSON.stringify(found))
  })

  test('CAG-26 equal instance numbers of two scale sets are told apart', async (t) => {
    const stage = await aStage(t)
    const vmss = (name: string) =>
      `azure:///subscriptions/s/resourceGroups/r/providers/Microsoft.Compute/virtualMachineScaleSets/${name}/virtualMachines/0`
    for (const name of ['one', 'two'])
      stage.put(name, { kind: 'MachinePool', max: '3', replicas: 1, spec: { providerIDList: [vmss(name)] } })
    await stage.start()
    for (const name of ['one', 'two'])
      assert.deepEqual(await stage.groups.groupOf(aNode(name, { providerID: vmss(name) }), stage.signal), {
        kind: 'group',
        groupId: `MachinePool/a/${name}`,
      })
  })

  test('CAG-27 a Node without a provider ID is found by its annotations, bare or with a namespace', async (t) => {
    const stage = await aStage(t)
    stage.putGroup('md', [])
    stage.putMachine('m', { set: 'md-1', node: 'bare' })
    await stage.start()
    for (const machine of ['m', 'a/m'])
      assert.deepEqual(await stage.groups.groupOf(aNode('other', { machine }), stage.signal), {
        kind: 'group',
        groupId: id,
      })
    assert.deepEqual(await stage.groups.groupOf(aNode('bare'), stage.signal), {
      kind: 'group',
      groupId: id,
      providerId: 'running-machine-a_m',
    })
    assert.deepEqual(await stage.groups.instances(id, stage.signal), [
      { providerId: '', nodeName: 'bare', state: 'running' },
    ])
  })

  test('CAG-28 a control-plane Node is in no group, and nothing is logged about it', async (t) => {
    const stage = await aStage(t)
    stage.putGroup('md', ['m1'])
    stage.putMachine('cp', {
      set: 'cp',
      ownerKind: 'KubeadmControlPlane',
      providerID: 'aws:///z/cp',
      node: 'cp',
    })
    await stage.start()
    const lines = stage.log.length
    for (let loop = 0; loop < 3; loop++) {
      await stage.refresh()
      const found = await stage.groups.groupOf(aNode('cp', { providerID: 'aws:///z/cp' }), stage.signal)
      assert.deepEqual(found, { kind: 'none' })
    }
    assert.equal(stage.log.length, lines)
  })

  test('CAG-29 the Node of a Machine that is gone counts as deleted', async (t) => {
    const stage = await aStage(t)
    stage.putGroup('md', ['m1'])
    await stage.start()
    const has = (machine?: string) =>
      stage.groups.hasInstance?.(aNode('n', machine === undefined ? {} : { machine }), stage.signal)
    assert.equal(await has('m1'), true)
    stage.api.delete(stage.kinds.machine, 'a', 'm1')
    await stage.refresh()
    assert.equal(await has('m1'), false)
    assert.equal(await has(), undefined)
  })

  test('CAG-29 a Machine that the watch does not show yet is there, and unknown while the hub does not tell', async (t) => {
    const stage = await aStage(t)
    stage.putGroup('md', ['m1'])
    await stage.start()
    stage.putMachine('m2', { set: 'md-1', deployment: 'md' })
    const has = () => stage.groups.hasInstance?.(aNode('n', { machine: 'm2' }), stage.signal)
    assert.equal(await has(), true)
    const late = await aStage(t, { fault: ({ path }) => (path.endsWith('/machines/m2') ? 403 : undefined) })
    late.putGroup('md', ['m1'])
    await late.start()
    assert.equal(await late.groups.hasInstance?.(aNode('n', { machine: 'm2' }), late.signal), undefined)
  })
})
