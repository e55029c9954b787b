/** Groups of pods that run together or not at all: nodes for all of them, or for none (gangs.md 7). */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ProviderError } from '@tenon/provider'
import { kinds, labels, type NodeClaim, podGroupKinds } from '@tenon/api'
import { defaultSettings } from '@tenon/operator'
import { type Logger, silentLogger } from '@tenon/runtime'
import { aType, unscheduled, waitingPod } from '../testing/pools.test-support.ts'
import { minutes, intercepting, seconds, type Stage } from '../testing/stage.test-support.ts'
import {
  bind,
  group,
  isClosed,
  joinAll,
  liveClaims,
  members,
  openGangs,
  serveGroups,
  serveKind,
} from './gang-stage.test-support.ts'

const annotation = 'tenon.sh/group'

/** How many pods the metrics call pending. */
async function pendingPods(stage: Stage): Promise<number> {
  const line = /^karpenter_scheduler_pending_pods_by_effective_zone_count\S* (\d+)$/gm
  const text = await stage.operator.operator.metrics.registry.metrics()
  return Array.from(text.matchAll(line)).reduce((sum, [, count]) => sum + Number(count), 0)
}

describe('which groups get nodes', () => {
  test('GNG-1 two of four members get nothing, all four are served by one decision', async (t) => {
    const { stage } = await openGangs(t)
    group(stage, 'train', 4)
    members(stage, 'train', 2)
    await stage.pass(1 * minutes)
    assert.deepEqual(liveClaims(stage), [])
    const [told] = stage.events('GroupWaitingForMembers')
    assert.match(told?.message ?? '', /train runs with at least 4 pods and has 2/)
    members(stage, 'train', 2, 2)
    await stage.pass(15 * seconds)
    const claims = liveClaims(stage)
    assert.equal(claims.length, 4)
    for (const { metadata } of claims)
      assert.match(
        metadata.annotations?.[annotation] ?? '',
        /^podgroups\.scheduling\.x-k8s\.io\/default\/train@.+/,
      )
    assert.match(stage.events('GroupLaunching')[0]?.message ?? '', /4 NodeClaims created/)
  })

  test('GNG-2 pods of a group that does not exist wait until it is made', async (t) => {
    const { stage } = await openGangs(t)
    members(stage, 'train', 3)
    await stage.pass(30 * seconds)
    assert.deepEqual(liveClaims(stage), [])
    assert.match(stage.events('FailedScheduling')[0]?.message ?? '', /default\/train does not exist/)
    group(stage, 'train', 3)
    await stage.pass(30 * seconds)
    assert.equal(liveClaims(stage).length, 3)
  })

  test('GNG-4 members behind scheduling gates do not count until the gates go', async (t) => {
    const { stage } = await openGangs(t)
    group(stage, 'train', 4)
    members(stage, 'train', 2)
    for (const name of ['train-2', 'train-3'])
      waitingPod(stage, name, {
        cpu: '3',
        labels: { 'scheduling.x-k8s.io/pod-group': 'train' },
        status: unscheduled('SchedulingGated'),
        spec: { schedulingGates: [{ name: 'example.com/gate' }] },
      })
    await stage.pass(30 * seconds)
    assert.deepEqual(liveClaims(stage), [])
    for (const name of ['train-2', 'train-3'])
      stage.patch(kinds.pod, name, { spec: { schedulingGates: null } }, undefined, 'default')
    await stage.pass(30 * seconds)
    assert.equal(liveClaims(stage).length, 4)
  })

  test('GNG-1 once one member is refused those about which nothing is known are decided about, too', async (t) => {
    const { stage } = await openGangs(t)
    group(stage, 'train', 3)
    members(stage, 'train', 2, 0, { phase: 'Pending' })
    await stage.pass(30 * seconds)
    assert.deepEqual(liveClaims(stage), [])
    members(stage, 'train', 1, 2)
    await stage.pass(15 * seconds)
    assert.equal(liveClaims(stage).length, 3)
  })

  test('GNG-38 two labelled pods of three get nothing', async (t) => {
    const { stage } = await openGangs(t)
    group(stage, 'train', 3)
    members(stage, 'train', 2)
    await stage.pass(30 * seconds)
    assert.deepEqual(liveClaims(stage), [])
  })

  test('GNG-39 pods that Volcano calls Schedulable are planned with those that it calls Unschedulable', async (t) => {
    const { stage } = await openGangs(t)
    stage.world.create(podGroupKinds.volcano, {
      apiVersion: 'scheduling.volcano.sh/v1beta1',
      kind: 'PodGroup',
      metadata: { name: 'train', namespace: 'default' },
      spec: { minMember: 4 },
    })
    for (const [at, reason] of ['Schedulable', 'Schedulable', 'Unschedulable', 'Unschedulable'].entries())
      waitingPod(stage, `train-${at}`, {
        cpu: '3',
        annotations: { 'scheduling.k8s.io/group-name': 'train' },
        status: unscheduled(reason),
      })
    await stage.pass(15 * seconds)
    assert.equal(liveClaims(stage).length, 4)
  })

  test('GNG-40 pods behind the gates of Kueue get nothing', async (t) => {
    const { stage } = await openGangs(t)
    for (const name of ['a', 'b'])
      waitingPod(stage, name, {
        status: unscheduled('SchedulingGated'),
        spec: { schedulingGates: [{ name: 'kueue.x-k8s.io/admission' }] },
      })
    await stage.pass(30 * seconds)
    assert.deepEqual(liveClaims(stage), [])
  })

  test('GNG-40 ungated with the hostname of a node that is not there they get nothing, and are told why', async (t) => {
    const { stage } = await openGangs(t)
    const gates = { schedulingGates: [{ name: 'kueue.x-k8s.io/topology' }] }
    for (const name of ['a', 'b'])
      waitingPod(stage, name, { status: unscheduled('SchedulingGated'), spec: gates })
    await stage.pass(30 * seconds)
    assert.equal(await pendingPods(stage), 0)
    assert.deepEqual(stage.events('FailedScheduling'), [])
    for (const name of ['a', 'b']) {
      const spec = { schedulingGates: null, nodeSelector: { [labels.hostname]: 'gone' } }
      stage.patch(kinds.pod, name, { spec }, undefined, 'default')
      stage.patch(kinds.pod, name, { status: unscheduled() }, 'status', 'default')
    }
    await stage.pass(30 * seconds)
    assert.deepEqual(liveClaims(stage), [])
    const told = stage.events('FailedScheduling').find(({ object }) => object === 'Pod/a')
    assert.match(told?.message ?? '', /names one node, and no new node gets that name/)
  })

  test('GNG-6 a limit for fewer nodes makes none for the group, and one for another pod', async (t) => {
    const { stage } = await openGangs(t, { pool: { limits: { nodes: '7' } } })
    group(stage, 'train', 8)
    members(stage, 'train', 8)
    waitingPod(stage, 'other', { cpu: '2' })
    await stage.pass(30 * seconds)
    assert.equal(liveClaims(stage).length, 1)
    assert.equal(liveClaims(stage)[0]?.metadata.annotations?.[annotation], undefined)
    const told = stage.events('GroupNotPlaceable')
    assert.match(
      told[0]?.message ?? '',
      /room for 7; for the next one: NodePool default: its limit on the number/,
    )
    assert.deepEqual(new Set(told.map(({ object }) => object)), new Set(['PodGroup/train', 'Pod/train-0']))
  })

  test('GNG-8 of two groups within a limit for one, the older runs and the other waits until it has ended', async (t) => {
    const { stage } = await openGangs(t, { pool: { limits: { nodes: '5' } } })
    group(stage, 'first', 4)
    await stage.pass(2 * seconds)
    group(stage, 'second', 4)
    members(stage, 'second', 4)
    members(stage, 'first', 4)
    await stage.pass(40 * seconds)
    const groups = () => liveClaims(stage).map(({ metadata }) => metadata.annotations?.[annotation] ?? '')
    assert.equal(groups().length, 4)
    for (const name of groups()) assert.match(name, /default\/first@/)
    for (let at = 0; at < 4; at++) await stage.end(`first-${at}`)
    await stage.pass(60 * seconds)
    assert.equal(groups().length, 4)
    for (const name of groups()) assert.match(name, /default\/second@/)
  })

  test('GNG-35 without the API pods are ordinary; once it is served, groups count without a restart', async (t) => {
    const { stage } = await openGangs(t, { areServed: false })
    members(stage, 'train', 2)
    await stage.pass(30 * seconds)
    assert.equal(liveClaims(stage).length, 2)
    serveGroups(stage)
    await stage.pass(2 * minutes)
    group(stage, 'other', 3)
    members(stage, 'other', 2)
    await stage.pass(30 * seconds)
    assert.equal(liveClaims(stage).length, 2)
  })

  test('GNG-35 an API server that serves none of the kinds says so without a Status: pods are ordinary, and nodes go', async (t) => {
    const apiPath = intercepting((_, path) =>
      /podgroups|provisioningrequests/.test(path) ? 'unserved' : 'pass',
    )
    const { stage } = await openGangs(t, {
      areServed: false,
      world: { apiPath },
      pool: { disruption: { consolidateAfter: '0s', budgets: [{ nodes: '100%' }] } },
    })
    const tags = {
      [labels.instanceType]: 'type-4',
      [labels.zone]: 'zone-1',
      [labels.capacityType]: 'on-demand',
    }
    await stage.ready('empty', {}, { labels: tags })
    await stage.pass(5 * minutes)
    assert.deepEqual(liveClaims(stage), [])
    members(stage, 'train', 2)
    await stage.pass(30 * seconds)
    assert.equal(liveClaims(stage).length, 2)
  })

  for (const [served, watched] of [
    [['v1beta1', 'v1alpha3'], ['v1beta1']],
    [['v1alpha3'], ['v1alpha3']],
    [[], []],
  ] as const)
    test(`VER-50 of PodGroups served as ${served.join(', ') || 'nothing'} ${watched.join() || 'none'} is watched`, async (t) => {
      const seen = new Set<string>()
      const problems: string[] = []
      const logger: Logger = {
        ...silentLogger,
        warn: (message) => problems.push(message),
        error: (message) => problems.push(message),
        with: () => logger,
      }
      const apiPath = intercepting((_, path) => {
        const [, version] = /scheduling\.k8s\.io\/(\w+)\/podgroups\?.*watch=true/.exec(path) ?? []
        if (version !== undefined) seen.add(version)
        return 'pass'
      })
      const cluster = { featureGates: { genericWorkload: false } }
      const { stage } = await openGangs(t, { areServed: false, world: { apiPath, cluster, logger } })
      if (served.length > 0) serveKind(stage, 'scheduling.k8s.io', served)
      await stage.pass(3 * minutes)
      assert.deepEqual([[...seen], problems], [watched, []])
    })

  test('GNG-36 without the right to read groups pods are ordinary', async (t) => {
    const isOfGroups = (path: string) => path.includes('/podgroups')
    const apiPath = intercepting((_, path) => (isOfGroups(path) ? 'forbidden' : 'pass'))
    const warnings: string[] = []
    const logger: Logger = {
      ...silentLogger,
      warn: (message, fields) => warnings.push(`${message} ${JSON.stringify(fields)}`),
      with: () => logger,
    }
    const { stage } = await openGangs(t, { world: { apiPath, logger } })
    const told = () => warnings.filter((message) => message.includes('PodGroups'))
    await stage.pass(2 * minutes)
    assert.deepEqual(told(), [], 'without pods of groups nothing is missing')
    group(stage, 'train', 3)
    members(stage, 'train', 2)
    await stage.pass(30 * seconds)
    assert.equal(liveClaims(stage).length, 2)
    await stage.pass(5 * minutes)
    assert.deepEqual(told(), [
      'cannot read PodGroups: missing permission to list and watch podgroups; their pods are scheduled one by one {"apiGroup":"scheduling.x-k8s.io"}',
    ])
  })

  test('GNG-36 without the right to read requests that is told once, and groups are read all the same', async (t) => {
    const apiPath = intercepting((_, path) => (path.includes('/provisioningrequests') ? 'forbidden' : 'pass'))
    const warnings: string[] = []
    const logger: Logger = {
      ...silentLogger,
      warn: (message) => warnings.push(message),
      with: () => logger,
    }
    const { stage } = await openGangs(t, { world: { apiPath, logger } })
    group(stage, 'train', 3)
    members(stage, 'train', 2)
    await stage.pass(5 * minutes)
    assert.deepEqual(liveClaims(stage), [])
    assert.equal(warnings.filter((message) => message.includes('ProvisioningRequests')).length, 1)
  })

  test('GNG-35 by default groups count where they are served; in the mode of Karpenter they never do', async (t) => {
    for (const [compatibility, claims] of [
      ['none', 0],
      ['karpenter', 2],
    ] as const) {
      const { stage } = await openGangs(t, {
        settings: { compatibility, featureGates: defaultSettings.featureGates },
      })
      group(stage, 'train', 3)
      members(stage, 'train', 2)
      await stage.pass(30 * seconds)
      assert.equal(liveClaims(stage).length, claims, compatibility)
    }
  })
})

