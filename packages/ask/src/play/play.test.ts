import assert from 'node:assert/strict'
import { test } from 'node:test'
import { karpenterKinds, kinds, type KubeObject, type Pod } from '@tenon/api'
import { Play, type TimedChange } from './play.ts'
import { aPod, aPool, aReplicaSet, hourMs, minuteMs, options, startMs } from './play.test-support.ts'

/** Eight pods at once, six of which go after half an hour. */
function eightThenTwo(): readonly TimedChange[] {
  const names = Array.from({ length: 8 }, (_, index) => `web-${index}`)
  const changes = names.flatMap((id, index): TimedChange[] => [
    { atMs: startMs + minuteMs, change: { kind: 'podAdded', id, pod: aPod(id, 'web', '1500m') } },
    ...(index < 2
      ? []
      : [{ atMs: startMs + 30 * minuteMs, change: { kind: 'podEnded', id } } satisfies TimedChange]),
  ])
  return changes.toSorted((a, b) => a.atMs - b.atMs)
}

async function played(changes: readonly TimedChange[], untilMs: number): Promise<Play> {
  const play = await Play.start(options([aPool(), aReplicaSet('web')]))
  await play.run(changes, untilMs)
  return play
}

const isRunning = ({ status }: Pod): boolean => status?.phase === 'Running'

test('EXP-14 pods get nodes, which shrink with them, and every hour is billed', async () => {
  const play = await played(eightThenTwo(), startMs + 2 * hourMs)
  const report = await play.report()
  assert.deepEqual(play.list(kinds.pod).map(isRunning), [true, true])
  assert.equal(report.pending.count >= 8, true)
  // A batch of a second, a minute for the instance, five seconds for the pod.
  assert.equal((report.pending.p99Ms ?? 0) <= 70_000, true, `${report.pending.p99Ms}`)
  assert.equal(report.hours.length, 2)
  const [first, second] = report.hours
  assert.equal((first?.cost ?? 0) > (second?.cost ?? 0), true)
  // Two pods of 1.5 cores fit in one node of four.
  assert.equal(report.pricePerHour, 0.2)
  assert.equal(report.instances, 1)
  assert.equal(report.unpricedInstances, 0)
  assert.equal(Math.abs(report.cost - (first?.cost ?? 0) - (second?.cost ?? 0)) < 1e-9, true)
  await play.stop()
})

test('EXP-14 the same play twice gives the same report', async () => {
  const reports = []
  for (let run = 0; run < 2; run++) {
    const play = await played(eightThenTwo(), startMs + hourMs)
    reports.push(await play.report())
    await play.stop()
  }
  assert.deepEqual(reports[0], reports[1])
})

test('EXP-14 a restored cluster goes on as it was: nothing is launched, and its pods stay Ready', async () => {
  const changes = eightThenTwo().filter(({ change }) => change.kind === 'podAdded')
  const before = await played(changes, startMs + 10 * minuteMs)
  const objects: readonly KubeObject[] = [
    ...before.list(karpenterKinds.nodePool),
    ...before.list(karpenterKinds.nodeClaim),
    ...before.list(kinds.node),
    ...before.list(kinds.pod),
  ]
  const price = (await before.report()).pricePerHour
  await before.stop()
  const play = await Play.start(options(objects, { startMs: startMs + 10 * minuteMs }))
  await play.runTo(startMs + 15 * minuteMs)
  const report = await play.report()
  assert.equal(report.launches, 0)
  assert.equal(report.evictions, 0)
  assert.equal(report.pricePerHour, price)
  assert.equal(play.list(kinds.pod).filter(isRunning).length, 8)
  await play.stop()
})

test('EXP-14 pods whose ServiceAccount the facts do not contain are played as others', async () => {
  const pod = aPod('web-0', 'web', '1')
  const spec: Pod['spec'] & { readonly serviceAccountName: string } = {
    ...pod.spec,
    serviceAccountName: 'robot',
  }
  const change = { kind: 'podAdded', id: 'web-0', pod: { ...pod, spec } } as const
  const play = await played([{ atMs: startMs, change }], startMs + 5 * minuteMs)
  assert.deepEqual(play.list(kinds.pod).map(isRunning), [true])
  await play.stop()
})
