import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import { ProviderSettingError } from '@tenon/provider'
import { aNode, cpuAndMemory, GroupsStage, type StageOptions } from './groups-stage.test-support.ts'

async function aStage(t: TestContext, options: StageOptions = {}) {
  const stage = await GroupsStage.create(options)
  t.after(() => {
    stage.stop()
  })
  return stage
}

describe('which resources are groups', () => {
  for (const spec of ['foo', 'asg:tag=x', 'clusterapi:invalid', 'clusterapi:a=b=c', 'clusterapi:x:y'])
    test(`CAG-4 the spec ${spec} is refused at the start`, async () => {
      await assert.rejects(GroupsStage.create({ specs: [spec] }), (error: Error) => {
        assert.ok(error instanceof ProviderSettingError)
        assert.ok(error.message.includes(`--node-group-auto-discovery is "${spec}"`), error.message)
        return true
      })
    })

  for (const [spec, expected] of [
    ['clusterapi:', ['a/empty', 'a/full', 'a/other', 'b/full']],
    ['clusterapi:l=', ['a/empty']],
    ['clusterapi:namespace=a,clusterName=c1,l=x', ['a/full']],
  ] as const)
    test(`CAG-5 ${spec} matches ${expected.join(', ')}`, async (t) => {
      const stage = await aStage(t, { specs: [spec] })
      stage.put('full', { max: '3', replicas: 1, labels: { l: 'x' } })
      stage.put('empty', { max: '3', replicas: 1, labels: { l: '' } })
      stage.put('other', { max: '3', replicas: 1, cluster: 'c2', labels: { l: 'x' } })
      stage.put('full', { max: '3', replicas: 1, namespace: 'b', labels: { l: 'x' } })
      await stage.start()
      assert.deepEqual(
        stage.ids(),
        expected.map((each) => `MachineDeployment/${each}`),
      )
    })

  test('CAG-6 namespaces of two specs are both watched', async (t) => {
    const stage = await aStage(t, { specs: ['clusterapi:namespace=a', 'clusterapi:namespace=b,x=y'] })
    stage.put('one', { max: '3', replicas: 1 })
    stage.put('two', { max: '3', replicas: 1, namespace: 'b', labels: { x: 'y' } })
    stage.put('three', { max: '3', replicas: 1, namespace: 'c' })
    await stage.start()
    assert.deepEqual(stage.ids(), ['MachineDeployment/a/one', 'MachineDeployment/b/two'])
  })

  test('CAG-7 a label selects an MD alone, and the Nodes of its Machines are in the group', async (t) => {
    const stage = await aStage(t, { specs: ['clusterapi:tier=web'] })
    stage.putGroup('md', ['m1'], { labels: { tier: 'web' } })
    await stage.start()
    const found = await stage.groups.groupOf(aNode('m1', { providerID: 'aws:///z/m1' }), stage.signal)
    assert.deepEqual(found, { kind: 'group', groupId: 'MachineDeployment/a/md' })
  })

  test('CAG-8 a resource of two specs is one group, and namespaces do not run together with names', async (t) => {
    const stage = await aStage(t, { specs: ['clusterapi:x=y', 'clusterapi:clusterName=c1'] })
    stage.put('c', { max: '3', replicas: 1, namespace: 'a-b', labels: { x: 'y' } })
    stage.put('b-c', { max: '3', replicas: 1, namespace: 'a', labels: { x: 'y' } })
    await stage.start()
    assert.deepEqual(stage.ids(), ['MachineDeployment/a-b/c', 'MachineDeployment/a/b-c'])
  })

  test('CAG-9 groups of another Cluster are never changed, and nothing is removed while no Node tells', async (t) => {
    const stage = await aStage(t)
    stage.putGroup('mine', ['m1'], { cluster: 'c1' })
    stage.putGroup('theirs', ['m2'], { cluster: 'c2' })
    await stage.start()
    const [mine, theirs] = ['MachineDeployment/a/mine', 'MachineDeployment/a/theirs']
    assert.deepEqual(stage.ids(), [mine, theirs])
    assert.equal(stage.groups.holdOf?.(mine)?.forbids, 'shrinking')
    stage.writes()
    const refusal = await stage.refused(stage.groups.deleteInstances(mine, ['aws:///z/m1'], stage.signal))
    assert.match(refusal, /no Node tells which Cluster this is.*a\/c1 and a\/c2.*--node-group-auto-discovery/)
    const node = aNode('m1', { providerID: 'aws:///z/m1', cluster: 'c1' })
    assert.deepEqual(await stage.groups.groupOf(node, stage.signal), { kind: 'group', groupId: mine })
    assert.deepEqual(stage.ids(), [mine])
    assert.equal(stage.groups.holdOf?.(mine), undefined)
    assert.ok(
      stage.log.some(
        (line) => line.includes('of other Clusters') && line.includes('--node-group-auto-discovery'),
      ),
    )
    assert.match(await stage.refused(stage.groups.increaseSize(theirs, 1, stage.signal)), /not known/)
    assert.match(
      await stage.refused(stage.groups.deleteInstances(theirs, ['aws:///z/m2'], stage.signal)),
      /not known/,
    )
    const stranger = aNode('m2', { providerID: 'aws:///z/m2' })
    assert.deepEqual(await stage.groups.groupOf(stranger, stage.signal), { kind: 'none' })
    assert.deepEqual([stage.writes(), stage.marked()], [[], []])
  })

  test('CAG-10 min, max, machine and delete-machine follow CAPI_GROUP, paused and capacity do not', async (t) => {
    const group = 'test.k8s.io'
    const stage = await aStage(t, { group, env: { CAPI_GROUP: group } })
    stage.put('md', { min: '0', max: '5', replicas: 2 })
    stage.putSet('md-1', 'md', { replicas: 2 })
    for (const name of ['m1', 'm2'])
      stage.putMachine(name, { set: 'md-1', deployment: 'md', providerID: `aws:///z/${name}`, node: name })
    stage.put('empty', { max: '5', replicas: 0, annotations: cpuAndMemory })
    stage.put('paused', { max: '5', replicas: 1, annotations: { 'cluster.x-k8s.io/paused': '' } })
    await stage.start()
    const id = 'MachineDeployment/a/md'
    assert.deepEqual(stage.ids(), ['MachineDeployment/a/empty', id, 'MachineDeployment/a/paused'])
    assert.equal(stage.groups.holdOf?.('MachineDeployment/a/paused')?.forbids, 'all')
    const bare = aNode('x')
    const node = {
      ...bare,
      metadata: {
        ...bare.metadata,
        annotations: { 'test.k8s.io/machine': 'm1', 'test.k8s.io/cluster-namespace': 'a' },
      },
    }
    assert.deepEqual(await stage.groups.groupOf(node, stage.signal), { kind: 'group', groupId: id })
    const deletion = stage.groups.deleteInstances(id, ['aws:///z/m1'], stage.signal)
    await stage.clock.advance(1_000)
    assert.match(
      stage.machine('m1')?.metadata.annotations?.['test.k8s.io/delete-machine'] ?? '',
      /^tenon \d{4}-/,
    )
    stage.api.delete(stage.kinds.machine, 'a', 'm1')
    await stage.run(deletion)
    assert.equal(stage.replicas('md'), 1)
  })

  test('CAG-11 the preferred version is used, or that of CAPI_VERSION', async (t) => {
    const versions = ['v1beta2', 'v1beta1'] as const
    for (const [env, used, other] of [
      [{}, 'v1beta2', 'v1beta1'],
      [{ CAPI_VERSION: 'v1beta1' }, 'v1beta1', 'v1beta2'],
    ] as const) {
      const stage = await aStage(t, { versions, env })
      stage.put('md', { max: '3', replicas: 1 })
      await stage.start()
      assert.deepEqual(stage.ids(), ['MachineDeployment/a/md'])
      assert.ok(stage.requests.some((each) => each.includes(`/${used}/machines`)))
      assert.ok(!stage.requests.some((each) => each.includes(`/${other}/`)))
    }
    const stage = await aStage(t, { versions: ['v1beta2'], env: { CAPI_VERSION: 'v1beta1' } })
    assert.match(await stage.refused(stage.start()), /serves v1beta2, not cluster\.x-k8s\.io\/v1beta1/)
  })

  test('CAG-12 MachinePools that are not served are left out', async (t) => {
    const stage = await aStage(t, { notServed: ['machinepools'] })
    stage.put('md', { max: '3', replicas: 1 })
    await stage.start()
    assert.deepEqual(stage.ids(), ['MachineDeployment/a/md'])
    assert.ok(!stage.requests.some((each) => each.includes('machinepools')))
  })

  test('CAG-12 MachinePools without the right to list them are left out with one notice', async (t) => {
    const stage = await aStage(t, { fault: ({ path }) => (path.includes('/machinepools') ? 403 : undefined) })
    stage.put('md', { max: '3', replicas: 1 })
    await stage.start()
    for (let loop = 0; loop < 5; loop++) await stage.refresh()
    assert.deepEqual(stage.ids(), ['MachineDeployment/a/md'])
    const notices = stage.log.filter((line) => line.includes('list and watch machinepools.cluster.x-k8s.io'))
    assert.equal(notices.length, 1)
  })

  test('CAG-58 with a namespace, nothing is asked of the hub at cluster scope', async (t) => {
    const stage = await aStage(t, { specs: ['clusterapi:namespace=a'] })
    stage.putGroup('md', ['m1', 'm2'])
    stage.put('empty', {
      max: '3',
      replicas: 0,
      spec: {
        template: { spec: { infrastructureRef: { apiGroup: 'infra.example', kind: 'Thing', name: 't' } } },
      },
    })
    await stage.start()
    const deletion = stage.groups.deleteInstances('MachineDeployment/a/md', ['aws:///z/m1'], stage.signal)
    await stage.clock.advance(1_000)
    stage.api.delete(stage.kinds.machine, 'a', 'm1')
    await stage.run(deletion)
    await stage.run(stage.groups.increaseSize('MachineDeployment/a/md', 1, stage.signal))
    const outside = stage.requests.filter(
      (each) => !each.includes('/namespaces/a/') && !/^GET \/apis\/[^/]+(\/[^/?]+)?$/.test(each),
    )
    assert.deepEqual(outside, [])
    assert.equal(stage.replicas('md'), 2)
  })
})
