import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import { aNode, GroupsStage, names, type StageOptions } from './groups-stage.test-support.ts'

const id = 'MachineDeployment/a/md'
const isScale = (path: string) => path.endsWith('/scale')

async function aStage(t: TestContext, options: StageOptions = {}) {
  const stage = await GroupsStage.create(options)
  t.after(() => {
    stage.stop()
  })
  return stage
}

/** Acts as Cluster API: deletes Machines above the replicas, marked ones first, then by name. */
function act(stage: GroupsStage): readonly string[] {
  const machines = stage.api.list(stage.kinds.machine, { namespace: 'a' })
  const rank = (annotations: Readonly<Record<string, string>> = {}) =>
    annotations[names.deleteMachine] === undefined ? 1 : 0
  const inOrder = machines.toSorted(
    ({ metadata: a, status: s }, { metadata: b, status: u }) =>
      rank(a.annotations) - rank(b.annotations) ||
      Number(s?.nodeRef !== undefined) - Number(u?.nodeRef !== undefined) ||
      (a.name < b.name ? -1 : 1),
  )
  const gone = inOrder.slice(0, Math.max(0, machines.length - (stage.replicas('md') ?? 0)))
  for (const { metadata } of gone) stage.api.delete(stage.kinds.machine, 'a', metadata.name)
  return gone.map(({ metadata }) => metadata.name)
}

/** Removes members while Cluster API acts a second later; answers which Machines went. */
async function removed(stage: GroupsStage, machines: readonly string[]): Promise<readonly string[]> {
  const ids = machines.map((name) => `aws:///z/${name}`)
  const work = stage.groups.deleteInstances(id, ids, stage.signal)
  work.catch(() => undefined)
  await stage.clock.advance(2_000)
  const gone = act(stage)
  await stage.run(work)
  await stage.refresh()
  return gone
}

describe('increases', () => {
  test('CAG-30 one write within the maximum; nothing is written above it, or for 0', async (t) => {
    const stage = await aStage(t)
    stage.putGroup('md', ['m1', 'm2', 'm3'], { max: '5' })
    await stage.start()
    stage.writes()
    assert.match(await stage.refused(stage.groups.increaseSize(id, 3, stage.signal)), /desired 6, maximum 5/)
    assert.match(await stage.refused(stage.groups.increaseSize(id, 0, stage.signal)), /must be positive/)
    assert.deepEqual(stage.writes(), [])
    const { targetSize } = await stage.run(stage.groups.increaseSize(id, 2, stage.signal))
    assert.equal(stage.writes().length, 1)
    assert.deepEqual([targetSize, stage.replicas('md'), stage.groups.group(id)?.targetSize], [5, 5, 5])
  })

  test('CAG-30 an increase whose response is lost is not made twice', async (t) => {
    const stage = await aStage(t)
    stage.putGroup('md', ['m1'], { max: '5' })
    await stage.start()
    let isFirst = true
    stage.fault = ({ method, path }) => {
      if (method !== 'PATCH' || !isScale(path) || !isFirst) return undefined
      isFirst = false
      return 'breakAfter'
    }
    await stage.run(stage.groups.increaseSize(id, 2, stage.signal))
    assert.equal(stage.replicas('md'), 3)
  })

  test('CAG-30 it is settled when that many more Machines have Nodes', async (t) => {
    const stage = await aStage(t)
    stage.putGroup('md', ['m1'], { max: '5' })
    await stage.start()
    const { settled } = await stage.run(stage.groups.increaseSize(id, 1, stage.signal))
    let isSettled = false
    const settle = () => {
      isSettled = true
    }
    void settled.then(settle)
    stage.putMachine('m2', { set: 'md-1' })
    await stage.clock.advance(5_000)
    assert.equal(isSettled, false)
    stage.api.patch(stage.kinds.machine, 'a', 'm2', { status: { nodeRef: { name: 'm2' } } }, 'status')
    await stage.clock.advance(5_000)
    assert.equal(isSettled, true)
  })

  const refusals: readonly (readonly [string, (method: string, path: string) => boolean])[] = [
    ['scale is denied', (_method, path) => isScale(path)],
    ['patches are denied', (method) => method === 'PATCH'],
    ['only updates of objects are allowed', (method, path) => method === 'PATCH' || isScale(path)],
  ]
  for (const [rights, isRefused] of refusals)
    test(`CAG-31 the replicas are written where ${rights}, and unknown fields stay`, async (t) => {
      const stage = await aStage(t)
      stage.putGroup('md', ['m1'], { max: '5', spec: { invented: { by: 'tomorrow' } } })
      await stage.start()
      stage.fault = ({ method, path }) => (isRefused(method, path) && method !== 'GET' ? 403 : undefined)
      await stage.run(stage.groups.increaseSize(id, 1, stage.signal))
      const { spec } = stage.api.get(stage.kinds.machineDeployment, 'a', 'md') ?? {}
      assert.equal(spec?.replicas, 2)
      assert.deepEqual(Reflect.get(spec ?? {}, 'invented'), { by: 'tomorrow' })
    })

  test('CAG-20 above the maximum a group can shrink, and below the minimum it can grow', async (t) => {
    const stage = await aStage(t)
    stage.putGroup('md', ['m1', 'm2', 'm3'], { max: '1' })
    stage.put('low', { min: '5', max: '9', replicas: 1 })
    await stage.start()
    assert.deepEqual(await removed(stage, ['m2']), ['m2'])
    assert.equal(stage.replicas('md'), 2)
    await stage.run(stage.groups.increaseSize('MachineDeployment/a/low', 2, stage.signal))
    assert.equal(stage.replicas('low'), 3)
  })
})

