/** Rollouts that make a few replacements first, and stop when these are unhealthy (ask.md 9). */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { conditionOf, karpenterKinds, kinds, type Node, type NodePool } from '@tenon/api'
import { rfc3339 } from '@tenon/runtime'
import { cpu, openDisruption, tainted, eventMessages } from '../disruption/disruption-stage.test-support.ts'
import { minutes, seconds, type Stage } from '../testing/stage.test-support.ts'

const still = { consolidateAfter: 'Never', budgets: [{ nodes: '10' }] } as const
const canary = { 'tenon.sh/rollout-canary': '2', 'tenon.sh/rollout-max-unhealthy': '1' }

function annotate(stage: Stage, annotations: Readonly<Record<string, string | null>>): void {
  stage.patch(karpenterKinds.nodePool, 'default', { metadata: { annotations } })
}

/** A pool of nodes `n0` and so on with a pod each, all of which have drifted; replacements are not. */
async function drifted(
  t: TestContext,
  count: number,
  annotations: Readonly<Record<string, string>>,
): Promise<Stage> {
  const stage = await openDisruption(t, { disruption: still })
  annotate(stage, annotations)
  const claims = Array.from({ length: count }, (_, i) => `n${i}`)
  // All at once: one after the other would take as long as the rollout.
  for (const name of claims) stage.world.create(karpenterKinds.nodeClaim, stage.aClaim(name))
  await stage.pass(2 * seconds)
  await Promise.all(claims.map((name) => stage.join(name)))
  await Promise.all(claims.map((name) => stage.report(`node-${name}`)))
  await Promise.all(claims.map((name) => stage.pod(`on-${name}`, `node-${name}`, cpu('3'))))
  stage.cloud.onIsDrifted = ({ metadata }) => (isOld(metadata.name) ? 'ImageChanged' : undefined)
  return stage
}

const isReady = ({ status }: Node): boolean =>
  (status?.conditions ?? []).some(({ type, status: is }) => type === 'Ready' && is === 'True')

const isOld = (name: string): boolean => /^n\d+$/.test(name)

const names = (stage: Stage): readonly string[] => stage.world.claims().map(({ metadata }) => metadata.name)

/** How many of the old nodes are there and not on their way out. */
const old = (stage: Stage): number =>
  stage.world
    .claims()
    .filter(({ metadata }) => isOld(metadata.name) && metadata.deletionTimestamp === undefined).length

/**
 * Lets time pass. Instances of new claims join and become Ready; those of a bad image stop being so half a minute later.
 * Pods that are told to go are gone.
 */
async function live(stage: Stage, forMinutes: number, isBad: () => boolean): Promise<void> {
  for (let i = 0; i < forMinutes * 6; i++) {
    await stage.pass(10 * seconds)
    for (const { metadata } of stage.world.pods())
      if (metadata.deletionTimestamp !== undefined) await stage.end(metadata.name)
    for (const name of names(stage)) {
      const node = stage.nodeNow(`node-${name}`)
      if (isOld(name)) continue
      if (node === undefined && stage.claimNow(name)?.status?.providerID !== undefined) {
        await stage.join(name)
        await stage.report(`node-${name}`)
        joinedMs.set(name, stage.now)
      } else if (
        node !== undefined &&
        isReady(node) &&
        isBad() &&
        stage.now - (joinedMs.get(name) ?? 0) > 30 * seconds
      )
        await stage.report(`node-${name}`, 'Unknown')
      await fill(stage, name)
    }
  }
}

/** The node is full, as if it had taken the pods that it was launched for. */
async function fill(stage: Stage, claim: string): Promise<void> {
  const node = `node-${claim}`
  const isFull = stage.world.pods().some(({ spec }) => spec.nodeName === node)
  if (stage.nodeNow(node) === undefined || isFull) return
  await stage.pod(`on-${claim}-${stage.now}`, node, cpu('3'))
}

const joinedMs = new Map<string, number>()

const halted = (stage: Stage) => conditionOf(stage.poolNow() as NodePool, 'RolloutHalted')

test('EXP-23 a bad image in a pool of 100 with canary 2 costs two nodes, and goes on after the fix', async (t) => {
  const stage = await drifted(t, 100, { ...canary, 'tenon.sh/rollout-watch': '4m' })
  let isBad = true
  await live(stage, 10, () => isBad)
  assert.equal(old(stage), 98)
  assert.deepEqual([halted(stage)?.status, halted(stage)?.reason], ['True', 'ReplacementsUnhealthy'])
  assert.match(halted(stage)?.message ?? '', /ImageChanged.*2 replacements are unhealthy/)
  for (const name of names(stage).filter((each) => !isOld(each)))
    assert.ok(halted(stage)?.message.includes(name), name)
  assert.equal(eventMessages(stage, 'RolloutHalted', 'NodePool/default').length, 1)
  isBad = false
  for (const name of names(stage)) if (!isOld(name)) await stage.report(`node-${name}`)
  stage.patch(karpenterKinds.nodePool, 'default', { spec: { weight: 7 } })
  await live(stage, 3, () => false)
  assert.equal(old(stage), 96, 'the canaries are watched')
  assert.equal(halted(stage)?.status, 'False')
  for (let i = 0; i < 6 && old(stage) >= 90; i++) await live(stage, 1, () => false)
  assert.ok(old(stage) < 90, `${old(stage)} old nodes are left`)
})

