import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { FitScoring } from '../input/input.ts'
import { fitScoreOf, resourceScore, SchedulerModel } from './scheduler-model.ts'

test('VER-47 up to 1.35 the balance with the pod counts, from 1.36 on what the pod changes of it', () => {
  const pod = new Float64Array([4, 0])
  const scores = (balance: 'use' | 'change') =>
    [new Float64Array([9, 1]), new Float64Array([5, 5])].map((free) =>
      Math.round(resourceScore(pod, { cpu: 0, memory: 1, balance }, [10, 10], free)),
    )
  assert.deepEqual(scores('use'), [110, 110])
  assert.deepEqual(scores('change'), [115, 95])
})

const names = ['cpu', 'memory', 'nvidia.com/gpu', 'hugepages-2Mi']
const at = (name: string) => names.indexOf(name)
const even = [
  { name: 'cpu', weight: 1 },
  { name: 'memory', weight: 1 },
]
const scoring = (type: FitScoring['type'], more: Partial<FitScoring> = {}) =>
  fitScoreOf({ type, resources: even, ...more }, at)
/** The score without that for balance, which is 100 for these pods and nodes, of a node with 8 of each and this left. */
const scoreWith = (fit: ReturnType<typeof scoring>, pod: readonly number[], left: readonly number[]) =>
  Math.round(
    resourceScore(
      Float64Array.from(pod),
      { cpu: 0, memory: 1, balance: 'use', fit },
      [8, 8, ...fit.resources.map(() => 8)],
      Float64Array.from(left),
    ) - 100,
  )

test('WNT-39 strategies score the same use differently', () => {
  const shape = [
    { utilization: 0, score: 10 },
    { utilization: 50, score: 5 },
    { utilization: 80, score: 0 },
  ]
  const scores = (fit: ReturnType<typeof scoring>) =>
    [8, 6, 4, 2].map((left) => scoreWith(fit, [2, 2, 0], [left, left, 0]))
  assert.deepEqual(scores(scoring('LeastAllocated')), [75, 50, 25, 0])
  assert.deepEqual(scores(scoring('MostAllocated')), [25, 50, 75, 100])
  assert.deepEqual(scores(scoring('RequestedToCapacityRatio', { shape })), [75, 50, 8, 0])
})

test('WNT-39 weights count, extended resources only for pods that request them, unknown ones not at all', () => {
  const resources = [
    { name: 'cpu', weight: 1 },
    { name: 'nvidia.com/gpu', weight: 3 },
    { name: 'example.com/none', weight: 100 },
  ]
  const fit = scoring('MostAllocated', { resources })
  assert.equal(scoreWith(fit, [2, 2, 0], [8, 8, 4]), 25)
  assert.equal(scoreWith(fit, [2, 2, 4], [8, 8, 4]), 81)
})

test('WNT-39 huge pages count as extended resources do, only for pods that request them', () => {
  const resources = [
    { name: 'cpu', weight: 1 },
    { name: 'hugepages-2Mi', weight: 3 },
  ]
  const fit = scoring('MostAllocated', { resources })
  assert.equal(scoreWith(fit, [2, 2, 0, 0], [8, 8, 0, 4]), 25)
  assert.equal(scoreWith(fit, [2, 2, 0, 4], [8, 8, 0, 4]), 81)
})

test('WNT-39 pods go to the fullest node that has room, where that scores most', () => {
  const kinds = [{ amounts: Float64Array.of(1, 1), worth: 1 }]
  const hosts = [8, 5, 2].map((left) => ({
    free: Float64Array.of(left, left),
    total: [8, 8, 8, 8] as const,
    zone: 0,
    counts: new Int32Array(1),
  }))
  const homesWith = (fit: ReturnType<typeof scoring> | undefined) => {
    const layout = { cpu: 0, memory: 1, zones: 1, balance: 'use' as const, ...(fit && { fit }) }
    const scored = hosts.map((host) => ({
      ...host,
      scores: Float64Array.of(resourceScore(Float64Array.of(1, 1), layout, host.total, host.free)),
    }))
    const homes = [[]] as number[][]
    new SchedulerModel(kinds, layout, scored).place([0, 1, 2], Int32Array.of(1), { homes })
    return homes[0]
  }
  assert.deepEqual(homesWith(undefined), [0])
  assert.deepEqual(homesWith(scoring('MostAllocated')), [2])
})