describe('removals', () => {
  test('CAG-32 two of five Nodes: two marks, three replicas, and exactly those go', async (t) => {
    const stage = await aStage(t)
    stage.putGroup('md', ['m1', 'm2', 'm3', 'm4', 'm5'])
    await stage.start()
    assert.deepEqual(await removed(stage, ['m2', 'm4']), ['m2', 'm4'])
    assert.equal(stage.replicas('md'), 3)
  })

  for (const [why, parts, machines, reason] of [
    ['at the minimum', { min: '4' }, ['m1'], /size 4 would become 3, minimum 4/],
    ['of two below it', { min: '3' }, ['m1', 'm2'], /size 4 would become 2, minimum 3/],
    ['with a Node of another group', {}, ['m1', 'x'], /aws:\/\/\/z\/x is not a member/],
  ] as const)
    test(`CAG-33 a removal ${why} is refused whole, without a mark`, async (t) => {
      const stage = await aStage(t)
      stage.putGroup('md', ['m1', 'm2', 'm3', 'm4'], parts)
      stage.putGroup('other', ['x'])
      await stage.start()
      stage.writes()
      const ids = machines.map((name) => `aws:///z/${name}`)
      assert.match(await stage.refused(stage.groups.deleteInstances(id, ids, stage.signal)), reason)
      assert.deepEqual([stage.writes(), stage.marked(), stage.replicas('md')], [[], [], 4])
    })

  test('CAG-34 when the replicas cannot be written, all own marks are off', async (t) => {
    const stage = await aStage(t)
    stage.putGroup('md', ['m1', 'm2', 'm3'])
    await stage.start()
    stage.fault = ({ method, path }) =>
      method !== 'GET' && path.includes('/machinedeployments/') ? 403 : undefined
    const work = stage.groups.deleteInstances(id, ['aws:///z/m1', 'aws:///z/m2'], stage.signal)
    assert.match(await stage.refused(work), /refused: PUT/)
    assert.deepEqual([stage.marked(), stage.replicas('md')], [[], 3])
  })

  test('CAG-35 the same removal twice before Cluster API acts lowers the replicas once', async (t) => {
    const stage = await aStage(t)
    stage.putGroup('md', ['m1', 'm2', 'm3'])
    await stage.start()
    const remove = () => stage.groups.deleteInstances(id, ['aws:///z/m2'], stage.signal)
    const first = remove()
    const second = remove()
    // By its turn, the Machine is gone.
    second.catch(() => undefined)
    await stage.clock.advance(5_000)
    assert.deepEqual([stage.replicas('md'), act(stage)], [2, ['m2']])
    await stage.run(first)
    await second.catch(() => undefined)
    assert.equal(stage.replicas('md'), 2)
  })

  test('CAG-35 a Machine that is being deleted lowers nothing', async (t) => {
    const stage = await aStage(t)
    stage.putGroup('md', ['m1', 'm2'])
    const drains = { set: 'md-1', providerID: 'aws:///z/m3', node: 'm3', finalizers: ['example.com/drain'] }
    stage.putMachine('m3', drains)
    stage.api.delete(stage.kinds.machine, 'a', 'm3')
    await stage.start()
    await stage.run(stage.groups.deleteInstances(id, ['aws:///z/m3'], stage.signal))
    assert.deepEqual([stage.replicas('md'), stage.marked()], [2, []])
  })

  test('CAG-27 the Machine of a Node without a provider ID is removed, with or without one of its own', async (t) => {
    const stage = await aStage(t)
    stage.putGroup('md', ['m1', 'm2'])
    stage.putMachine('m0', { set: 'md-1', deployment: 'md', node: 'bare' })
    stage.scale('md', 3)
    await stage.start()
    for (const [node, victim, replicas] of [
      ['bare', 'm0', 2],
      ['m2', 'm2', 1],
    ] as const) {
      const found = await stage.groups.groupOf(aNode(node), stage.signal)
      const providerId = found.kind === 'group' ? (found.providerId ?? '') : ''
      const work = stage.groups.deleteInstances(id, [providerId], stage.signal)
      await stage.clock.advance(2_000)
      assert.deepEqual([stage.replicas('md'), act(stage)], [replicas, [victim]])
      await stage.run(work)
      await stage.refresh()
    }
    // An annotation that the Machine does not confirm is not enough to remove it.
    const annotated = await stage.groups.groupOf(aNode('other', { machine: 'm1' }), stage.signal)
    assert.deepEqual(annotated, { kind: 'group', groupId: id })
  })

  test('CAG-36 replicas that were lowered for a marked Machine are not lowered for it again', async (t) => {
    const stage = await aStage(t)
    stage.putGroup('md', ['m1', 'm2', 'm3'])
    stage.mark('m3', 'tenon 2026-01-01T00:00:00Z')
    stage.scale('md', 2)
    await stage.start()
    const again = stage.groups.deleteInstances(id, ['aws:///z/m3'], stage.signal)
    again.catch(() => undefined)
    await stage.clock.advance(2_000)
    assert.equal(stage.replicas('md'), 2)
    await stage.restart()
    const other = stage.groups.deleteInstances(id, ['aws:///z/m2'], stage.signal)
    await stage.clock.advance(2_000)
    assert.equal(stage.replicas('md'), 1)
    assert.deepEqual(act(stage).toSorted(), ['m2', 'm3'])
    await stage.run(other)
    assert.ok(stage.machine('m1'))
  })

  test('CAG-37 a mark of a user holds other removals of its MachineSet, but not its own', async (t) => {
    const stage = await aStage(t)
    stage.putGroup('md', ['m1', 'm2', 'm3'])
    stage.mark('m1', 'yes')
    await stage.start()
    stage.writes()
    const work = stage.groups.deleteInstances(id, ['aws:///z/m2'], stage.signal)
    assert.match(await stage.refused(work), /Machine a\/m1 has annotation .*delete-machine of someone else/)
    assert.deepEqual([stage.writes(), stage.marked(), stage.replicas('md')], [[], ['m1'], 3])
    assert.deepEqual(await removed(stage, ['m1']), ['m1'])
    assert.equal(stage.replicas('md'), 2)
  })

  test('CAG-38 a pending Machine is marked, and an unhealthy one with an earlier name stays', async (t) => {
    const stage = await aStage(t)
    stage.putGroup('md', ['m1', 'm2'])
    stage.putMachine('pending', { set: 'md-1', deployment: 'md' })
    stage.scale('md', 3)
    await stage.start()
    const work = stage.groups.deleteInstances(id, ['pending-machine-a_pending'], stage.signal)
    await stage.clock.advance(2_000)
    assert.deepEqual([stage.replicas('md'), stage.marked(), act(stage)], [2, ['pending'], ['pending']])
    await stage.run(work)
  })

  test('CAG-38 one that has joined meanwhile is not removed as a pending one', async (t) => {
    const stage = await aStage(t)
    stage.putGroup('md', ['m1', 'm2'])
    await stage.start()
    const work = stage.groups.deleteInstances(id, ['pending-machine-a_m2'], stage.signal)
    assert.match(await stage.refused(work), /a\/m2 has joined as Node m2 meanwhile/)
    assert.deepEqual([stage.replicas('md'), stage.marked()], [2, []])
  })

  test('CAG-39 only what this process requested is taken back', async (t) => {
    const stage = await aStage(t)
    stage.putGroup('md', ['m1', 'm2', 'm3'])
    await stage.start()
    const { settled } = await stage.run(stage.groups.increaseSize(id, 2, stage.signal))
    stage.putMachine('p1', { set: 'md-1', deployment: 'md' })
    await stage.refresh()
    assert.equal(await stage.run(stage.groups.decreaseTargetSize(id, 2, stage.signal)), 'done')
    assert.deepEqual([stage.replicas('md'), stage.marked(), act(stage)], [3, ['p1'], ['p1']])
    await assert.rejects(settled, /taken back/)
    stage.scale('md', 5)
    await stage.refresh()
    assert.equal(await stage.run(stage.groups.decreaseTargetSize(id, 2, stage.signal)), 'unsupported')
    assert.equal(stage.replicas('md'), 5)
  })

  test('CAG-39 an increase of an earlier process is not taken back', async (t) => {
    const stage = await aStage(t)
    stage.putGroup('md', ['m1'])
    await stage.start()
    await stage.run(stage.groups.increaseSize(id, 2, stage.signal))
    await stage.restart()
    assert.equal(await stage.run(stage.groups.decreaseTargetSize(id, 2, stage.signal)), 'unsupported')
    assert.equal(stage.replicas('md'), 3)
  })

  test('CAG-40 marks are put with nothing but update, and unknown fields stay', async (t) => {
    const stage = await aStage(t)
    stage.putGroup('md', ['m1', 'm2'])
    stage.api.patch(stage.kinds.machine, 'a', 'm1', { spec: { invented: { by: 'tomorrow' } } })
    await stage.start()
    stage.fault = ({ method, path }) => (method === 'PATCH' || isScale(path) ? 403 : undefined)
    const work = stage.groups.deleteInstances(id, ['aws:///z/m1'], stage.signal)
    await stage.clock.advance(2_000)
    const { metadata, spec } = stage.machine('m1') ?? {}
    assert.match(metadata?.annotations?.[names.deleteMachine] ?? '', /^tenon /)
    assert.deepEqual(Reflect.get(spec ?? {}, 'invented'), { by: 'tomorrow' })
    assert.deepEqual([stage.replicas('md'), act(stage)], [1, ['m1']])
    await stage.run(work)
  })

  test('CAG-41 the last Node leaves replicas of 0', async (t) => {
    const stage = await aStage(t)
    stage.putGroup('md', ['m1'])
    await stage.start()
    assert.deepEqual(await removed(stage, ['m1']), ['m1'])
    assert.equal(stage.replicas('md'), 0)
  })

  test('CAG-42 an instance of a MachinePool without a Machine goes only where that is allowed', async (t) => {
    const parts = {
      kind: 'MachinePool',
      max: '5',
      replicas: 2,
      spec: { providerIDList: ['x:///1', 'x:///2'] },
    } as const
    const pool = 'MachinePool/a/mp'
    const careful = await aStage(t)
    careful.put('mp', parts)
    await careful.start()
    const refusal = await careful.refused(careful.groups.deleteInstances(pool, ['x:///1'], careful.signal))
    assert.match(refusal, /--clusterapi-machinepool-any-victim/)
    assert.equal(careful.replicas('mp', 'MachinePool'), 2)
    const allowing = await aStage(t, { anyPoolVictim: true })
    allowing.put('mp', parts)
    await allowing.start()
    for (let time = 0; time < 2; time++)
      await allowing.run(allowing.groups.deleteInstances(pool, ['x:///1'], allowing.signal))
    assert.equal(allowing.replicas('mp', 'MachinePool'), 1)
  })

  for (const writes of [1, 2, 3])
    test(`CAG-36 a process that ends after ${String(writes)} of 3 writes costs no Machine in use`, async (t) => {
      const stage = await aStage(t)
      stage.putGroup('md', ['m1', 'm2', 'm3', 'm4', 'm5'])
      await stage.start()
      let left = writes
      stage.fault = ({ method }) => (left <= 0 || (method !== 'GET' && left-- <= 0) ? 'break' : undefined)
      const begun = stage.groups.deleteInstances(id, ['aws:///z/m3', 'aws:///z/m4'], stage.signal)
      begun.catch(() => undefined)
      await stage.clock.advance(3_000)
      stage.fault = () => undefined
      await stage.restart()
      const gone = [...act(stage)]
      await stage.refresh()
      gone.push(...(await removed(stage, ['m5'])))
      assert.deepEqual(
        gone.filter((name) => name === 'm1' || name === 'm2'),
        [],
      )
      assert.ok(gone.includes('m5'))
      assert.equal(stage.replicas('md'), 5 - gone.length)
      assert.deepEqual(stage.marked(), [])
    })

  test('CAG-34 marks that an ended process left are taken off after some minutes', async (t) => {
    const stage = await aStage(t)
    stage.putGroup('md', ['m1', 'm2'])
    stage.mark('m1', 'tenon 1970-01-01T00:00:00Z')
    await stage.start()
    await stage.clock.advance(10 * 60_000)
    await stage.refresh()
    await stage.clock.advance(1_000)
    assert.deepEqual([stage.marked(), stage.replicas('md')], [[], 2])
  })

  const bindings: readonly (readonly [string, object, RegExp])[] = [
    [
      'of Tenon',
      { annotations: { 'tenon.sh/nodeclaim': 'claim', 'tenon.sh/nodeclaim-uid': 'uid' } },
      /belongs to NodeClaim claim/,
    ],
    [
      'of another provider',
      { labels: { 'node.cluster.x-k8s.io/karpenter-member': '' } },
      /belongs to a NodeClaim \(label node\.cluster\.x-k8s\.io\/karpenter-member\)/,
    ],
  ]
  for (const [whose, metadata, message] of bindings)
    test(`a Machine that is bound to a NodeClaim ${whose} is never removed`, async (t) => {
      const stage = await aStage(t)
      stage.putGroup('md', ['m1', 'm2'])
      stage.api.patch(stage.kinds.machine, 'a', 'm1', { metadata })
      await stage.start()
      await stage.run(stage.groups.increaseSize(id, 1, stage.signal))
      stage.putMachine('m3', { set: 'md-1', deployment: 'md' })
      stage.api.patch(stage.kinds.machine, 'a', 'm3', { metadata })
      const work = stage.groups.deleteInstances(id, ['aws:///z/m1'], stage.signal)
      assert.match(await stage.refused(work), message)
      await stage.run(stage.groups.decreaseTargetSize(id, 1, stage.signal))
      assert.deepEqual([stage.replicas('md'), stage.marked()], [3, []])
      const node = aNode('m1', { providerID: 'aws:///z/m1' })
      // As a member it would be drained before its removal is refused.
      assert.equal((await stage.groups.groupOf(node, stage.signal)).kind, 'none')
    })
})

