/** When the nodes of a group open, and what is told of one that the scheduler is silent about (gangs.md 5.4, 7.4). */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { kinds, type NodeClaim } from '@tenon/api'
import { rfc3339 } from '@tenon/runtime'
import { aType, unscheduled, waitingPod } from '../testing/pools.test-support.ts'
import { minutes, seconds, type Stage } from '../testing/stage.test-support.ts'
import { bind, group, isClosed, liveClaims, members, openGangs } from './gang-stage.test-support.ts'

const annotation = 'tenon.sh/group'

/** The instances join, and all of their nodes are Ready at one moment. */
async function readyAtOnce(stage: Stage, claims: readonly NodeClaim[]): Promise<void> {
  for (const { metadata } of claims) await stage.join(metadata.name)
  const amounts = { cpu: '4', memory: '8Gi', pods: '110' }
  const at = rfc3339(stage.now)
  const condition = { type: 'Ready', status: 'True', reason: 'Kubelet', message: '' }
  const times = { lastHeartbeatTime: at, lastTransitionTime: at }
  const status = { capacity: amounts, allocatable: amounts, conditions: [{ ...condition, ...times }] }
  for (const { metadata } of claims) stage.patch(kinds.node, `node-${metadata.name}`, { status }, 'status')
}

describe('ordinary pods that fit on the nodes of a group', () => {
  /** A group of two on two nodes of 4 CPU, and a pod of 2 CPU with a node of its own; all of them are Ready. */
  async function joined(t: Parameters<typeof openGangs>[0], cpu = '2') {
    const { stage } = await openGangs(t, { types: [aType('type-4', 4)] })
    group(stage, 'train', 2)
    members(stage, 'train', 2)
    waitingPod(stage, 'small', { cpu })
    await stage.pass(15 * seconds)
    const claims = liveClaims(stage)
    assert.equal(claims.length, 3)
    const isOfGroup = ({ metadata }: (typeof claims)[number]) =>
      metadata.annotations?.[annotation] !== undefined
    await readyAtOnce(stage, claims)
    const own = claims.filter((claim) => !isOfGroup(claim)).map(({ metadata }) => metadata.name)[0] ?? ''
    return { stage, own, ofGroup: claims.filter(isOfGroup).map(({ metadata }) => metadata.name) }
  }

  test('GNG-17 their own nodes open first, and those of the group once they are bound', async (t) => {
    const { stage, own, ofGroup } = await joined(t)
    await stage.pass(3 * seconds)
    assert.equal(isClosed(stage, own), false)
    for (const name of ofGroup) assert.ok(isClosed(stage, name), name)
    bind(stage, 'small', `node-${own}`)
    await stage.pass(1 * seconds)
    for (const name of ofGroup) assert.ok(!isClosed(stage, name), name)
  })

  test('GNG-17 they are waited for no longer than 5 s', async (t) => {
    const { stage, ofGroup } = await joined(t)
    await stage.pass(4 * seconds)
    for (const name of ofGroup) assert.ok(isClosed(stage, name), name)
    await stage.pass(3 * seconds)
    for (const name of ofGroup) assert.ok(!isClosed(stage, name), name)
  })

  test('GNG-17 those that fit on none of them are not waited for', async (t) => {
    const { stage } = await openGangs(t, { types: [aType('type-4', 4), aType('type-16', 16)] })
    group(stage, 'train', 2)
    members(stage, 'train', 2)
    waitingPod(stage, 'large', { cpu: '15' })
    await stage.pass(15 * seconds)
    const claims = liveClaims(stage)
    const small = claims.filter(({ metadata }) => metadata.annotations?.[annotation] !== undefined)
    assert.ok(small.length > 0)
    await readyAtOnce(stage, small)
    await stage.pass(1 * seconds)
    for (const { metadata } of small) assert.ok(!isClosed(stage, metadata.name), metadata.name)
  })
})

/** The scheduler has tried a pod and refuses it. */
function refusedNow(stage: Stage) {
  const status = unscheduled()
  const lastTransitionTime = rfc3339(stage.now)
  return {
    status: { ...status, conditions: status.conditions?.map((each) => ({ ...each, lastTransitionTime })) },
  }
}

test('a member that waits for the rest of its group says nothing against its node', async (t) => {
  const { stage } = await openGangs(t)
  group(stage, 'train', 2)
  members(stage, 'train', 2)
  await stage.pass(15 * seconds)
  const claims = liveClaims(stage)
  await readyAtOnce(stage, claims)
  await stage.pass(5 * seconds)
  // One of the nodes is full before the scheduler comes to the group, and another is launched, which takes a while.
  for (const [at, { metadata }] of claims.entries()) {
    const name = `stranger-${at}`
    waitingPod(stage, name, { cpu: ['2', '500m'][at] ?? '' })
    bind(stage, name, `node-${metadata.name}`)
  }
  for (const name of ['train-0', 'train-1'])
    stage.patch(kinds.pod, name, refusedNow(stage), 'status', 'default')
  await stage.pass(10 * seconds)
  assert.equal(liveClaims(stage).length, 3)
  await stage.pass(4 * minutes)
  assert.deepEqual(stage.events('NodeRefused'), [])
})

describe('groups that the scheduler says nothing of', () => {
  const silent = { phase: 'Pending' } as const

  test('GNG-1 what they wait for is told once their pods have come', async (t) => {
    const { stage } = await openGangs(t)
    group(stage, 'train', 4)
    members(stage, 'train', 2, 0, silent)
    await stage.pass(5 * seconds)
    assert.deepEqual(stage.events('GroupWaitingForMembers'), [])
    await stage.pass(25 * seconds)
    const told = stage.events('GroupWaitingForMembers')
    assert.deepEqual(new Set(told.map(({ object }) => object)), new Set(['PodGroup/train', 'Pod/train-0']))
    assert.match(told[0]?.message ?? '', /train runs with at least 4 pods and has 2/)
    assert.deepEqual(liveClaims(stage), [])
  })

  test('GNG-2 that there is no such group is told on a pod', async (t) => {
    const { stage } = await openGangs(t)
    members(stage, 'train', 2, 0, silent)
    await stage.pass(30 * seconds)
    const [told] = stage.events('GroupWaitingForMembers')
    assert.equal(told?.object, 'Pod/train-0')
    assert.match(told?.message ?? '', /default\/train does not exist/)
    assert.deepEqual(liveClaims(stage), [])
  })

  test('a group that is complete is left to the scheduler', async (t) => {
    const { stage } = await openGangs(t)
    group(stage, 'train', 2)
    members(stage, 'train', 2, 0, silent)
    await stage.pass(30 * seconds)
    assert.deepEqual(stage.events('GroupWaitingForMembers'), [])
  })
})
