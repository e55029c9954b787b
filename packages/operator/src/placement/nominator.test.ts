import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Node, Pod } from '@tenon/api'
import type { PlanTarget, PodPlan } from '../state/pods/pod-plans.ts'
import { tradePlaces } from './nominator.ts'

interface Place {
  readonly cpu?: string
  readonly owner?: string
  readonly steering?: PodPlan['steering']
  readonly isNominated?: boolean
  readonly isBound?: boolean
}

function aPod(name: string, { cpu = '1', owner = 'rs', isNominated = true }: Place): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace: 'default',
      uid: name,
      ownerReferences: [
        { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: owner, uid: owner, controller: true },
      ],
    },
    spec: { containers: [{ name: 'c', resources: { requests: { cpu } } }] },
    status: { phase: 'Pending', ...(isNominated && { nominatedNodeName: 'taken' }) },
  }
}

const claim = (name: string): PlanTarget => ({ kind: 'claim', name })

/** What is planned for the claim `left` after a pod of 1 CPU that was to go there took a place of the claim `taken`. */
function movedBy(planned: Readonly<Record<string, Place>>, isThere = true): readonly string[] {
  const plans = new Map<string, PodPlan>()
  for (const [name, { steering = 'told' }] of Object.entries(planned))
    plans.set(name, { target: claim('taken'), steering, madeMs: 0 })
  const waiting = new Map(
    Object.entries(planned).flatMap(([name, place]) =>
      place.isBound === true ? [] : [[name, aPod(name, place)] as const],
    ),
  )
  const plansOf = ({ name }: PlanTarget) =>
    [...plans].filter(([, { target }]) => target.name === name).map(([uid]) => uid)
  tradePlaces(
    {
      plans: {
        get: (uid) => plans.get(uid),
        set: (uid, plan) => plans.set(uid, { ...plan, madeMs: 1 }),
        podsOf: plansOf,
      },
      pods: { unplaced: (uid) => waiting.get(uid) },
      nominations: {
        nodeFor: ({ name }) => (isThere ? ({ metadata: { name } } as Node) : undefined),
      },
    },
    aPod('bound', {}),
    { taken: claim('taken'), left: claim('left') },
  )
  return plansOf(claim('left'))
}

test('the place a pod leaves goes to one that is alike and waits for the room it took', () => {
  assert.deepEqual(movedBy({ other: { cpu: '2' }, twin: {}, small: { cpu: '500m' } }), ['twin'])
})

test('of several the one that lost its nomination moves, else the last', () => {
  assert.deepEqual(movedBy({ a: {}, b: { isNominated: false }, c: {} }), ['b'])
  assert.deepEqual(movedBy({ a: {}, b: {}, c: {} }), ['c'])
})

test('nobody moves who is not alike, not told of, or bound already', () => {
  assert.deepEqual(movedBy({ a: { owner: 'another' } }), [])
  assert.deepEqual(movedBy({ a: { steering: 'filler' } }), [])
  assert.deepEqual(movedBy({ a: { isBound: true } }), [])
})

test('nobody moves to a node that is gone', () => {
  assert.deepEqual(movedBy({ twin: {} }, false), [])
})