describe('rollouts and other owners', () => {
  test('CAG-55 nothing is removed while rolling, and the group can grow', async (t) => {
    const stage = await aStage(t)
    stage.putGroup('md', ['m1', 'm2'])
    stage.putSet('md-2', 'md', { replicas: 1, revision: '2' })
    stage.putMachine('p1', { set: 'md-2', deployment: 'md' })
    await stage.start()
    assert.match(stage.groups.holdOf?.(id)?.reason ?? '', /it is rolling: MachineSet md-1/)
    assert.equal(stage.groups.holdOf?.(id)?.forbids, 'shrinking')
    stage.writes()
    for (const member of ['aws:///z/m1', 'pending-machine-a_p1'])
      assert.match(await stage.refused(stage.groups.deleteInstances(id, [member], stage.signal)), /rolling/)
    assert.deepEqual([stage.writes(), stage.marked()], [[], []])
    await stage.run(stage.groups.increaseSize(id, 1, stage.signal))
    assert.equal(stage.replicas('md'), 3)
    assert.match(await stage.refused(stage.groups.decreaseTargetSize(id, 1, stage.signal)), /rolling/)
  })

  test('CAG-56 a stuck rollout with a surplus Machine changes nothing', async (t) => {
    const stage = await aStage(t)
    stage.putGroup('md', ['m1', 'm2'])
    stage.putSet('md-2', 'md', { replicas: 1, revision: '2' })
    stage.putMachine('m3', { set: 'md-2', deployment: 'md', providerID: 'aws:///z/m3', node: 'm3' })
    await stage.start()
    stage.writes()
    for (let minute = 0; minute < 20; minute++) {
      await stage.clock.advance(60_000)
      await stage.refresh()
    }
    assert.equal(await stage.run(stage.groups.decreaseTargetSize(id, 1, stage.signal)), 'unsupported')
    assert.deepEqual([stage.writes(), stage.marked(), stage.replicas('md')], [[], [], 2])
  })

  test('CAG-57 replicas that are set back twice are a fault that names who does it, after two writes', async (t) => {
    const stage = await aStage(t)
    stage.putGroup('md', ['m1'])
    await stage.start()
    stage.writes()
    const topology = stage.apiAs('capi-topology')
    for (let time = 0; time < 2; time++) {
      await stage.run(stage.groups.increaseSize(id, 2, stage.signal))
      stage.scale('md', 1, topology)
      await stage.clock.advance(60_000)
      await stage.refresh()
    }
    const [fault] = await stage.refresh()
    assert.equal(fault?.groupId, id)
    assert.match(fault?.reason ?? '', /capi-topology has set spec\.replicas back twice/)
    assert.match(await stage.refused(stage.groups.increaseSize(id, 2, stage.signal)), /capi-topology/)
    assert.equal(stage.writes().length, 2)
    stage.scale('md', 2, topology)
    assert.deepEqual(await stage.refresh(), [])
    await stage.run(stage.groups.increaseSize(id, 2, stage.signal))
    assert.equal(stage.replicas('md'), 4)
  })

  test('CAG-57 removals that are set back end after two, however far apart, and the group is held', async (t) => {
    const stage = await aStage(t)
    stage.putGroup('md', ['m1', 'm2', 'm3'])
    await stage.start()
    const topology = stage.apiAs('capi-topology')
    for (const name of ['m1', 'm2']) {
      assert.equal(stage.groups.holdOf?.(id), undefined)
      assert.deepEqual(await removed(stage, [name]), [name])
      assert.equal(stage.replicas('md'), 2)
      stage.scale('md', 3, topology)
      stage.putMachine(`${name}-again`, {
        set: 'md-1',
        deployment: 'md',
        providerID: `aws:///z/${name}-again`,
        node: `${name}-again`,
      })
      // As long as a Node must be unneeded, and longer.
      await stage.clock.advance(12 * 60_000)
    }
    const [fault] = await stage.refresh()
    assert.match(fault?.reason ?? '', /capi-topology has set spec\.replicas back twice/)
    const hold = stage.groups.holdOf?.(id)
    assert.equal(hold?.forbids, 'all')
    assert.match(hold?.reason ?? '', /capi-topology/)
  })

  test('CAG-61 a removal that the Go image began is left to Cluster API', async (t) => {
    const stage = await aStage(t)
    stage.putGroup('md', ['m1', 'm2', 'm3'])
    stage.mark('m3', '2026-01-01 00:00:00 +0000 UTC')
    stage.scale('md', 2)
    await stage.start()
    stage.writes()
    await stage.refresh()
    const work = stage.groups.deleteInstances(id, ['aws:///z/m1'], stage.signal)
    assert.match(await stage.refused(work), /Machine a\/m3/)
    assert.deepEqual([stage.writes(), stage.replicas('md'), act(stage)], [[], 2, ['m3']])
    await stage.refresh()
    assert.deepEqual(await removed(stage, ['m1']), ['m1'])
    assert.equal(stage.replicas('md'), 1)
  })
})
