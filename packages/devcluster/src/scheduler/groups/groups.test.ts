/** PodGroups as kube-scheduler 1.36 schedules them (gangs.md 5.3, 5.4). */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { kinds, type Pod, type PodGroup } from '@tenon/api'
import { podGroupKind } from '../../pod-group-kind.ts'
import { aCluster, inZone, type SchedulingFixture, zoneKey } from '../scheduling-fixture.test-support.ts'

type Policy = NonNullable<NonNullable<PodGroup['spec']>['schedulingPolicy']>

const waiting =
  'pod group is unschedulable, waiting for minCount pods from a gang to be scheduled, one or more plugins asked to ' +
  'wait and no plugin rejected pod'

function group(cluster: SchedulingFixture, name: string, schedulingPolicy: Policy, key?: string): void {
  cluster.create<PodGroup>(podGroupKind, {
    metadata: { name, namespace: 'default' },
    spec: { schedulingPolicy, ...(key !== undefined && { schedulingConstraints: { topology: [{ key }] } }) },
  })
}

const gang = (minCount: number): Policy => ({ gang: { minCount } })

function members(
  cluster: SchedulingFixture,
  name: string,
  count: number,
  cpu = '2',
  more: Parameters<SchedulingFixture['pod']>[1] = {},
): readonly string[] {
  const names = Array.from({ length: count }, (_, at) => `${name}-${at}`)
  for (const each of names)
    cluster.pod(each, { requests: { cpu }, schedulingGroup: { podGroupName: name }, ...more })
  return names
}

function scheduled(cluster: SchedulingFixture, name: string): string | undefined {
  const found = cluster.api
    .get(podGroupKind, 'default', name)
    ?.status?.conditions?.find(({ type }) => type === 'PodGroupScheduled')
  return found && `${found.status} ${found.reason}: ${found.message}`
}

const condition = (pod: Pod | undefined): string | undefined => {
  const found = pod?.status?.conditions?.find(({ type }) => type === 'PodScheduled')
  return found && `${found.reason}`
}

const bound = (cluster: SchedulingFixture, names: readonly string[]): number =>
  names.filter((name) => cluster.nodeOf(name) !== undefined).length

describe('which pods enter the queue', () => {
  test('pods of a group that does not exist are told nothing, and run once it is made', async () => {
    const cluster = aCluster().node('a').start()
    const names = members(cluster, 'train', 2)
    await cluster.settle(20_000)
    for (const name of names) assert.equal(condition(cluster.get(name)), undefined, name)
    group(cluster, 'train', gang(2))
    await cluster.settle()
    assert.equal(bound(cluster, names), 2)
  })

  test('fewer than minCount are told nothing; the one that is missing has all tried at once', async () => {
    const cluster = aCluster().node('a').start()
    group(cluster, 'train', gang(3))
    const names = members(cluster, 'train', 2, '1')
    await cluster.settle(20_000)
    for (const name of names) assert.equal(condition(cluster.get(name)), undefined, name)
    assert.equal(scheduled(cluster, 'train'), undefined)
    cluster.pod('train-2', { schedulingGroup: { podGroupName: 'train' } })
    await cluster.settle()
    assert.equal(bound(cluster, [...names, 'train-2']), 3)
    assert.match(scheduled(cluster, 'train') ?? '', /^True Scheduled/)
  })

  test('a pod of another scheduler does not count', async () => {
    const cluster = aCluster().node('a').start()
    group(cluster, 'train', gang(2))
    const names = members(cluster, 'train', 1)
    cluster.pod('other', { schedulingGroup: { podGroupName: 'train' }, schedulerName: 'volcano' })
    await cluster.settle(20_000)
    assert.equal(condition(cluster.get(names[0] ?? '')), undefined)
  })

  test('gated pods count, but are not placed: the others look placeable for as long', async () => {
    const cluster = aCluster().node('a').node('b').start()
    group(cluster, 'train', gang(4))
    const names = members(cluster, 'train', 2)
    const gates = { schedulingGates: [{ name: 'example.com/gate' }] }
    for (const name of ['late-0', 'late-1'])
      cluster.pod(name, { requests: { cpu: '2' }, schedulingGroup: { podGroupName: 'train' }, ...gates })
    await cluster.settle(60_000)
    for (const name of names) assert.equal(cluster.reason(name), waiting)
    assert.equal(condition(cluster.get('late-0')), 'SchedulingGated')
    assert.equal(scheduled(cluster, 'train'), 'False Unschedulable: pod group is unschedulable')
    for (const name of ['late-0', 'late-1'])
      cluster.api.patch(kinds.pod, 'default', name, { spec: { schedulingGates: null } })
    await cluster.settle(200)
    assert.equal(bound(cluster, [...names, 'late-0', 'late-1']), 4)
  })

  test('a finished pod leaves the quorum: the successor of an evicted one waits for ever', async () => {
    const cluster = aCluster().node('a').start()
    group(cluster, 'train', gang(2))
    const names = members(cluster, 'train', 2, '1')
    await cluster.settle()
    assert.equal(bound(cluster, names), 2)
    cluster.api.patch(kinds.pod, 'default', 'train-0', { status: { phase: 'Succeeded' } }, 'status')
    cluster.api.delete(kinds.pod, 'default', 'train-1', { gracePeriodSeconds: 0 })
    cluster.pod('train-2', { schedulingGroup: { podGroupName: 'train' } })
    await cluster.settle(60_000)
    assert.equal(condition(cluster.get('train-2')), undefined)
  })

  test('a terminating pod counts until it is gone', async () => {
    const cluster = aCluster().node('a').start()
    group(cluster, 'train', gang(2))
    const names = members(cluster, 'train', 2, '1')
    await cluster.settle()
    assert.equal(bound(cluster, names), 2)
    cluster.api.delete(kinds.pod, 'default', 'train-1', { gracePeriodSeconds: 600 })
    cluster.pod('train-2', { schedulingGroup: { podGroupName: 'train' } })
    await cluster.settle(1000)
    assert.equal(bound(cluster, ['train-2']), 1)
  })
})

