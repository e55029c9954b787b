import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ConditionSet, type NodeClaim } from '@tenon/api'
import { rfc3339, VirtualClock } from '@tenon/runtime'
import { LifecycleDeadlines } from './deadlines.ts'

const minutes = 60_000
const settings = {
  launchTimeoutMs: 5 * minutes,
  registrationTimeoutMs: 15 * minutes,
  initializationTimeoutMs: 15 * minutes,
}

test('a cloud that does not answer leaves launches their whole time', async () => {
  const clock = new VirtualClock()
  let awayUntilMs: (() => number | undefined) | undefined
  const provider = { awayUntilMs: () => awayUntilMs?.() }
  const deadlines = new LifecycleDeadlines({ clock, settings, provider })
  const claim: NodeClaim = {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodeClaim',
    metadata: { name: 'a', creationTimestamp: rfc3339(clock.now()) },
    spec: { nodeClassRef: { group: 'g', kind: 'K', name: 'n' }, requirements: [] },
  }
  const draft = { claim, conditions: ConditionSet.of(claim, { dependents: ['Launched'] }) }
  await clock.advance(6 * minutes)
  assert.ok(deadlines.isOverdue(draft))
  awayUntilMs = () => clock.now()
  assert.ok(!deadlines.isOverdue(draft))
  await clock.advance(60 * minutes)
  assert.ok(!deadlines.isOverdue(draft))
  const backMs = clock.now()
  awayUntilMs = () => backMs
  await clock.advance(4 * minutes)
  assert.ok(!deadlines.isOverdue(draft))
  await clock.advance(2 * minutes)
  assert.ok(deadlines.isOverdue(draft))
})
