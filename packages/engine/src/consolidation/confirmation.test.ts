import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Pod, wellKnownLabels } from '@tenon/api'
import type { NewClaim } from '../input/result.ts'
import { schedule } from '../scheduling/schedule.ts'
import { anInput, aPod, aPool, aPoolInput, aType } from '../testing/builders.test-support.ts'
import { isCheaper, isConfirmed } from './confirmation.ts'

const types = [aType('small', 2, 8), aType('large', 8, 32)]

/** The claims that these pods would get by themselves. */
const claimsFor = (...pods: readonly Pod[]): readonly NewClaim[] =>
  schedule(anInput({ pods, pools: [aPoolInput(aPool(), types)] })).claims

const stranded = (pod: Pod) => [{ pod, reason: { kind: 'noPools' as const } }]

test('a move holds while a simulation comes to as many claims, of the same types at least', () => {
  const pod = aPod({ cpu: '1' })
  const claims = claimsFor(pod)
  const larger = claimsFor(aPod({ cpu: '5' }))
  assert.equal(isConfirmed({ claims }, { claims, stranded: [] }, undefined), true)
  assert.equal(isConfirmed({ claims: larger }, { claims, stranded: [] }, undefined), true)
  assert.equal(isConfirmed({ claims }, { claims: larger, stranded: [] }, undefined), false)
  assert.equal(isConfirmed({ claims }, { claims: [], stranded: [] }, undefined), false)
})

test('a packed move holds while no pod needs a new node but those that one was planned for', () => {
  const [planned, staying, other] = [aPod({ cpu: '1' }), aPod({ cpu: '1' }), aPod({ cpu: '1' })]
  const moving = [planned, staying]
  const move = { claims: claimsFor(planned) }
  const now = (...pods: readonly Pod[]) => ({ claims: claimsFor(...pods), stranded: [] })
  assert.equal(isConfirmed(move, now(planned), moving), true)
  assert.equal(isConfirmed(move, now(planned, other), moving), true, 'others wait for nodes of their own')
  assert.equal(isConfirmed(move, now(planned, staying), moving), false)
  assert.equal(isConfirmed({ claims: [] }, now(), moving), true)
  assert.equal(isConfirmed({ claims: [] }, now(planned), moving), false)
})

test('no move holds that leaves a pod without a place', () => {
  const pod = aPod({ cpu: '1' })
  const claims = claimsFor(pod)
  for (const moving of [undefined, [pod]])
    assert.equal(isConfirmed({ claims }, { claims, stranded: stranded(pod) }, moving), false)
})

test('claims are cheaper when the dearest of their types costs less than the nodes that go', () => {
  const claims = claimsFor(aPod({ cpu: '1' }))
  const sold = new Map([['default', { types: new Map(types.map((type) => [type.name, type])) }]])
  const wellKnown = new Set(wellKnownLabels)
  const [small, large] = [2 * 0.05, 8 * 0.05]
  assert.equal(isCheaper(claims, [large, small], sold, wellKnown), true)
  assert.equal(isCheaper(claims, [large], sold, wellKnown), false)
  assert.equal(isCheaper(claims, [large, undefined], sold, wellKnown), false, 'what is unknown saves nothing')
  assert.equal(isCheaper(claims, [large, large], new Map(), wellKnown), false, 'nobody sells them any more')
})
