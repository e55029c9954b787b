/** Graceful disruption leaves a group the pods that must run together (gangs.md 7.5). */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type KubeObject, kinds, labels, podGroupKinds, type ResourceType } from '@tenon/api'
import { intercepting, minutes, type Stage } from '../testing/stage.test-support.ts'
import { group, joinAll, liveClaims, openGangs } from './gang-stage.test-support.ts'

interface Running {
  /** Members on each node. */
  readonly counts: readonly number[]
  /** What a member asks for. */
  readonly cpu?: string
  readonly budget?: string
  readonly consolidateAfter?: string
  /** The node that has drifted. */
  readonly drifted?: string
  /** The same, for a test that names it later. */
  readonly drifting?: { node?: string }
  /** Whose group: one of coscheduling, or one of Kubernetes that is disrupted as a whole. */
  readonly source?: 'coscheduling' | 'whole'
  /** What stands between the operator and the API server. */
  readonly apiPath?: ReturnType<typeof intercepting>
}

/** Nodes of 4 cores with members of a group that needs `minCount`. */
async function running(t: Parameters<typeof openGangs>[0], minCount: number, story: Running): Promise<Stage> {
  const {
    counts,
    cpu = '100m',
    budget = '100%',
    consolidateAfter = '0s',
    source = 'coscheduling',
    drifted,
    drifting = { ...(drifted !== undefined && { node: drifted }) },
    apiPath,
  } = story
  const { stage, cloud } = await openGangs(t, {
    pool: { disruption: { consolidateAfter, budgets: [{ nodes: budget }] } },
    ...(apiPath && { world: { apiPath } }),
  })
  cloud.onIsDrifted = ({ metadata }) => (metadata.name === drifting.node ? 'ImageChanged' : undefined)
  if (source === 'coscheduling') group(stage, 'train', minCount)
  else
    stage.world.create(
      podGroupKinds.kubernetes[2] as ResourceType,
      {
        apiVersion: 'scheduling.k8s.io/v1alpha2',
        kind: 'PodGroup',
        metadata: { name: 'train', namespace: 'default' },
        spec: { schedulingPolicy: { gang: { minCount } }, disruptionMode: 'PodGroup' },
      } as KubeObject,
    )
  const containers = [{ name: 'app', image: 'i', resources: { requests: { cpu } } }]
  const member =
    source === 'coscheduling'
      ? { labels: { 'scheduling.x-k8s.io/pod-group': 'train' }, spec: { containers } }
      : { spec: { containers, schedulingGroup: { podGroupName: 'train' } } }
  const tags = {
    [labels.instanceType]: 'type-4',
    [labels.zone]: 'zone-1',
    [labels.capacityType]: 'on-demand',
  }
  for (const [at, count] of counts.entries()) {
    await stage.ready(`n${at}`, {}, { labels: tags })
    for (let pod = 0; pod < count; pod++) await stage.pod(`pod-${at}-${pod}`, `node-n${at}`, member)
  }
  return stage
}

const told = (stage: Stage, reason: string, node: string): readonly string[] =>
  stage
    .events(reason)
    .filter(({ object }) => object === `Node/node-${node}`)
    .map(({ message }) => message)

const blocked = (stage: Stage, node: string): readonly string[] => told(stage, 'DisruptionBlocked', node)

const isGoing = (stage: Stage, name: string): boolean =>
  stage.claimNow(name)?.metadata.deletionTimestamp !== undefined || stage.claimNow(name) === undefined