test('EXP-23 without the annotation a bad image costs as much as budgets allow', async (t) => {
  const stage = await drifted(t, 20, {})
  await live(stage, 15, () => true)
  assert.ok(old(stage) <= 10, `${old(stage)} old nodes are left`)
  assert.equal(halted(stage), undefined)
  assert.equal(stage.poolNow()?.metadata.annotations?.['tenon.sh/rollout-state'], undefined)
})

test('EXP-23 a process that dies at any moment of the rollout replaces no more than the canaries', async (t) => {
  const stage = await drifted(t, 12, canary)
  for (let i = 0; i < 12; i++) {
    await live(stage, 1, () => i > 6)
    await stage.restart()
  }
  await live(stage, 20, () => true)
  assert.equal(old(stage), 10)
  assert.equal(halted(stage)?.status, 'True')
  await stage.restart()
  await live(stage, 5, () => true)
  assert.equal(old(stage), 10)
  annotate(stage, { 'tenon.sh/rollout-state': null })
  for (const name of names(stage)) if (!isOld(name)) await stage.report(`node-${name}`)
  await live(stage, 10, () => false)
  assert.equal(old(stage), 8, 'it goes on, with canaries again')
  assert.equal(halted(stage)?.status, 'False')
})

test('EXP-23 moved pods that are not Ready at the end of the watch halt the rollout, those that were not before do not', async (t) => {
  for (const wasReady of [true, false]) {
    const stage = await openDisruption(t, { disruption: still })
    annotate(stage, { 'tenon.sh/rollout-canary': '1', 'tenon.sh/rollout-watch': '2m' })
    const owner = { apiVersion: 'example.com/v1', kind: 'App', name: 'web', uid: 'uid-web', controller: true }
    const ready = (is: boolean) => ({
      status: {
        phase: 'Running' as const,
        conditions: [
          {
            type: 'Ready',
            status: is ? ('True' as const) : ('False' as const),
            lastTransitionTime: rfc3339(stage.now),
          },
        ],
      },
    })
    for (const name of ['n0', 'n1']) {
      await stage.ready(name)
      await stage.pod(`on-${name}`, `node-${name}`, {
        ...cpu('3'),
        ownerReferences: [owner],
        ...ready(wasReady),
      })
    }
    stage.cloud.onIsDrifted = ({ metadata }) => (isOld(metadata.name) ? 'ImageChanged' : undefined)
    const fresh = () =>
      names(stage).find((name) => !isOld(name) && stage.nodeNow(`node-${name}`) !== undefined)
    for (let i = 0; i < 8 && fresh() === undefined; i++) await live(stage, 1, () => false)
    await stage.pod('successor', `node-${fresh() ?? ''}`, {
      ...cpu('1'),
      ownerReferences: [owner],
      ...ready(false),
    })
    await live(stage, 6, () => false)
    assert.equal(halted(stage)?.status, wasReady ? 'True' : undefined)
    if (wasReady) assert.match(halted(stage)?.message ?? '', /1 of 1 moved pods are not Ready/)
  }
})

test('EXP-23 settings that cannot be used hold the rollout up, and say what to write', async (t) => {
  const stage = await drifted(t, 2, { ...canary, 'tenon.sh/rollout-watch': 'soon' })
  await live(stage, 10, () => false)
  assert.equal(old(stage), 2)
  assert.equal(halted(stage)?.reason, 'InvalidSettings')
  assert.match(halted(stage)?.message ?? '', /rollout-watch"\]: "soon" cannot be used; use a duration/)
  annotate(stage, { 'tenon.sh/rollout-watch': '1m' })
  await live(stage, 10, () => false)
  assert.equal(old(stage), 0)
})

test('EXP-23 a paused rollout takes back what is under way, and goes on after that', async (t) => {
  const stage = await drifted(t, 3, {})
  await stage.world.clock.advanceUntil(() => tainted(stage).length > 0, 60 * seconds)
  annotate(stage, { 'tenon.sh/rollout-paused': 'true' })
  await stage.pass(1100)
  assert.deepEqual(tainted(stage), [])
  await live(stage, 10, () => false)
  assert.equal(old(stage), 3)
  annotate(stage, { 'tenon.sh/rollout-paused': null })
  await live(stage, 10, () => false)
  assert.equal(old(stage), 0)
})

test('EXP-24 the last three templates are kept, without status, and no more', async (t) => {
  const stage = await openDisruption(t, { disruption: still })
  for (const value of ['a', 'b', 'c', 'd', 'e']) {
    const template = { metadata: { labels: { 'example.com/edit': value } } }
    stage.patch(karpenterKinds.nodePool, 'default', { spec: { template } })
    await stage.pass(1 * minutes)
  }
  stage.patch(karpenterKinds.nodePool, 'default', { spec: { weight: 3 } })
  await stage.pass(1 * seconds)
  await stage.restart()
  const text = stage.poolNow()?.metadata.annotations?.['tenon.sh/rollout-history'] ?? '[]'
  const kept = JSON.parse(text) as readonly { template: NodePool['spec']['template'] }[]
  const edits = kept.map(({ template }) => template.metadata?.labels?.['example.com/edit'])
  assert.deepEqual(edits, ['d', 'c', 'b'])
  assert.equal(text.includes('status'), false)
  assert.equal(stage.world.cluster.server.local.list(kinds.node).length, 0)
})