describe('launches that are held together', () => {
  const two = [
    aType('cheap-4', 4),
    {
      ...aType('dear-4', 4),
      offerings: aType('dear-4', 4).offerings.map((offering) => ({ ...offering, pricePerHour: 9 })),
    },
  ]

  test('GNG-9 what one offering refuses another one gives, and nothing is released', async (t) => {
    const { stage, cloud } = await openGangs(t, { types: two })
    cloud.stock.set('cheap-4/zone-1', 3)
    group(stage, 'train', 4)
    members(stage, 'train', 4)
    await stage.pass(90 * seconds)
    const types = liveClaims(stage).map(({ metadata }) => metadata.labels?.[labels.instanceType] ?? '')
    assert.deepEqual(
      types.toSorted((a, b) => a.localeCompare(b)),
      ['cheap-4', 'cheap-4', 'cheap-4', 'dear-4'],
    )
    assert.deepEqual(stage.events('GroupCapacityReleased'), [])
  })

  test('GNG-10 what cannot be completed is gone within the bound', async (t) => {
    const { stage, cloud } = await openGangs(t)
    cloud.stock.set('type-4/zone-1', 3)
    group(stage, 'train', 4)
    members(stage, 'train', 4)
    await stage.pass(20 * seconds)
    assert.equal(cloud.refused.length, 1)
    await stage.pass(2 * minutes)
    assert.deepEqual(liveClaims(stage), [])
    assert.match(stage.events('GroupCapacityReleased')[0]?.message ?? '', /3 NodeClaims deleted: not all/)
  })

  test('GNG-10 thirty-two pods of which the cheapest offering launches twenty run in the end', async (t) => {
    const { stage, cloud } = await openGangs(t, { types: two })
    cloud.stock.set('cheap-4/zone-1', 20)
    group(stage, 'train', 32)
    members(stage, 'train', 32)
    await stage.pass(3 * minutes)
    assert.equal(liveClaims(stage).length, 32)
    for (const claim of liveClaims(stage))
      assert.equal(stage.state(claim.metadata.name, 'Launched'), 'True/Launched')
  })

  test('GNG-11 rounds of a group that nothing holds come more and more slowly', async (t) => {
    const { stage, cloud } = await openGangs(t)
    cloud.stock.set('type-4/zone-1', 1)
    group(stage, 'train', 2)
    members(stage, 'train', 2)
    for (let minute = 0; minute < 60; minute++) {
      await stage.pass(1 * minutes)
      // What is given back can be had again.
      if (liveClaims(stage).length === 0) cloud.stock.set('type-4/zone-1', 1)
    }
    const rounds = cloud.count('create')
    assert.ok(rounds >= 3 && rounds <= 14, `${rounds} launches`)
  })

  test('GNG-12 an instance that never joins releases the others at its time-out, and the group is planned anew', async (t) => {
    const { stage } = await openGangs(t)
    group(stage, 'train', 4)
    members(stage, 'train', 4)
    await stage.pass(15 * seconds)
    const [lost, ...others] = liveClaims(stage)
    await joinAll(stage, others)
    await stage.pass(13 * minutes)
    for (const { metadata } of others) assert.ok(isClosed(stage, metadata.name), metadata.name)
    await stage.pass(3 * minutes)
    const names = new Set(liveClaims(stage).map(({ metadata }) => metadata.name))
    for (const { metadata } of [lost, ...others].filter((claim) => claim !== undefined))
      assert.ok(!names.has(metadata.name), metadata.name)
    assert.equal(names.size, 4)
  })

  test('GNG-10 a group that misses a node which cannot be had keeps no node of its own, and the one it shares stays', async (t) => {
    const { stage } = await openGangs(t, { types: [aType('type-7', 7)] })
    for (const name of ['first', 'second']) {
      group(stage, name, 3)
      members(stage, name, 3)
    }
    await stage.pass(15 * seconds)
    const groupsOf = (claim: NodeClaim) => claim.metadata.annotations?.[annotation]?.split(',') ?? []
    const claims = liveClaims(stage)
    const shared = claims.find((claim) => groupsOf(claim).length === 2)
    const lost = claims.find((claim) => groupsOf(claim).every((id) => id.includes('/first@')))
    assert.ok(shared !== undefined && lost !== undefined)
    await joinAll(
      stage,
      claims.filter((claim) => claim !== lost),
    )
    stage.cloud.onCreate = () => {
      throw new ProviderError('insufficientCapacity', 'sold out')
    }
    await stage.deleteClaim(lost.metadata.name)
    await stage.pass(1 * minutes)
    const left = liveClaims(stage).map((claim) => groupsOf(claim))
    assert.ok(left.length >= 3)
    // None is kept for the first group alone.
    for (const groups of left) assert.match(groups.join(), /default\/second@/)
  })

  test('GNG-13 a process that dies between two launches leaves four claims in the end', async (t) => {
    const { stage } = await openGangs(t)
    await stage.world.bury(stage.operator)
    group(stage, 'train', 4)
    members(stage, 'train', 4)
    for (let crashAt = 4; crashAt < 40; crashAt += 3) {
      const running = await stage.world.startOperator(crashAt)
      await stage.pass(12 * seconds)
      await stage.world.bury(running)
    }
    await stage.start()
    await stage.pass(1 * minutes)
    assert.equal(liveClaims(stage).length, 4)
    for (const { metadata } of liveClaims(stage))
      assert.match(metadata.annotations?.[annotation] ?? '', /default\/train@/)
  })

  test('GNG-14 members that are deleted while their nodes come take the claims with them', async (t) => {
    const { stage } = await openGangs(t)
    group(stage, 'train', 3)
    members(stage, 'train', 3)
    await stage.pass(15 * seconds)
    assert.equal(liveClaims(stage).length, 3)
    for (let at = 0; at < 3; at++) await stage.end(`train-${at}`)
    await stage.pass(10 * seconds)
    assert.deepEqual(liveClaims(stage), [])
  })

  test('GNG-15 a node that took another pod meanwhile stays', async (t) => {
    const { stage } = await openGangs(t)
    group(stage, 'train', 2)
    members(stage, 'train', 2)
    await stage.pass(15 * seconds)
    const [first, second] = liveClaims(stage)
    await joinAll(stage)
    await stage.pass(5 * seconds)
    await stage.pod('stranger', `node-${first?.metadata.name}`)
    for (let at = 0; at < 2; at++) await stage.end(`train-${at}`)
    await stage.pass(30 * seconds)
    assert.deepEqual(
      liveClaims(stage).map(({ metadata }) => metadata.name),
      [first?.metadata.name],
    )
    assert.equal(liveClaims(stage)[0]?.metadata.annotations?.[annotation], undefined)
    assert.equal(
      (stage.nodeNow(`node-${first?.metadata.name}`)?.spec?.taints ?? []).some(
        ({ key }) => key === 'karpenter.sh/disrupted',
      ),
      false,
    )
    assert.notEqual(second, undefined)
  })

  test('GNG-16 nodes open together, once the last of them is ready', async (t) => {
    const { stage } = await openGangs(t)
    group(stage, 'train', 4)
    members(stage, 'train', 4)
    await stage.pass(15 * seconds)
    const claims = liveClaims(stage)
    for (const claim of claims.slice(0, 3)) {
      await joinAll(stage, [claim])
      await stage.pass(30 * seconds)
      for (const { metadata } of claims.slice(0, 3))
        if (stage.nodeNow(`node-${metadata.name}`) !== undefined) assert.ok(isClosed(stage, metadata.name))
    }
    const [last] = claims.slice(3)
    await stage.join(last?.metadata.name ?? '')
    stage.patch(kinds.node, `node-${last?.metadata.name}`, readyStatus(), 'status')
    await stage.pass(1 * seconds)
    for (const { metadata } of claims) assert.ok(!isClosed(stage, metadata.name), metadata.name)
  })

  test('GNG-16 once enough members run, their nodes are like others', async (t) => {
    const { stage } = await openGangs(t)
    group(stage, 'train', 2)
    members(stage, 'train', 2)
    await stage.pass(15 * seconds)
    await joinAll(stage)
    for (const [at, { metadata }] of liveClaims(stage).entries())
      bind(stage, `train-${at}`, `node-${metadata.name}`)
    await stage.pass(10 * seconds)
    for (const { metadata } of liveClaims(stage)) assert.equal(metadata.annotations?.[annotation], undefined)
    assert.equal(liveClaims(stage).length, 2)
  })
})

function readyStatus(): object {
  const amounts = { cpu: '4', memory: '8Gi', pods: '110' }
  const at = '2026-01-01T00:00:00Z'
  const condition = {
    type: 'Ready',
    status: 'True',
    reason: 'Kubelet',
    message: '',
    lastHeartbeatTime: at,
    lastTransitionTime: at,
  }
  return { status: { capacity: amounts, allocatable: amounts, conditions: [condition] } }
}
