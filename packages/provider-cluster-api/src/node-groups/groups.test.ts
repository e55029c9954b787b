import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import { aNode, cpuAndMemory, GroupsStage, type StageOptions } from './groups-stage.test-support.ts'

const md = (name: string) => `MachineDeployment/a/${name}`

async function aStage(t: TestContext, options: StageOptions = {}) {
  const stage = await GroupsStage.create(options)
  t.after(() => {
    stage.stop()
  })
  return stage
}

describe('resources as groups', () => {
  test('CAG-13 a MachineSet is a group unless a MachineDeployment owns it', async (t) => {
    const stage = await aStage(t)
    stage.put('alone', { kind: 'MachineSet', max: '3', replicas: 1 })
    stage.put('owned', {
      kind: 'MachineSet',
      max: '3',
      replicas: 1,
      owner: { kind: 'MachineDeployment', name: 'md' },
    })
    await stage.start()
    assert.deepEqual(stage.ids(), ['MachineSet/a/alone'])
  })

  test('CAG-14 max alone means min 0; min alone is left out by name, and others stay', async (t) => {
    const stage = await aStage(t)
    stage.put('max', { max: '5', replicas: 1 })
    stage.put('min', { min: '2', replicas: 2 })
    await stage.start()
    assert.deepEqual(stage.groups.list(), [
      { id: md('max'), name: md('max'), minSize: 0, maxSize: 5, targetSize: 1 },
    ])
    const [fault] = await stage.refresh()
    assert.equal(fault?.groupId, md('min'))
    assert.match(fault?.reason ?? '', /node-group-min-size is "2".*node-group-max-size is missing/)
  })

  for (const [min, max, reason] of [
    ['x', '3', /min-size is "x", which is not an integer/],
    ['0', '-1', /max-size is "-1", which is not an integer/],
    ['5', '3', /max-size is "3", less than "5" of annotation .*min-size/],
  ] as const)
    test(`CAG-15 min ${min} and max ${max} leave that resource alone out`, async (t) => {
      const stage = await aStage(t)
      stage.put('bad', { min, max, replicas: 1 })
      stage.put('good', { max: '3', replicas: 1 })
      await stage.start()
      assert.deepEqual(stage.ids(), [md('good')])
      const faults = await stage.refresh()
      assert.deepEqual(
        faults.map(({ groupId }) => groupId),
        [md('bad')],
      )
      assert.match(faults[0]?.reason ?? '', reason)
    })

  test('CAG-16 min = max is a group that can be raised to it; max 0 is none', async (t) => {
    const stage = await aStage(t)
    stage.put('md', { min: '2', max: '2', replicas: 1 })
    stage.put('none', { min: '0', max: '0', replicas: 1 })
    await stage.start()
    assert.deepEqual(stage.ids(), [md('md')])
    await stage.run(stage.groups.increaseSize(md('md'), 1, stage.signal))
    assert.equal(stage.replicas('md'), 2)
  })

  test('CAG-17 without replicas and capacity there is no group, until cpu and memory are annotated', async (t) => {
    const stage = await aStage(t)
    stage.put('md', { max: '3', replicas: 0 })
    await stage.start()
    assert.deepEqual(stage.ids(), [])
    stage.api.patch(stage.kinds.machineDeployment, 'a', 'md', { metadata: { annotations: cpuAndMemory } })
    await stage.refresh()
    assert.deepEqual(stage.ids(), [md('md')])
  })

  test('CAG-18 a group without replicas stays while its last Machine drains', async (t) => {
    const stage = await aStage(t)
    stage.putGroup('md', ['m1'])
    await stage.start()
    stage.scale('md', 0)
    await stage.refresh()
    const found = await stage.groups.groupOf(aNode('m1', { providerID: 'aws:///z/m1' }), stage.signal)
    assert.deepEqual(found, { kind: 'group', groupId: md('md') })
    stage.api.delete(stage.kinds.machine, 'a', 'm1')
    await stage.refresh()
    assert.deepEqual(stage.ids(), [])
  })

  test('CAG-19 without spec.replicas the status tells the size, and nothing is written', async (t) => {
    const stage = await aStage(t)
    stage.put('md', { max: '5' })
    stage.api.patch(stage.kinds.machineDeployment, 'a', 'md', { status: { replicas: 2 } }, 'status')
    await stage.start()
    assert.equal(stage.groups.group(md('md'))?.targetSize, 2)
    const [fault] = await stage.refresh()
    assert.match(fault?.reason ?? '', /no spec\.replicas: set it/)
    stage.writes()
    assert.match(
      await stage.refused(stage.groups.increaseSize(md('md'), 1, stage.signal)),
      /no spec\.replicas/,
    )
    assert.deepEqual(stage.writes(), [])
  })

  test('CAG-46 templates that may not be read leave the annotations, and the reason is logged', async (t) => {
    const stage = await aStage(t, {
      fault: ({ path }) => (path.startsWith('/apis/infra.example') ? 403 : undefined),
    })
    const infrastructureRef = { apiVersion: 'infra.example/v1', kind: 'Thing', name: 't' }
    const spec = { template: { spec: { infrastructureRef } } }
    stage.put('bare', { max: '3', replicas: 0, spec })
    stage.put('annotated', { max: '3', replicas: 0, spec, annotations: cpuAndMemory })
    await stage.start()
    assert.deepEqual(stage.ids(), [md('annotated')])
    const example = await stage.run(
      stage.groups.exampleNode?.(md('annotated'), stage.signal) ?? Promise.resolve(undefined),
    )
    assert.equal(example?.node.status?.capacity?.['cpu'], '4')
    assert.ok(
      stage.log.some((line) => line.includes(md('bare')) && line.includes('Thing a/t cannot be read')),
    )
  })

  test('CAG-52 options of one group, and a warning where the flag applies', async (t) => {
    const stage = await aStage(t)
    const option = 'cluster.x-k8s.io/autoscaling-options-'
    stage.put('good', {
      max: '3',
      replicas: 1,
      annotations: {
        [`${option}scaledownunneededtime`]: '10M0S',
        [`${option}scaledownutilizationthreshold`]: '0.7',
      },
    })
    stage.put('bad', { max: '3', replicas: 1, annotations: { [`${option}scaledownunneededtime`]: '1x' } })
    await stage.start()
    assert.deepEqual(stage.groups.optionsOf?.(md('good')), {
      scaleDownUnneededMs: 600_000,
      scaleDownUtilizationThreshold: 0.7,
    })
    assert.deepEqual(stage.groups.optionsOf?.(md('bad')), {})
    assert.ok(stage.log.some((line) => line.includes('scaledownunneededtime') && line.includes('1x')))
  })

  test('CAG-54 nothing is written to what is paused by annotation, by spec, or by its Cluster', async (t) => {
    const stage = await aStage(t)
    const { cluster } = stage.kinds
    stage.api.create(cluster, {
      apiVersion: 'cluster.x-k8s.io/v1beta2',
      kind: 'Cluster',
      metadata: { name: 'sleeping', namespace: 'a' },
      spec: { paused: true },
    })
    stage.putGroup('annotated', ['m1'], { annotations: { 'cluster.x-k8s.io/paused': 'false' } })
    stage.putGroup('paused', ['m2'], { spec: { paused: true } })
    stage.put('clustered', { max: '5', replicas: 1, cluster: 'sleeping' })
    await stage.start()
    await stage.groups.groupOf(aNode('m1', { cluster: 'c1' }), stage.signal)
    await stage.groups.groupOf(aNode('x', { cluster: 'sleeping' }), stage.signal)
    stage.writes()
    for (const [name, reason] of [
      ['annotated', /paused by annotation cluster\.x-k8s\.io\/paused/],
      ['paused', /paused by spec\.paused/],
      ['clustered', /its Cluster a\/sleeping is paused/],
    ] as const) {
      assert.equal(stage.groups.holdOf?.(md(name))?.forbids, 'all')
      assert.match(stage.groups.holdOf?.(md(name))?.reason ?? '', reason)
      assert.match(await stage.refused(stage.groups.increaseSize(md(name), 1, stage.signal)), reason)
    }
    const removal = stage.groups.deleteInstances(md('paused'), ['aws:///z/m2'], stage.signal)
    assert.match(await stage.refused(removal), /paused by spec\.paused/)
    assert.deepEqual([stage.writes(), stage.marked()], [[], []])
    stage.api.patch(stage.kinds.machineDeployment, 'a', 'paused', { spec: { paused: false } })
    await stage.refresh()
    assert.equal(stage.groups.holdOf?.(md('paused')), undefined)
    await stage.run(stage.groups.increaseSize(md('paused'), 1, stage.signal))
    assert.equal(stage.replicas('paused'), 2)
  })

  test('CAG-59 200 groups without work cause no request but watches', async (t) => {
    const stage = await aStage(t)
    for (let at = 0; at < 200; at++)
      stage.put(`md-${String(at)}`, { max: '3', replicas: at % 2, annotations: cpuAndMemory })
    await stage.start()
    stage.requests.splice(0)
    for (let loop = 0; loop < 12; loop++) {
      await stage.refresh()
      await stage.clock.advance(9_000)
      for (const { id } of stage.groups.list()) {
        stage.groups.holdOf?.(id)
        stage.groups.optionsOf?.(id)
        await stage.groups.instances(id, stage.signal)
      }
    }
    assert.equal(stage.groups.list().length, 200)
    assert.deepEqual(
      stage.requests.filter((each) => !each.includes('watch=')),
      [],
    )
  })

  test('CAG-60 while the hub is away nothing is removed; when it is back, loops go on', async (t) => {
    const stage = await aStage(t)
    stage.putGroup('md', ['m1', 'm2'])
    await stage.start()
    stage.fault = () => 'break'
    await stage.clock.advance(10 * 60_000)
    const faults = await stage.refresh()
    assert.match(faults[0]?.reason ?? '', /https:\/\/hub\.example has not been heard of for \d+ min/)
    assert.deepEqual(stage.ids(), [md('md')])
    const hold = stage.groups.holdOf?.(md('md'))
    assert.equal(hold?.forbids, 'shrinking')
    // Readers name the group before it.
    assert.match(hold?.reason ?? '', /^the management cluster /)
    assert.equal(
      await stage.groups.hasInstance?.(aNode('gone', { machine: 'gone' }), stage.signal),
      undefined,
    )
    const removal = stage.groups.deleteInstances(md('md'), ['aws:///z/m1'], stage.signal)
    assert.match(await stage.refused(removal), /has not been heard of/)
    stage.fault = () => undefined
    await stage.clock.advance(5 * 60_000)
    assert.deepEqual(await stage.refresh(), [])
    assert.equal(stage.groups.holdOf?.(md('md')), undefined)
    assert.deepEqual([stage.marked(), stage.replicas('md')], [[], 2])
  })
})
