import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { VirtualClock } from '@tenon/runtime'
import { PodPlans } from './pod-plans.ts'

const claim = (name: string) => ({ kind: 'claim', name }) as const
const maxAgeMs = 60_000

function plansAt(): { readonly clock: VirtualClock; readonly plans: PodPlans; readonly dropped: string[] } {
  const clock = new VirtualClock(0)
  const plans = new PodPlans(clock, maxAgeMs)
  const dropped: string[] = []
  plans.onDropped((uids) => dropped.push(...uids))
  return { clock, plans, dropped }
}

describe('plans of pods', () => {
  test('end with their target, which is told', () => {
    const { plans, dropped } = plansAt()
    plans.set('one', { target: claim('a'), steering: 'told' })
    plans.set('two', { target: claim('a'), steering: 'told' })
    plans.set('three', { target: claim('b'), steering: 'told' })
    plans.dropTarget(claim('a'))
    assert.deepEqual(dropped, ['one', 'two'])
    assert.equal(plans.get('one'), undefined)
    assert.deepEqual(plans.podsOf(claim('b')), ['three'])
  })

  test('age from when they were first made, however often they are confirmed', async () => {
    const { clock, plans, dropped } = plansAt()
    plans.set('one', { target: claim('a'), steering: 'free' })
    await clock.advance(maxAgeMs - 1)
    plans.set('one', { target: claim('a'), steering: 'told' })
    assert.deepEqual(plans.get('one'), { target: claim('a'), steering: 'told', madeMs: 0 })
    await clock.advance(1)
    assert.equal(plans.get('one'), undefined)
    assert.deepEqual(dropped, ['one'])
  })

  test('are told of once one decision wants that', () => {
    const { plans } = plansAt()
    plans.set('one', { target: claim('a'), steering: 'filler' })
    assert.equal(plans.get('one')?.steering, 'filler')
    plans.set('one', { target: claim('a'), steering: 'told' })
    assert.equal(plans.get('one')?.steering, 'told')
    plans.set('one', { target: claim('a'), steering: 'filler' })
    assert.equal(plans.get('one')?.steering, 'told')
  })

  test('move when another target is chosen', () => {
    const { plans, dropped } = plansAt()
    plans.set('one', { target: claim('a'), steering: 'told' })
    plans.set('one', { target: claim('b'), steering: 'free' })
    assert.deepEqual(plans.podsOf(claim('a')), [])
    assert.deepEqual(plans.podsOf(claim('b')), ['one'])
    assert.equal(plans.get('one')?.steering, 'free')
    assert.deepEqual(dropped, [])
  })

  test('know which claims were launched together, as long as these are there', () => {
    const { plans } = plansAt()
    const batch = new Set<string>()
    for (const name of ['a', 'b', 'c']) plans.launched(name, batch)
    plans.dropTarget(claim('b'))
    assert.deepEqual([...plans.siblingsOf('a')], ['a', 'c'])
    assert.deepEqual([...plans.siblingsOf('b')], ['b'])
  })

  test('leave what was written about the pod until it is bound or gone', () => {
    const { plans } = plansAt()
    plans.set('one', { target: claim('a'), steering: 'told' })
    plans.write('one', { node: 'n', atMs: 0, isAccepted: true })
    plans.dropTarget(claim('a'))
    assert.equal(plans.written('one')?.node, 'n')
    plans.forget('one')
    assert.equal(plans.written('one'), undefined)
  })
})