describe('all or nothing', () => {
  test('without any node all are told so', async () => {
    const cluster = aCluster().start()
    group(cluster, 'train', gang(2))
    const names = members(cluster, 'train', 2)
    await cluster.settle()
    for (const name of names) assert.equal(cluster.reason(name), 'no nodes available to schedule pods')
    assert.equal(scheduled(cluster, 'train'), 'False Unschedulable: pod group is unschedulable')
  })

  test('those that fit wait with the rest, each told another reason, and take no room', async () => {
    const cluster = aCluster().node('a').start()
    group(cluster, 'train', gang(4))
    const names = members(cluster, 'train', 4)
    await cluster.settle()
    assert.equal(bound(cluster, names), 0)
    assert.deepEqual(
      names.map((name) => cluster.reason(name) ?? '').toSorted((a, b) => (a < b ? -1 : 1)),
      [
        ...Array<string>(2).fill(
          '0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: 1 No preemption ' +
            'victims found for incoming pod.',
        ),
        waiting,
        waiting,
      ],
    )
    cluster.pod('stranger', { requests: { cpu: '4' } })
    await cluster.settle()
    assert.equal(cluster.nodeOf('stranger'), 'a')
  })

  test('a node that comes has all of them bound within half a second', async () => {
    const cluster = aCluster().node('a').start()
    group(cluster, 'train', gang(4))
    const names = members(cluster, 'train', 4)
    await cluster.settle(60_000)
    cluster.node('b')
    await cluster.settle(500)
    assert.equal(bound(cluster, names), 4)
    assert.match(scheduled(cluster, 'train') ?? '', /^True Scheduled/)
  })

  test('the order of its pods is at random, and the same for every attempt', async () => {
    const firsts = new Set<string>()
    for (let seed = 1; seed <= 6; seed++) {
      const cluster = aCluster(seed).node('a').start()
      group(cluster, 'train', gang(4))
      const names = members(cluster, 'train', 4)
      await cluster.settle()
      const fitting = () => names.filter((name) => cluster.reason(name) === waiting).join()
      const seen = fitting()
      firsts.add(seen)
      for (let again = 0; again < 3; again++) {
        cluster.node(`small-${again}`, { allocatable: { cpu: '1', memory: '1Gi', pods: '10' } })
        await cluster.settle(1000)
        assert.equal(fitting(), seen)
      }
    }
    assert.ok(firsts.size > 1, [...firsts].join(' | '))
  })

  test('an ordinary pod that waits comes first, and the group no longer fits', async () => {
    const taints = [{ key: 'closed', effect: 'NoSchedule' as const }]
    const cluster = aCluster().node('a', { taints }).node('b', { taints }).start()
    group(cluster, 'train', gang(4))
    const names = members(cluster, 'train', 4)
    cluster.pod('stranger', { requests: { cpu: '1' } })
    await cluster.settle(5000)
    for (const name of ['a', 'b']) cluster.api.patch(kinds.node, undefined, name, { spec: { taints: null } })
    await cluster.settle(500)
    assert.notEqual(cluster.nodeOf('stranger'), undefined)
    assert.equal(bound(cluster, names), 0)
  })

  test('beyond minCount pods are bound as they fit, the rest is told why, and the group stays scheduled', async () => {
    const cluster = aCluster().node('a').start()
    group(cluster, 'train', gang(1))
    const names = members(cluster, 'train', 3)
    await cluster.settle()
    assert.equal(bound(cluster, names), 2)
    const left = names.find((name) => cluster.nodeOf(name) === undefined) ?? ''
    assert.match(cluster.reason(left) ?? '', /^0\/1 nodes are available: 1 Insufficient cpu/)
    assert.match(scheduled(cluster, 'train') ?? '', /^True Scheduled/)
    cluster.node('b')
    await cluster.settle(500)
    assert.equal(bound(cluster, names), 3)
  })

  test('pods of a basic group run one by one', async () => {
    const cluster = aCluster().node('a').start()
    group(cluster, 'web', { basic: {} })
    const names = members(cluster, 'web', 3)
    await cluster.settle()
    assert.equal(bound(cluster, names), 2)
    assert.match(scheduled(cluster, 'web') ?? '', /^True Scheduled/)
  })

  test('a nomination set from outside is gone at once', async () => {
    const cluster = aCluster().node('a').start()
    group(cluster, 'train', gang(4))
    const names = members(cluster, 'train', 4)
    await cluster.settle(5000)
    for (const name of names)
      cluster.api.patch(kinds.pod, 'default', name, { status: { nominatedNodeName: 'a' } }, 'status')
    await cluster.settle(500)
    for (const name of names) assert.equal(cluster.get(name)?.status?.nominatedNodeName ?? '', '', name)
  })

  test('less important pods are evicted even if the group never fits', async () => {
    const cluster = aCluster().node('a').node('b').start()
    for (const at of [0, 1, 2, 3]) cluster.pod(`low-${at}`, { requests: { cpu: '2' } })
    await cluster.settle()
    group(cluster, 'train', gang(6))
    const names = members(cluster, 'train', 6, '2', { priority: 100 })
    await cluster.settle(60_000)
    for (const at of [0, 1, 2, 3])
      assert.ok(
        cluster.get(`low-${at}`)?.metadata.deletionTimestamp ?? cluster.get(`low-${at}`) === undefined,
      )
    assert.equal(bound(cluster, names), 0)
  })

  test('two groups that fit singly only: the more important one runs', async () => {
    const cluster = aCluster().node('a').start()
    group(cluster, 'low', gang(2))
    group(cluster, 'high', gang(2))
    const low = members(cluster, 'low', 2)
    const high = members(cluster, 'high', 2, '2', { priority: 10, preemptionPolicy: 'Never' })
    await cluster.settle()
    assert.deepEqual([bound(cluster, low), bound(cluster, high)], [0, 2])
  })
})

