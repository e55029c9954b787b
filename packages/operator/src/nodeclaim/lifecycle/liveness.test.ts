import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ConditionSet, type NodeClaim } from '@tenon/api'
import { rfc3339, VirtualClock } from '@tenon/runtime'
import { isOverdue } from './liveness.ts'

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
  const claim: NodeClaim = {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodeClaim',
    metadata: { name: 'a', creationTimestamp: rfc3339(clock.now()) },
    spec: { nodeClassRef: { group: 'g', kind: 'K', name: 'n' }, requirements: [] },
  }
  const draft = { claim, conditions: ConditionSet.of(claim, { dependents: ['Launched'] }) }
  const isLate = () => isOverdue(draft, settings, provider, clock.now())
  await clock.advance(6 * minutes)
  assert.ok(isLate())
  awayUntilMs = () => clock.now()
  assert.ok(!isLate())
  await clock.advance(60 * minutes)
  assert.ok(!isLate())
  const backMs = clock.now()
  awayUntilMs = () => backMs
  await clock.advance(4 * minutes)
  assert.ok(!isLate())
  await clock.advance(2 * minutes)
  assert.ok(isLate())
})
