import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JournalEntry, JournalNote } from '@tenon/operator'
import { entryFrom } from '@tenon/operator/objects'
import { rfc3339Micro } from '@tenon/runtime'
import { type ShadowComparison, ShadowReader } from './shadow.ts'

const startMs = Date.parse('2026-11-20T08:00:00Z')
const minuteMs = 60_000
const hourMs = 60 * minuteMs

/** Entries with times in minutes since the start. */
class Story {
  readonly entries: JournalEntry[] = []
  readonly #currency: string

  constructor(currency = 'EUR') {
    this.#currency = currency
  }

  add(minute: number, note: Partial<JournalNote> & Pick<JournalNote, 'kind' | 'reason'>, id?: string): this {
    this.entries.push({
      message: '',
      nodeClaims: [],
      nodes: [],
      currency: this.#currency,
      ...note,
      id: id ?? `e${this.entries.length}`,
      at: rfc3339Micro(startMs + minute * minuteMs),
    })
    return this
  }

  seen(minute: number, reason: string, note: Partial<JournalNote> = {}): this {
    return this.add(minute, { kind: 'seen', reason, ...note })
  }

  /** An observer begins that finds these nodes, of price 1 an hour. */
  begin(minute: number, ...names: readonly string[]): this {
    return this.seen(minute, 'ObservingBegan')
      .seen(minute, 'NodesPresent', { nodeClaims: names, instances: names.map(() => ({ pricePerHour: 1 })) })
      .seen(minute, 'Observing')
  }

  /** Heartbeats, so that there is no gap. */
  alive(fromMinute: number, toMinute: number): this {
    for (let minute = fromMinute; minute <= toMinute; minute += 5) this.seen(minute, 'Observing')
    return this
  }

  launch(minute: number, id: string, pods: number, price?: number): this {
    const instance = { instanceType: 'small', ...(price !== undefined && { pricePerHour: price }) }
    const note = { pods: { count: pods, names: [] }, instances: [instance], observed: true } as const
    return this.add(minute, { kind: 'launch', reason: 'Provisioned', ...note }, id)
  }

  joined(minute: number, name: string, price?: number): this {
    const instance = { instanceType: 'large', ...(price !== undefined && { pricePerHour: price }) }
    return this.seen(minute, 'NodeJoined', { nodeClaims: [name], instances: [instance] })
  }

  bound(minute: number, name: string, launch: string, pods: number): this {
    const on = { nodeClaims: [name], pods: { count: pods, names: [] }, decision: launch }
    return this.seen(minute, 'PodsBound', on)
  }

  compared(fromMinute: number, toMinute: number): ShadowComparison {
    const at = (minute: number) => startMs + minute * minuteMs
    return comparedIn(this.entries, { fromMs: at(fromMinute), toMs: at(toMinute) })
  }
}

function comparedIn(
  entries: Iterable<JournalEntry>,
  window: { readonly fromMs: number; readonly toMs: number },
): ShadowComparison {
  const reader = new ShadowReader(window)
  for (const entry of entries) reader.add(entry)
  return reader.result()
}

const near = (actual: number | undefined, expected: number) => {
  assert.ok(Math.abs((actual ?? Number.NaN) - expected) < 1e-6, `${actual} is not ${expected}`)
}

function assertAddsUp({ cases, cost, otherCases }: ShadowComparison): void {
  const differences = cases.reduce((sum, { difference }) => sum + difference, otherCases.difference)
  near(differences, (cost?.tenon ?? 0) - (cost?.other ?? 0))
  near((cost?.byLaunches ?? 0) + (cost?.byMoves ?? 0), cost?.difference ?? 0)
}

test('ADO-7 a launch costs from its decision, and the node that came from when it came', () => {
  const story = new Story()
    .begin(0)
    .launch(0, 'l', 2, 1)
    .alive(5, 10)
    .joined(10, 'n', 4)
    .alive(15, 20)
    .bound(20, 'n', 'l', 2)
    .alive(25, 60)
  const report = story.compared(0, 60)
  near(report.cost?.other, 4 * (50 / 60))
  near(report.cost?.tenon, 1)
  assertAddsUp(report)
  assert.deepEqual(
    report.cases.map(({ kind, name, planned, instanceType }) => [kind, name, planned, instanceType]),
    [['node', 'n', ['small'], 'large']],
  )
})

