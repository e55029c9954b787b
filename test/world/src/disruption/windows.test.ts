/** When nodes may go: schedules in time zones, windows of pods, and budgets after a pause. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { karpenterKinds, kinds, type NodeClaim } from '@tenon/api'
import { rfc3339 } from '@tenon/runtime'
import { hours, minutes, seconds, type Stage } from '../testing/stage.test-support.ts'
import {
  cpu,
  eventMessages,
  left,
  mediumLabels,
  openDisruption,
  setDrifted,
  tainted,
} from './disruption-stage.test-support.ts'

/** Lets time pass until 3 s before the moment. */
async function waitFor(stage: Stage, time: string): Promise<void> {
  await stage.pass(Date.parse(time) - stage.now - 3 * seconds)
}

/** When the first node of those that are left is on its way out, as RFC 3339. */
async function firstGoes(stage: Stage, withinMs: number): Promise<string | undefined> {
  const before = left(stage).length
  await stage.world.clock.advanceUntil(() => left(stage).length < before, withinMs)
  return left(stage).length < before ? rfc3339(stage.now) : undefined
}

function annotatePool(stage: Stage, values: Readonly<Record<string, string | null>>): void {
  stage.patch(karpenterKinds.nodePool, 'default', { metadata: { annotations: values } })
}

test('WNT-28 a budget follows the clocks of its zone, and a node goes when its window ends', async (t) => {
  // Pauses between passes are long, so that only the window wakes the loop.
  const rare = { disruptionPollMs: 12 * hours, validationDelayMs: 0 }
  const budgets = [{ nodes: '0', schedule: '30 2 * * *', duration: '5h' }]
  const startMs = Date.parse('2026-03-29T05:57:00Z')
  const stage = await openDisruption(t, { idle: true, startMs, settings: rare, disruption: { budgets } })
  annotatePool(stage, { 'tenon.sh/time-zone': 'Europe/Zurich' })
  await stage.start()
  await stage.ready('a')
  await waitFor(stage, '2026-03-29T06:00:00Z')
  assert.deepEqual(left(stage), ['a'], 'the window began at three by summer time, not at half past')
  const went = await firstGoes(stage, 30 * seconds)
  assert.ok(went !== undefined && went.startsWith('2026-03-29T06:00:0'), went)
})

