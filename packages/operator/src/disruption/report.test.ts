import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod } from '@tenon/api'
import type { NodeRefusal } from '@tenon/engine'
import { refusalText } from './refusals.ts'

const said = (refusal: NodeRefusal) => refusalText(refusal, (node) => `claim-of-${node}`)

const aPod = (name: string): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'default' },
  spec: { containers: [] },
})

test('DIS-90 a spot node is told which feature gate keeps it', () => {
  assert.match(said({ kind: 'spotToSpotDisabled' }), /disabled .*SpotToSpotConsolidation/)
})

test('DIS-91 a spot node is told how many cheaper types it takes, and how many there are', () => {
  assert.match(said({ kind: 'spotToSpotTypes', found: 1 }), /requires 15 cheaper instance types, had 1$/)
})

test('DIS-168 that nothing is cheaper is told without a word of minValues', () => {
  assert.equal(said({ kind: 'noCheaper' }), "can't replace with a cheaper node")
})

test('that cheaper offerings are short now is told with their names, why, and until when', () => {
  const until = { because: 'the quota of instances is used up', untilMs: Date.UTC(2026, 0, 1, 12, 3) }
  const offering = { zone: 'z', capacityType: 'on-demand' }
  const short = [
    { ...offering, instanceType: 'small', unavailability: until },
    { ...offering, instanceType: 'medium', unavailability: until },
  ]
  assert.equal(
    said({ kind: 'noCheaper', short }),
    "can't replace with a cheaper node now: cheaper ones are unavailable " +
      '(medium/z/on-demand, small/z/on-demand: the quota of instances is used up, next try at 2026-01-01T12:03:00Z); ' +
      'it is retried automatically',
  )
  assert.match(
    said({ kind: 'severalNodes', count: 2, short }),
    /^its pods would need 2 replacement nodes now, .*used up, next try at 2026-01-01T12:03:00Z/,
  )
})

test('five pods without another place are named with their reasons, and the others counted', () => {
  const pods = Array.from({ length: 7 }, (_, index) => ({
    pod: aPod(`p-${index}`),
    reason: { kind: 'uninitializedNode' as const, node: 'n' },
  }))
  const text = said({ kind: 'stranded', pods })
  assert.equal(text.match(/default\/p-\d => /g)?.length, 5)
  assert.equal(text.match(/\(NodeClaim claim-of-n\)/g)?.length, 5)
  assert.match(text, / and 2 others$/)
})