test('ADO-7 a launch whose pods are on two nodes is divided, and each part ends with its node', () => {
  const report = new Story()
    .begin(0)
    .launch(0, 'l', 4, 4)
    .joined(0, 'a', 2)
    .joined(0, 'b', 2)
    .bound(0, 'a', 'l', 1)
    .bound(0, 'b', 'l', 3)
    .alive(5, 30)
    .seen(30, 'NodeLeft', { nodeClaims: ['b'], pods: { count: 3, names: [] } })
    .alive(35, 60)
    .compared(0, 60)
  near(report.cost?.other, 2 * 1 + 2 * 0.5)
  near(report.cost?.tenon, 1 * 1 + 3 * 0.5)
  assert.deepEqual([report.evictions.other, report.removals.other], [3, 1])
  assertAddsUp(report)
})

test('ADO-7 once other pods run on a planned node it counts for both, and moves count from then on', () => {
  const report = new Story()
    .begin(0)
    .launch(0, 'l', 1, 1)
    .joined(0, 'n', 4)
    .bound(0, 'n', 'l', 1)
    .alive(5, 30)
    .seen(30, 'PodsJoined', { nodeClaims: ['n'] })
    .alive(35, 45)
    .add(
      45,
      {
        kind: 'move',
        reason: 'Underutilized',
        nodeClaims: ['n'],
        pricePerHour: { before: 4, after: 2 },
        instances: [{ pricePerHour: 2 }],
        pods: { count: 5, names: [] },
        observed: true,
      },
      'm',
    )
    .alive(50, 60)
    .add(60, { kind: 'refusal', reason: 'PlanEnded', decision: 'm', observed: true })
    .alive(60, 120)
    .compared(0, 120)
  near(report.cost?.other, 8)
  near(report.cost?.byLaunches, -1.5)
  near(report.cost?.byMoves, -0.5)
  near(report.nodeHours.tenon, 2)
  assert.deepEqual([report.removals.tenon, report.removals.replacements, report.evictions.tenon], [1, 1, 5])
  assertAddsUp(report)
})

test('ADO-7 what is unknown is said, and never 0', () => {
  const report = new Story()
    .begin(0, 'old')
    .joined(0, 'unpriced')
    .launch(0, 'l', 1, 1)
    .bound(0, 'unpriced', 'l', 1)
    .launch(0, 'no-price', 1)
    .joined(0, 'planned-without-price', 3)
    .bound(0, 'planned-without-price', 'no-price', 1)
    .joined(0, 'undecided', 2)
    .seen(0, 'PodsUndecided', {
      nodeClaims: ['undecided'],
      waiting: { seconds: 9 },
      pods: { count: 3, names: [] },
    })
    .joined(0, 'nobody', 5)
    .alive(5, 60)
    .seen(60, 'NodeLeft', { nodeClaims: ['old'] })
    .compared(0, 60)
  near(report.cost?.other, 1)
  near(report.cost?.tenon, 1)
  const { notCompared, evictions, waiting } = report
  near(notCompared.unpricedHours, 2)
  near(notCompared.undecidedHours, 2)
  near(notCompared.undecidedCost, 7)
  assert.deepEqual([notCompared.unpricedLaunches, notCompared.types], [1, ['large', 'small']])
  assert.deepEqual([evictions.unknownRemovals, waiting.pods, waiting.podsNotCompared], [1, 0, 3])
})

test('ADO-7 prices in another currency are unknown', () => {
  const dollars = new Story('USD').joined(1, 'n', 1).entries
  const story = new Story().begin(0, 'old')
  const report = comparedIn([...story.entries, ...dollars, ...story.alive(5, 60).entries.slice(3)], {
    fromMs: startMs,
    toMs: startMs + hourMs,
  })
  assert.equal(report.notCompared.otherCurrency, 1)
  near(report.cost?.other, 1)
})