test('WNT-28 a zone that cannot be read is named, and schedules follow UTC', async (t) => {
  const budgets = [{ nodes: '0', schedule: '0 0 * * *', duration: '23h' }]
  const startMs = Date.parse('2026-06-01T22:57:00Z')
  const stage = await openDisruption(t, { idle: true, startMs, disruption: { budgets } })
  annotatePool(stage, { 'tenon.sh/time-zone': 'Europe/Zürich' })
  await stage.start()
  const [event] = stage.events('AnnotationIgnored')
  assert.match(event?.message ?? '', /time-zone"\]: "Europe\/Zürich" .*; use a name of the IANA/)
  await stage.ready('a')
  const went = await firstGoes(stage, 10 * minutes)
  assert.match(went ?? '', /T23:00:/)
})

const windowsKey = 'tenon.sh/disruption-windows'
const weekend = 'Sat-Sun 00:00-06:00 Europe/Zurich'
/** A Friday; the weekend begins at 23:00 UTC. */
const friday = Date.parse('2026-01-02T22:57:00Z')
/** Passes are rare, so that windows wake the loop. */
const settings = { disruptionPollMs: 70 * seconds, validationDelayMs: 0 }

/** Two nodes with a pod each, which would fit on one. */
async function twoHalves(stage: Stage, annotations: Readonly<Record<string, string>> = {}): Promise<void> {
  for (const name of ['a', 'b']) {
    await stage.ready(name, {}, { labels: mediumLabels } satisfies Partial<NodeClaim['metadata']>)
    await stage.pod(`pod-${name}`, `node-${name}`, { ...cpu('1'), annotations, uid: `pod-${name}` })
  }
}

test('WNT-29 a pod outside its windows holds its node, which goes when a window begins', async (t) => {
  const stage = await openDisruption(t, {
    startMs: friday,
    disruption: { budgets: [{ nodes: '0' }] },
    settings,
  })
  await twoHalves(stage, { [windowsKey]: weekend })
  stage.patch(karpenterKinds.nodePool, 'default', { spec: { disruption: { budgets: [{ nodes: '1' }] } } })
  await waitFor(stage, '2026-01-02T23:00:00Z')
  assert.deepEqual(left(stage), ['a', 'b'])
  assert.match(
    eventMessages(stage, 'DisruptionBlocked', 'Node/node-a').join('\n'),
    /outside its disruption windows \(Pod=default\/pod-a.*begins at 2026-01-02T23:00:00Z/,
  )
  const went = await firstGoes(stage, 2 * minutes)
  assert.ok(went?.startsWith('2026-01-02T23:00:0'), went)
})

test('WNT-29 a namespace gives windows to its pods; their own come first', async (t) => {
  const stage = await openDisruption(t, { startMs: friday, disruption: { budgets: [{ nodes: '0' }] } })
  await twoHalves(stage)
  stage.patch(kinds.namespace, 'default', { metadata: { annotations: { [windowsKey]: weekend } } })
  stage.patch(karpenterKinds.nodePool, 'default', { spec: { disruption: { budgets: [{ nodes: '1' }] } } })
  await stage.pass(minutes)
  assert.deepEqual(left(stage), ['a', 'b'])
  const open = { metadata: { annotations: { [windowsKey]: '00:00-24:00' } } }
  stage.patch(kinds.pod, 'pod-a', open, undefined, 'default')
  const went = await firstGoes(stage, 30 * seconds)
  assert.ok(
    went !== undefined && left(stage).includes('b'),
    'the pod of the other node has no windows of its own',
  )
})

test('WNT-30 windows that cannot be read are named on the pod, once a workload, and protect nothing', async (t) => {
  const stage = await openDisruption(t, { startMs: friday })
  await twoHalves(stage, { [windowsKey]: 'on weekends' })
  const went = await firstGoes(stage, 2 * minutes)
  assert.ok(went !== undefined)
  const [event] = stage.events('AnnotationIgnored')
  assert.equal(event?.object, 'Pod/pod-a')
  assert.match(
    event.message,
    /disruption-windows"\]: it cannot be read .*"on weekends" is not a window; use windows/,
  )
})

test('pods outside their windows stay on a node that drains, and leave it when a window begins', async (t) => {
  const stage = await openDisruption(t, { startMs: friday, disruption: { consolidateAfter: 'Never' } })
  await twoHalves(stage, { [windowsKey]: weekend })
  await stage.deleteClaim('a')
  await waitFor(stage, '2026-01-02T23:00:00Z')
  assert.equal(stage.isLeaving('pod-a'), false)
  await stage.pass(20 * seconds)
  assert.equal(stage.podNow('pod-a') === undefined || stage.isLeaving('pod-a'), true)
})

test('with --compatibility=karpenter windows of pods and zones of schedules are not read', async (t) => {
  const karpenter = { compatibility: 'karpenter' } as const
  const stage = await openDisruption(t, { startMs: friday, settings: karpenter })
  await twoHalves(stage, { [windowsKey]: 'on weekends' })
  assert.ok((await firstGoes(stage, 5 * minutes)) !== undefined)
  assert.deepEqual(stage.events('AnnotationIgnored'), [])
})

for (const [how, ended] of [
  ['ends by its time', (time: string) => ({ 'tenon.sh/paused': time })],
  ['is resumed', (time: string) => ({ 'tenon.sh/paused': null, 'tenon.sh/resumed': time })],
] as const)
  test(`WNT-32 after a pause that ${how} nodes go one, two, four … at a time, over a restart too, within the budget`, async (t) => {
    const stage = await openDisruption(t, { disruption: { consolidateAfter: 'Never' } })
    const names = Array.from({ length: 12 }, (_, at) => `n${at}`)
    const paused = { 'tenon.sh/paused': rfc3339(stage.now + 2 * hours) }
    annotatePool(stage, paused)
    for (const name of names) {
      await stage.ready(name)
      await stage.pod(`pod-${name}`, `node-${name}`, cpu('3'))
    }
    setDrifted(stage, ...names)
    await stage.pass(6 * minutes)
    assert.deepEqual(tainted(stage), [])
    const endMs = stage.now
    annotatePool(stage, ended(rfc3339(endMs)))
    await stage.restart()
    const inStep = async (step: number) => {
      await stage.pass(endMs + (step + 1) * 2 * minutes - stage.now - 5 * seconds)
      return tainted(stage).length
    }
    assert.equal(await inStep(0), 1)
    assert.equal(await inStep(1), 2)
    assert.equal(await inStep(2), 4)
    assert.equal(await inStep(3), 8)
    await stage.pass(3 * minutes)
    assert.ok(tainted(stage).length > 8)
  })
