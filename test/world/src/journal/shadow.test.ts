import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type ShadowComparison, ShadowReader } from '@tenon/ask/report'
import { kinds } from '@tenon/api'
import type { JournalEntry } from '@tenon/operator'
import { Misshapen, put } from '../bad-objects/misshapen-objects.test-support.ts'
import { openDisruption } from '../disruption/disruption-stage.test-support.ts'
import { aType, waitingPod } from '../testing/pools.test-support.ts'
import { hours, minutes, seconds, type Stage } from '../testing/stage.test-support.ts'
import { launch, remove } from './other-autoscaler.test-support.ts'

const small = aType('small', 2)
const large = aType('large', 8)

async function anObserver(t: TestContext): Promise<Stage> {
  return await openDisruption(t, { types: [small, large], settings: { observeOnly: true } })
}

const journalOf = (stage: Stage): readonly JournalEntry[] => [...stage.operator.operator.journal.entries()]

function compared(
  entries: Iterable<JournalEntry>,
  window: { readonly fromMs?: number; readonly toMs: number },
): ShadowComparison {
  const reader = new ShadowReader({ fromMs: Number.NEGATIVE_INFINITY, ...window })
  for (const entry of entries) reader.add(entry)
  return reader.result()
}

function endPod(stage: Stage, name: string): void {
  stage.world.cluster.server.local.delete(kinds.pod, 'default', name, { gracePeriodSeconds: 0 })
}

/** The scheduler has found a node. */
function bind(stage: Stage, pod: string, node: string): void {
  stage.patch(kinds.pod, pod, { spec: { nodeName: node } }, undefined, 'default')
  stage.patch(kinds.pod, pod, { status: { phase: 'Running' } }, 'status', 'default')
}

interface RunningJob {
  readonly node: string
  readonly cpu: number
  readonly untilMs: number
}

interface Job {
  readonly name: string
  readonly cpu: number
  readonly runMs: number
}

/** An autoscaler that puts pods on the first node with room, launches the first type, and removes nodes that stay empty. */
class FirstFit {
  readonly #stage: Stage
  readonly #free = new Map<string, number>()
  readonly #jobs = new Map<string, RunningJob>()
  readonly #emptySinceMs = new Map<string, number>()
  readonly #launchedMs = new Map<string, number>()
  #count = 0
  /** Of nodes that are gone. */
  #paidHours = 0

  constructor(stage: Stage) {
    this.#stage = stage
  }

  get launches(): number {
    return this.#count
  }