test('ADO-7 gaps, restarts, and a journal that begins or ends in the middle are said', () => {
  const story = new Story()
    // The oldest entries are gone: nothing is known until all nodes are named.
    .seen(0, 'NodeLeft', { nodeClaims: ['before'] })
    .launch(1, 'l', 1, 1)
    .seen(10, 'NodesPresent', { nodeClaims: ['a'], instances: [{ pricePerHour: 1 }] })
    .alive(10, 20)
    .alive(60, 70)
    .begin(90, 'a', 'b')
    .alive(95, 100)
  const report = story.compared(0, 160)
  const periods = report.gaps.map(({ fromMs, toMs }) => [
    (fromMs - startMs) / minuteMs,
    (toMs - startMs) / minuteMs,
  ])
  assert.deepEqual(periods, [
    [20, 60],
    [70, 90],
    [100, 160],
  ])
  assert.deepEqual(
    [report.restarts, report.covered?.fromMs, report.covered?.toMs],
    [1, startMs + 10 * minuteMs, startMs + 100 * minuteMs],
  )
  near(report.covered?.hours, 0.5)
  near(report.cost?.other, (10 + 10 + 2 * 10) / 60)
  assert.equal(new Story().compared(0, 10).covered, undefined)
  assert.equal(new Story().alive(0, 60).compared(0, 60).cost, undefined)
})

test('a node whose arrival or removal is missing in the journal is found by the next census', () => {
  const report = new Story()
    .begin(0, 'stays', 'left')
    .alive(5, 60)
    .seen(60, 'NodesPresent', {
      nodeClaims: ['stays', 'came'],
      instances: [{ pricePerHour: 1 }, { pricePerHour: 1 }],
    })
    .alive(60, 120)
    .compared(0, 120)
  near(report.cost?.other, 3)
  near(report.notCompared.undecidedHours, 1)
})

test('the entries of one census may have different times', () => {
  const page = (name: string) => ({ nodeClaims: [name], instances: [{ pricePerHour: 1 }] })
  const report = new Story()
    .seen(0, 'ObservingBegan')
    .seen(0.001, 'NodesPresent', page('a'))
    .seen(0.002, 'NodesPresent', page('b'))
    .seen(0.003, 'Observing')
    .alive(5, 55)
    .seen(60.001, 'NodesPresent', page('a'))
    .seen(60.002, 'NodesPresent', page('b'))
    .alive(60.003, 120)
    .compared(0, 120)
  assert.ok(Math.abs((report.cost?.other ?? 0) - 4) < 1e-3)
  assert.deepEqual([report.notCompared.undecidedHours, report.cases.length], [0, 0])
})

/** Numbers from 0 up to but without 1. */
function draws(seed: number): () => number {
  let state = seed
  return () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647
}

/** What an observer could note, in any order, with a tenth of it lost. */
function randomStory(seed: number): Story {
  const draw = draws(seed)
  const pick = (count: number) => Math.floor(draw() * count)
  const story = new Story().begin(0, 'n0', 'n1', 'n2')
  const price = () => (draw() < 0.9 ? draw() * 4 : undefined)
  for (let minute = 0; minute < 600; minute += draw() * 6) {
    if (draw() < 0.1) continue
    const name = `n${pick(8)}`
    const kind = pick(12)
    const on = { nodeClaims: [name], pods: { count: pick(4), names: [] } }
    if (kind === 0) story.launch(minute, `l${pick(9)}`, pick(4), price())
    else if (kind === 1) story.joined(minute, name, price())
    else if (kind === 2) story.bound(minute, name, `l${pick(9)}`, pick(4))
    else if (kind === 3) story.seen(minute, 'NodeLeft', on)
    else if (kind === 4) story.seen(minute, 'PodsGone', { decision: `l${pick(9)}`, pods: on.pods })
    else if (kind === 5) story.add(minute, aMove([name, `n${pick(8)}`], price()), `m${pick(5)}`)
    else if (kind === 6)
      story.add(minute, { kind: 'refusal', reason: 'PlanEnded', decision: `m${pick(5)}`, observed: true })
    else if (kind === 7)
      story.seen(
        minute,
        ['PodsPlaced', 'PodsHadRoom', 'PodsJoined', 'PodsUndecided', 'PodsRefused'][pick(5)] ?? '',
        on,
      )
    else if (kind === 8 && draw() < 0.05) story.begin(minute, 'n1', name)
    else story.seen(minute, 'Observing')
  }
  return story
}

