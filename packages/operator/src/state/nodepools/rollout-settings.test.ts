import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import type { NodePool } from '@tenon/api'
import { canaryCount, readRecord, recordText, rolloutSettings } from './rollout-settings.ts'
import { advanced, watched } from '../../nodepool/canary.ts'

function read(annotations: Readonly<Record<string, string>>) {
  const pool: NodePool = {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodePool',
    metadata: { name: 'web', annotations },
    spec: {
      template: { spec: { nodeClassRef: { group: 'g', kind: 'k', name: 'n' }, requirements: [] } },
    },
  }
  return rolloutSettings(pool)
}

const of = (canary: string, maxUnhealthy?: string) =>
  read({
    'tenon.sh/rollout-canary': canary,
    ...(maxUnhealthy !== undefined && { 'tenon.sh/rollout-max-unhealthy': maxUnhealthy }),
  })

test('EXP-23 a share of the NodePool is at least one node', () => {
  const reading = of('10%')
  assert.ok(reading.kind === 'careful')
  assert.deepEqual(
    [0, 1, 10, 11, 100].map((nodes) => canaryCount(reading.settings, nodes)),
    [1, 1, 1, 2, 10],
  )
})

test('EXP-23 what is no number of nodes, and what could never halt, is refused', () => {
  for (const text of ['', '0', '-1', '1.5', '0%', '101%', 'two', '%', '9999999', '1e3'])
    assert.equal(of(text).kind, 'invalid', text)
  assert.equal(of('2', '1').kind, 'careful')
  assert.equal(of('2', '2').kind, 'invalid')
  assert.equal(of('2', '-1').kind, 'invalid')
  assert.equal(read({ 'tenon.sh/rollout-watch': '10m' }).kind, 'none')
  assert.equal(read({}).kind, 'none')
})

test('EXP-23 any annotation is either understood or refused with a fix', () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), fc.string(), (canary, watch, max) => {
      const reading = read({
        'tenon.sh/rollout-canary': canary,
        'tenon.sh/rollout-watch': watch,
        'tenon.sh/rollout-max-unhealthy': max,
      })
      if (reading.kind === 'invalid') for (const { fix } of reading.problems) assert.match(fix ?? '', /^use /)
    }),
  )
})

const settings = { canary: { nodes: 2 }, watchMs: 600_000, maxUnhealthy: 0 }
const gone = { claim: undefined, node: undefined, pods: [] }

test('EXP-23 a claim that goes at once found no capacity; one that goes later was never going to be a node', () => {
  const each = { claim: 'a', sinceMs: 0, owners: [] }
  assert.equal(watched(each, gone, settings, 60_000), undefined)
  assert.match(watched(each, gone, settings, 360_000)?.unhealthy ?? '', /never became a node/)
  assert.equal(watched({ ...each, initializedMs: 1 }, gone, settings, 360_000), undefined)
})

test('EXP-23 the record of a rollout is read as it was written, and what is none is refused', () => {
  const record = advanced(
    { of: '1/1', replacements: [], hasPassed: false },
    [{ claim: 'a', sinceMs: 1000, initializedMs: 2000, owners: ['x'], unhealthy: 'gone bad' }],
    settings,
    { nodes: 9, drifted: 'ImageChanged', nowMs: 5000 },
  )
  assert.deepEqual(record.halted, { atMs: 5000, drifted: 'ImageChanged' })
  assert.deepEqual(readRecord(recordText(record)), record)
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
      assert.equal(readRecord(text), undefined)
    }),
  )
})