describe('nodes with pods of a group', () => {
  test('GNG-20 two half-used nodes of a group without spare members go together, once the new one is initialized', async (t) => {
    const stage = await running(t, 4, { counts: [2, 2] })
    const old = ['n0', 'n1']
    await stage.world.clock.advanceUntil(() => liveClaims(stage).length === 3, 10 * minutes)
    const successor = liveClaims(stage).find(({ metadata }) => !old.includes(metadata.name))
    const name = successor?.metadata.name ?? ''
    await stage.pass(minutes)
    assert.deepEqual(
      old.map((each) => isGoing(stage, each)),
      [false, false],
    )
    await stage.join(name)
    await stage.report(`node-${name}`)
    await stage.pass(15_000)
    assert.deepEqual(
      old.map((each) => isGoing(stage, each)),
      [true, true],
    )
    assert.equal(isGoing(stage, name), false)
  })

  test('GNG-20 none of them goes where the two together cost no less elsewhere', async (t) => {
    const stage = await running(t, 4, { counts: [2, 2], cpu: '1900m' })
    await stage.pass(10 * minutes)
    for (const name of ['n0', 'n1']) {
      assert.equal(isGoing(stage, name), false, name)
      assert.match(
        blocked(stage, name).join('\n'),
        /too few of their group would run .*running=4, minCount=4/,
      )
      assert.match(told(stage, 'Unconsolidatable', name).join('\n'), /cheaper node/)
    }
    assert.equal(liveClaims(stage).length, 2)
  })

  test('GNG-24 one member must not be disrupted: the other nodes of its group stay as well, and say so', async (t) => {
    const stage = await running(t, 4, { counts: [2, 2] })
    stage.patch(
      kinds.pod,
      'pod-1-0',
      { metadata: { annotations: { 'karpenter.sh/do-not-disrupt': 'true' } } },
      undefined,
      'default',
    )
    await stage.pass(10 * minutes)
    assert.equal(liveClaims(stage).length, 2)
    assert.deepEqual(
      ['n0', 'n1'].map((each) => isGoing(stage, each)),
      [false, false],
    )
    assert.match(blocked(stage, 'n0').join('\n'), /run together with those on Node node-n1.*default\/pod-1-0/)
  })

  test('GNG-24 a PodDisruptionBudget of one member holds all nodes of the group', async (t) => {
    const stage = await running(t, 4, { counts: [2, 2] })
    stage.patch(kinds.pod, 'pod-1-0', { metadata: { labels: { held: 'yes' } } }, undefined, 'default')
    stage.world.create(kinds.podDisruptionBudget, {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: { name: 'hold', namespace: 'default' },
      spec: { maxUnavailable: 0, selector: { matchLabels: { held: 'yes' } } },
      status: { disruptionsAllowed: 0 },
    })
    await stage.pass(10 * minutes)
    assert.equal(liveClaims(stage).length, 2)
    assert.match(blocked(stage, 'n0').join('\n'), /Node node-n1.*default\/hold/)
  })

  test('GNG-25 a budget of one node and a group on two: no move and one event; an expired node goes all the same', async (t) => {
    const stage = await running(t, 4, { counts: [2, 2], budget: '1' })
    await stage.pass(14 * minutes)
    assert.equal(liveClaims(stage).length, 2)
    const events = told(stage, 'Unconsolidatable', 'n0').filter((message) => /budget/.test(message))
    assert.equal(events.length, 1)
    assert.match(events[0] ?? '', /allows 1 of these 2 nodes/)
    await stage.deleteClaim('n0')
    await stage.pass(minutes)
    assert.equal(isGoing(stage, 'n0'), true)
    assert.equal(isGoing(stage, 'n1'), false)
  })

  test('GNG-22 members of a group that is disrupted as a whole do not move alone, spare ones included', async (t) => {
    const stage = await running(t, 1, { counts: [2, 2], source: 'whole', cpu: '1900m' })
    await stage.pass(10 * minutes)
    assert.deepEqual(
      ['n0', 'n1'].map((each) => isGoing(stage, each)),
      [false, false],
    )
    assert.match(blocked(stage, 'n0').join('\n'), /disrupted only as a whole .*running=4, minCount=1/)
  })

  test('GNG-22 the whole of it moves where that costs less', async (t) => {
    const stage = await running(t, 1, { counts: [2, 2], source: 'whole' })
    await stage.world.clock.advanceUntil(() => liveClaims(stage).length === 3, 10 * minutes)
    assert.equal(liveClaims(stage).length, 3)
  })

  test('GNG-20 a drifted node is replaced with all others of its group', async (t) => {
    const stage = await running(t, 4, { counts: [2, 2], consolidateAfter: 'Never', drifted: 'n1' })
    await stage.world.clock.advanceUntil(() => liveClaims(stage).length > 2, 20 * minutes)
    const successors = liveClaims(stage).filter(({ metadata }) => !['n0', 'n1'].includes(metadata.name))
    await joinAll(stage, successors)
    await stage.pass(15_000)
    assert.deepEqual(
      ['n0', 'n1'].map((each) => isGoing(stage, each)),
      [true, true],
    )
  })

  test('GNG-20 where one of the nodes of a group cannot be marked, none goes', async (t) => {
    let refused = 0
    const apiPath = intercepting((method, path, body) => {
      const isMark = method === 'PATCH' && path.endsWith('/nodes/node-n0') && body.includes('disrupted')
      if (isMark && refused === 0) refused++
      else return 'pass'
      return 'error'
    })
    // The third has room for all of them, so that nothing is launched.
    const story = { counts: [2, 2, 0], consolidateAfter: 'Never', drifted: 'n1', apiPath }
    const stage = await running(t, 4, story)
    const goingNow = () => ['n0', 'n1'].map((each) => isGoing(stage, each))
    await stage.world.clock.advanceUntil(() => refused > 0, 20 * minutes)
    assert.equal(refused, 1)
    for (let at = 0; at < 600; at++) {
      const now = goingNow()
      assert.equal(now[0], now[1], `at ${at}`)
      if (now[0] === true) break
      await stage.pass(500)
    }
    assert.deepEqual(goingNow(), [true, true])
  })

  test('GNG-25 a drifted node stays with its group where the budget is too small', async (t) => {
    const stage = await running(t, 4, {
      counts: [2, 2],
      consolidateAfter: 'Never',
      drifted: 'n1',
      budget: '1',
    })
    await stage.pass(50 * minutes)
    assert.equal(liveClaims(stage).length, 2)
    const events = blocked(stage, 'n0').filter((message) => /budget/.test(message))
    assert.equal(events.length, 1)
  })

  test('GNG-23 half of a group has ended: drift leaves the rest alone', async (t) => {
    const stage = await running(t, 4, { counts: [1, 1], consolidateAfter: 'Never', drifted: 'n1' })
    await stage.pass(30 * minutes)
    assert.equal(liveClaims(stage).length, 2)
    assert.match(blocked(stage, 'n0').join('\n'), /too few of their group would run .*running=2, minCount=4/)
  })

  test('GNG-21 with two spare members a node with two may go, one with three may not', async (t) => {
    const stage = await running(t, 3, { counts: [2, 3] })
    await stage.pass(3 * minutes)
    assert.equal(isGoing(stage, 'n0'), true)
    assert.equal(isGoing(stage, 'n1'), false)
    assert.match(blocked(stage, 'n1').join('\n'), /too few of their group would run/)
  })

  test('GNG-21 of two nodes that may go one goes at a time', async (t) => {
    const stage = await running(t, 3, { counts: [2, 2, 1] })
    await stage.pass(3 * minutes)
    assert.deepEqual(['n0', 'n1', 'n2'].map((name) => isGoing(stage, name)).filter(Boolean).length, 1)
  })

  test('GNG-23 half of a group has ended: the rest is left alone', async (t) => {
    const stage = await running(t, 4, { counts: [2] })
    await stage.pass(10 * minutes)
    assert.equal(isGoing(stage, 'n0'), false)
    assert.match(blocked(stage, 'n0').join('\n'), /running=2, minCount=4/)
  })

  test('GNG-24 nodes of a group stay as long as another group has pods there, and others on a node that is going away', async (t) => {
    const drifting: { node?: string } = {}
    const stage = await running(t, 4, { counts: [2, 2, 0], consolidateAfter: 'Never', drifting })
    group(stage, 'other', 2)
    const containers = [{ name: 'app', image: 'i', resources: { requests: { cpu: '100m' } } }]
    const other = { labels: { 'scheduling.x-k8s.io/pod-group': 'other' }, spec: { containers } }
    for (const name of ['a', 'b']) await stage.pod(`other-${name}`, 'node-n0', other)
    // They are not evicted.
    const held = { ...other, annotations: { 'karpenter.sh/do-not-disrupt': 'true' } }
    for (const name of ['c', 'd']) await stage.pod(`other-${name}`, 'node-n2', held)
    await stage.deleteClaim('n2')
    drifting.node = 'n1'
    await stage.pass(20 * minutes)
    assert.deepEqual(
      liveClaims(stage).map(({ metadata }) => metadata.name),
      ['n0', 'n1'],
    )
  })

  test('GNG-20 as long as groups cannot be read no node with their pods goes', async (t) => {
    const apiPath = intercepting((_, path) => (path.includes('/podgroups') ? 'error' : 'pass'))
    const stage = await running(t, 4, { counts: [2, 2], drifted: 'n1', apiPath })
    await stage.pass(10 * minutes)
    for (const name of ['n0', 'n1']) {
      assert.equal(isGoing(stage, name), false, name)
      assert.match(blocked(stage, name).join('\n'), /Whether its pods must run together is not known yet/)
    }
  })

  test('GNG-20 nodes of a known group stay as long as another group on them cannot be read', async (t) => {
    let isVolcanoRead = false
    const apiPath = intercepting((_, path) =>
      path.includes('scheduling.volcano.sh') && !isVolcanoRead ? 'error' : 'pass',
    )
    const stage = await running(t, 4, { counts: [2, 2], drifted: 'n1', apiPath })
    const annotations = { 'scheduling.k8s.io/group-name': 'other' }
    const containers = [{ name: 'app', image: 'i', resources: { requests: { cpu: '100m' } } }]
    await stage.pod('other', 'node-n0', { annotations, spec: { containers } })
    await stage.pass(10 * minutes)
    assert.equal(liveClaims(stage).length, 2)
    // There is no such group: the pod is like others.
    isVolcanoRead = true
    await stage.world.clock.advanceUntil(() => liveClaims(stage).length > 2, 10 * minutes)
  })
})