function aMove(nodeClaims: readonly string[], after: number | undefined) {
  const pricePerHour = after === undefined ? {} : { after }
  return {
    kind: 'move',
    reason: 'Drifted',
    nodeClaims,
    pricePerHour,
    instances: [{}],
    observed: true,
  } as const
}

test('ADO-7 differences sum up to the difference of sums in any journal, and windows side by side to the whole', () => {
  for (let seed = 1; seed <= 300; seed++) {
    const story = randomStory(seed)
    const whole = story.compared(0, 600)
    assertAddsUp(whole)
    const parts = [story.compared(0, 217), story.compared(217, 600)]
    for (const part of parts) assertAddsUp(part)
    const { other = 0, tenon = 0 } = whole.cost ?? {}
    const known = (report: ShadowComparison) => report.notCompared.undecidedHours === 0
    // What a new node is for may be known only after the first window has ended.
    if (!known(parts[0] as ShadowComparison)) continue
    near(
      parts.reduce((sum, { cost }) => sum + (cost?.other ?? 0), 0),
      other,
    )
    near(
      parts.reduce((sum, { cost }) => sum + (cost?.tenon ?? 0), 0),
      tenon,
    )
  }
})

test('ADO-7 a journal of a week with 5,000 nodes is read with memory for its nodes alone', () => {
  function* week(): Generator<JournalEntry, void, undefined> {
    const names = Array.from({ length: 5000 }, (_, at) => `n${at}`)
    const story = new Story()
    const taken = () => story.entries.splice(0)
    yield* story.begin(0, ...names).entries.splice(0)
    for (let minute = 1, at = 0; minute < 7 * 24 * 60; minute++) {
      for (let each = 0; each < 10; each++, at++) {
        const id = `l${at}`
        story.launch(minute, id, 1, 1).joined(minute, `new-${at}`, 2).bound(minute, `new-${at}`, id, 1)
        story.seen(minute, 'NodeLeft', { nodeClaims: [`new-${at - 500}`] })
        story.seen(minute, 'PodsRefused', { nodes: ['n1'], pods: { count: 1, names: [`default/p-${at}`] } })
      }
      story.seen(minute, 'Observing')
      yield* taken()
    }
  }
  const before = process.memoryUsage().heapUsed
  const reader = new ShadowReader({ fromMs: startMs, toMs: startMs + 7 * 24 * hourMs })
  let most = 0
  let count = 0
  for (const entry of week()) {
    reader.add(entry)
    if (++count % 20_000 === 0) most = Math.max(most, process.memoryUsage().heapUsed - before)
  }
  const report = reader.result()
  assert.ok(count > 500_000)
  assert.ok(most < 200 * 1024 * 1024, `${most} bytes`)
  assert.deepEqual([report.cases.length, report.leftPods.length], [50, 100])
  assert.ok(report.otherCases.count > 90_000 && report.leftPodCount > 100_000)
  assertAddsUp(report)
})

test('amounts of a damaged journal are unknown', () => {
  const line = (fields: object) =>
    JSON.stringify({
      apiVersion: 'tenon.sh/v1alpha1',
      kind: 'JournalEntry',
      id: 'i',
      at: '2026-11-20T08:00:00Z',
      type: 'seen',
      ...fields,
    })
  const text = line({
    instances: [{ pricePerHour: -1 }, null, { pricePerHour: 2, instanceType: 5 }, 'x'],
    waiting: { seconds: -1 },
    pods: { count: 'many' },
  }).replace('"x"', '{"pricePerHour":1e309,"__proto__":{"pricePerHour":1}}')
  const read = entryFrom(text)
  assert.ok('entry' in read)
  assert.deepEqual(read.entry.instances, [{}, {}, { pricePerHour: 2 }, {}])
  assert.deepEqual([read.entry.waiting, read.entry.pods], [undefined, undefined])
})