describe('one domain for all', () => {
  const zones = (cluster: SchedulingFixture) =>
    cluster.node('a1', inZone('a')).node('b1', inZone('b')).node('b2', inZone('b'))

  test('all go to the domain that holds them', async () => {
    const cluster = zones(aCluster()).start()
    group(cluster, 'train', gang(4), zoneKey)
    const names = members(cluster, 'train', 4)
    await cluster.settle()
    assert.deepEqual(cluster.spread('train'), { b1: 2, b2: 2 })
    assert.equal(bound(cluster, names), 4)
  })

  test('without a domain that holds all, they are told of one, and that nobody is evicted', async () => {
    const cluster = zones(aCluster()).start()
    cluster.pod('low', { requests: { cpu: '1' } })
    await cluster.settle()
    group(cluster, 'train', gang(5), zoneKey)
    const names = members(cluster, 'train', 5, '2', { priority: 100 })
    await cluster.settle()
    const reasons = names.map((name) => cluster.reason(name) ?? '')
    assert.ok(reasons.includes(waiting))
    assert.match(
      reasons.find((reason) => reason !== waiting) ?? '',
      /^0\/1 nodes are available: .* preemption: not eligible due to placement-based pod group scheduling limitation$/,
    )
    assert.equal(
      scheduled(cluster, 'train'),
      'False Unschedulable: 0/2 placements are available, first placement status: pod group is unschedulable',
    )
    assert.equal(cluster.get('low')?.metadata.deletionTimestamp, undefined)
  })

  test('no node has the label', async () => {
    const cluster = aCluster().node('a').start()
    group(cluster, 'train', gang(2), 'example.com/rack')
    const names = members(cluster, 'train', 2)
    await cluster.settle()
    for (const name of names) assert.equal(cluster.reason(name), 'no feasible placements found')
    assert.equal(scheduled(cluster, 'train'), 'False Unschedulable: no feasible placements found')
  })

  test('bound pods fix the domain, also for those beyond minCount', async () => {
    const cluster = aCluster().node('a1', inZone('a')).start()
    group(cluster, 'train', gang(2), zoneKey)
    members(cluster, 'train', 2)
    await cluster.settle()
    cluster.node('b1', inZone('b'))
    cluster.pod('train-2', { requests: { cpu: '2' }, schedulingGroup: { podGroupName: 'train' } })
    await cluster.settle(5000)
    assert.equal(cluster.nodeOf('train-2'), undefined)
    cluster.node('a2', inZone('a'))
    await cluster.settle(500)
    assert.equal(cluster.nodeOf('train-2'), 'a2')
  })

  test('without the label on the node of a bound pod, it is an error that no node helps', async () => {
    const cluster = aCluster().node('a1', inZone('a')).start()
    group(cluster, 'train', gang(2), zoneKey)
    members(cluster, 'train', 2)
    await cluster.settle()
    cluster.api.patch(kinds.node, undefined, 'a1', { metadata: { labels: { [zoneKey]: null } } })
    cluster.node('b1', inZone('b'))
    cluster.pod('train-2', { requests: { cpu: '2' }, schedulingGroup: { podGroupName: 'train' } })
    await cluster.settle(5000)
    assert.equal(condition(cluster.get('train-2')), 'SchedulerError')
    assert.match(cluster.reason('train-2') ?? '', /^cannot determine domain for already scheduled pods: /)
    assert.match(scheduled(cluster, 'train') ?? '', /^True Scheduled/)
  })
})

