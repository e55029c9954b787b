/** Traces of NodeClaims over time and processes (adoption.md 4). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ConditionSet, type NodeClaim } from '@tenon/api'
import { createTracer, type FinishedSpan, rfc3339, SeededRandom, VirtualClock } from '@tenon/runtime'
import { nodeClaimConditions } from '../state/conditions.ts'
import { ClaimTraces } from './claim-traces.ts'

const phases = ['Launched', 'Registered', 'Initialized']

function story() {
  const clock = new VirtualClock()
  const spans: FinishedSpan[] = []
  const onEnd = (span: FinishedSpan) => spans.push(span)
  const tracer = createTracer({ clock, random: new SeededRandom(1), isSampled: () => true, onEnd })
  const traces = new ClaimTraces(tracer)
  const { metadata, ...rest } = traces.annotated({
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodeClaim',
    metadata: { name: 'a' },
    spec: { nodeClassRef: { group: 'g', kind: 'k', name: 'n' }, requirements: [] },
  })
  const created = { ...metadata, creationTimestamp: rfc3339(clock.now()) }
  const claim: NodeClaim = { ...rest, metadata: created }
  const reached = (count: number) =>
    phases
      .slice(0, count)
      .reduce(
        (set, type) => set.set({ type, status: 'True' }, clock.now()),
        ConditionSet.of(claim, nodeClaimConditions),
      )
  return { claim, clock, reached, spans, traces, tracer }
}

test('ADO-12 a Node that is lost and registers again later is no launch', async () => {
  const { claim, clock, reached, spans, traces } = story()
  traces.advanced(claim, reached(0), reached(3))
  assert.deepEqual(
    spans.map(({ name }) => name),
    ['launch', 'register', 'initialize', 'NodeClaim'],
  )
  await clock.advance(61 * 60_000)
  traces.advanced(claim, reached(1), reached(3))
  traces.failed(claim)
  assert.equal(traces.current(claim), undefined)
  assert.equal(spans.length, 4)
})

test('ADO-12 a claim that is deleted before it is initialized is reported once', () => {
  const { claim, reached, spans, traces } = story()
  const launched = { ...claim, status: { conditions: reached(1).conditions } }
  for (let i = 0; i < 3; i++) traces.failed(launched)
  assert.deepEqual(
    spans.map(({ name, error }) => [name, error]),
    [
      ['register', 'deleted'],
      ['NodeClaim', 'deleted'],
    ],
  )
  traces.forget('a')
})

test('ADO-12 all processes give a phase the same ids', () => {
  const { claim, reached, spans, traces, tracer } = story()
  traces.advanced(claim, reached(0), reached(1))
  new ClaimTraces(tracer).advanced(claim, reached(2), reached(3))
  const launches = spans.filter(({ name }) => name === 'launch')
  assert.equal(launches.length, 2)
  assert.deepEqual(launches[0]?.context, launches[1]?.context)
  assert.equal(new Set(spans.map(({ context }) => context.spanId)).size, 4)
})