  get paid(): number {
    const running = Array.from(this.#launchedMs.values(), (ms) => (this.#stage.now - ms) / hours)
    return 0.4 * running.reduce((sum, each) => sum + each, this.#paidHours)
  }

  /** Finds a node for a pod that waits. */
  place({ name, cpu, runMs }: Job): void {
    const node = this.#nodeFor(cpu)
    bind(this.#stage, name, `node-${node}`)
    this.#free.set(node, (this.#free.get(node) ?? 0) - cpu)
    this.#jobs.set(name, { node, cpu, untilMs: this.#stage.now + runMs })
  }

  #nodeFor(cpu: number): string {
    for (const [node, free] of this.#free) if (free >= cpu) return node
    const name = `first-fit-${this.#count++}`
    launch(this.#stage, name, large)
    this.#free.set(name, 8)
    this.#launchedMs.set(name, this.#stage.now)
    return name
  }

  tidy(): void {
    const { now } = this.#stage
    for (const [name, { cpu, node, untilMs }] of this.#jobs) {
      if (now < untilMs) continue
      endPod(this.#stage, name)
      this.#jobs.delete(name)
      this.#free.set(node, (this.#free.get(node) ?? 0) + cpu)
    }
    for (const [node, free] of this.#free) {
      if (free < 8) this.#emptySinceMs.delete(node)
      else if (!this.#emptySinceMs.has(node)) this.#emptySinceMs.set(node, now)
      else if (now - (this.#emptySinceMs.get(node) ?? now) >= 2 * minutes) this.#remove(node)
    }
  }

  #remove(node: string): void {
    remove(this.#stage, node)
    this.#free.delete(node)
    this.#emptySinceMs.delete(node)
    this.#paidHours += (this.#stage.now - (this.#launchedMs.get(node) ?? 0)) / hours
    this.#launchedMs.delete(node)
  }
}

/** The sum of the differences is the difference of the sums. */
function assertAddsUp({ cases, cost, otherCases }: ShadowComparison): void {
  assert.ok(cost !== undefined)
  const differences = cases.reduce((sum, { difference }) => sum + difference, otherCases.difference)
  assert.ok(Math.abs(differences - (cost.tenon - cost.other)) < 1e-6)
  assert.ok(Math.abs(cost.byLaunches + cost.byMoves - cost.difference) < 1e-6)
}

test('ADO-7 an hour beside first fit has both prices, and differences that sum up to the difference of sums', async (t) => {
  const stage = await anObserver(t)
  const other = new FirstFit(stage)
  const startMs = stage.now
  for (let tick = 0; stage.now < startMs + hours; tick++) {
    const job = { name: `job-${tick}`, cpu: 1.5 + (tick % 4) * 1.5, runMs: (4 + (tick % 5)) * minutes }
    if (tick % 5 === 0) waitingPod(stage, job.name, { cpu: String(job.cpu) })
    await stage.pass(20 * seconds)
    if (tick % 5 === 0) other.place(job)
    other.tidy()
    await stage.pass(20 * seconds)
  }
  const report = compared(journalOf(stage), { toMs: stage.now })
  assertAddsUp(report)
  const { cost, covered, launches, notCompared, waiting } = report
  assert.ok(other.launches > 3 && launches.other === other.launches)
  // Nodes are noted every ten seconds.
  assert.ok(Math.abs((cost?.other ?? 0) - other.paid) < (2 * other.launches * 10 * 0.4) / 3600)
  assert.ok((cost?.tenon ?? 0) > 0 && (cost?.tenon ?? 0) < (cost?.other ?? 0))
  assert.ok((cost?.byLaunches ?? 0) < 0)
  assert.deepEqual(launches.byType.map(({ instanceType }) => instanceType).toSorted(), ['large', 'small'])
  assert.ok(launches.tenon > 0 && waiting.pods > 0 && waiting.tenonSeconds < waiting.otherSeconds)
  assert.ok(Math.abs((covered?.hours ?? 0) - 1) < 0.01)
  assert.deepEqual([notCompared.unpricedHours, notCompared.undecidedHours, report.leftPodCount], [0, 0, 0])
  assert.equal(stage.cloud.count('create'), 0)
})

test('ADO-7 a pod that Tenon would have left without a node is a case, and its node in no cost', async (t) => {
  const stage = await anObserver(t)
  waitingPod(stage, 'huge', { cpu: '30' })
  await stage.pass(30 * seconds)
  launch(stage, 'huge', aType('huge', 32))
  await stage.pass(20 * seconds)
  bind(stage, 'huge', 'node-huge')
  await stage.pass(hours)
  const report = compared(journalOf(stage), { toMs: stage.now })
  assert.deepEqual(
    report.leftPods.map(({ node, pod }) => [pod, node]),
    [['default/huge', 'node-huge']],
  )
  assert.match(report.leftPods[0]?.why ?? '', /cpu/)
  assert.equal(report.cost, undefined)
  assert.deepEqual(report.notCompared.types, ['huge'])
  assert.ok(report.notCompared.undecidedHours > 0.9)
})

test('ADO-7 a node that came before Tenon had decided is not compared', async (t) => {
  const stage = await anObserver(t)
  waitingPod(stage, 'fast', { cpu: '1' })
  launch(stage, 'fast', large)
  bind(stage, 'fast', 'node-fast')
  await stage.pass(30 * seconds)
  // A pod without a scheduler's verdict that went there at once says nothing, either.
  await stage.pass(hours)
  const { cost, launches, notCompared } = compared(journalOf(stage), { toMs: stage.now })
  assert.deepEqual([cost, launches.other, launches.tenon], [undefined, 1, 0])
  assert.ok(notCompared.undecidedHours > 0.9 && notCompared.undecidedCost > 0.36)
})

test('ADO-7 a restart is said, and both begin anew with the nodes that exist', async (t) => {
  const stage = await anObserver(t)
  waitingPod(stage, 'pod', { cpu: '1' })
  await stage.pass(20 * seconds)
  launch(stage, 'one', large)
  bind(stage, 'pod', 'node-one')
  await stage.pass(30 * minutes)
  const before = journalOf(stage)
  const stoppedMs = stage.now
  await stage.world.bury(stage.operator)
  await stage.pass(20 * minutes)
  await stage.start()
  await stage.pass(30 * minutes)
  const report = compared([...before, ...journalOf(stage)], { toMs: stage.now })
  assertAddsUp(report)
  assert.deepEqual([report.restarts, report.gapCount], [1, 1])
  assert.ok(Math.abs(report.gapHours - 20 / 60) < 0.1 && (report.covered?.hours ?? 0) < 1.05)
  // As long as the first process ran, and nothing of the gap.
  const first = compared(before, { toMs: stoppedMs })
  assert.ok(first.cost !== undefined && first.cost.byLaunches < 0)
})

test('ADO-7 a controller that acts notes nothing of what others do', async (t) => {
  const stage = await openDisruption(t, { types: [small, large] })
  launch(stage, 'theirs', large)
  waitingPod(stage, 'pod', { cpu: '1' })
  await stage.pass(10 * minutes)
  assert.deepEqual(
    journalOf(stage).filter(({ kind }) => kind === 'seen'),
    [],
  )
})

test('a pod of another shape than the API promises holds up no comparison', async (t) => {
  const misshapen = new Misshapen()
  const stage = await openDisruption(t, {
    types: [small, large],
    settings: { observeOnly: true },
    apiPath: misshapen.path,
  })
  const bends: readonly (readonly [string, unknown])[] = [
    ['spec', undefined],
    ['spec.nodeName', 5],
    ['status.conditions', 'x'],
    ['metadata.ownerReferences', 'x'],
    ['metadata.labels', 'x'],
  ]
  waitingPod(stage, 'bad', { cpu: '1' })
  for (const [index, [path, value]] of bends.entries()) {
    misshapen.bend('Pod', 'bad', put(path, value))
    stage.patch(
      kinds.pod,
      'bad',
      { metadata: { annotations: { step: String(index) } } },
      undefined,
      'default',
    )
    waitingPod(stage, `good-${index}`, { cpu: '6' })
    await stage.pass(30 * seconds)
    launch(stage, `n-${index}`, large)
    bind(stage, `good-${index}`, `node-n-${index}`)
    await stage.pass(30 * seconds)
  }
  bind(stage, 'bad', 'node-n-0')
  await stage.pass(minutes)
  const report = compared(journalOf(stage), { toMs: stage.now })
  assertAddsUp(report)
  assert.deepEqual([report.launches.other, report.launches.tenon, report.waiting.pods >= 5], [5, 5, true])
})