describe('a group that is tried in slices', () => {
  /** Does something once so many turns have passed since the scheduler began. */
  function afterTurns(cluster: SchedulingFixture, turns: number, act: () => void): void {
    const turn = (left: number): void => {
      if (left === 0) act()
      else cluster.clock.after(0, () => turn(left - 1))
    }
    turn(turns)
  }

  test('other things happen while hundreds of pods are placed and bound', async () => {
    const cluster = aCluster()
    for (let at = 0; at < 60; at++) cluster.node(`n-${at}`, { allocatable: { cpu: '10' } })
    group(cluster, 'train', gang(600))
    const names = members(cluster, 'train', 600, '1')
    cluster.start()
    const seen = new Set<number>()
    for (let turns = 1; turns < 12; turns++) afterTurns(cluster, turns, () => seen.add(bound(cluster, names)))
    await cluster.settle()
    assert.equal(bound(cluster, names), 600)
    assert.ok(seen.has(0) && seen.size >= 3, [...seen].join())
  })

  for (const turns of [1, 3, 5, 7, 9, 11])
    test(`a pod and a node that go after ${turns} steps leave the others a place`, async () => {
      const cluster = aCluster()
      for (let at = 0; at < 7; at++) cluster.node(`n-${at}`, { allocatable: { cpu: '2' } })
      group(cluster, 'train', gang(4))
      const names = members(cluster, 'train', 6)
      cluster.start({ slicePods: 1 })
      let gone = ''
      afterTurns(cluster, turns, () => {
        gone = names.find((name) => cluster.nodeOf(name) === undefined) ?? ''
        if (gone !== '') cluster.api.delete(kinds.pod, 'default', gone, { gracePeriodSeconds: 0 })
        const taken = new Set(names.map((name) => cluster.nodeOf(name)))
        const free = ['n-0', 'n-1', 'n-2', 'n-3', 'n-4', 'n-5', 'n-6'].find((node) => !taken.has(node))
        cluster.api.delete(kinds.node, undefined, free ?? '')
      })
      await cluster.settle(30_000)
      const left = names.filter((name) => name !== gone)
      const nodes = left.map((name) => cluster.nodeOf(name))
      assert.equal(new Set(nodes).size, left.length, nodes.join())
      for (const node of nodes)
        assert.notEqual(node && cluster.api.get(kinds.node, undefined, node), undefined, String(node))
    })
})
