import assert from 'node:assert/strict'
import { test } from 'node:test'
import { anInput, aPod, strictPolicy, times } from '../testing/builders.test-support.ts'
import type { SchedulingResult } from '../input/result.ts'
import { schedule } from './schedule.ts'

const pods = [...times(9, () => aPod({ cpu: '700m' })), ...times(9, () => aPod({ cpu: '1300m' }))]
const shouldStop = () => false

const placesOf = ({ claims }: SchedulingResult) =>
  claims.map((claim) => [claim.instanceTypes, claim.pods.map(({ metadata }) => metadata.uid)])

for (const improvement of ['planned', 'free'] as const)
  test(`RPT-29 an improvement that throws costs only itself: first fit's plan stands (${improvement})`, () => {
    const plain = schedule(anInput({ pods }))
    const input = anInput({ pods, policy: { ...strictPolicy, improvement } })
    const shouldImprove = () => {
      throw new Error('improving is broken')
    }
    const result = schedule(input, { shouldStop, shouldImprove })
    assert.deepEqual(placesOf(result), placesOf(plain))
    assert.deepEqual(result.failures, [])
    const [fault, ...others] = result.faults
    assert.deepEqual(others, [])
    assert.deepEqual([fault?.part, fault?.message], ['improvement', 'improving is broken'])
    assert.match(fault?.stack ?? '', /faults\.test/)
    assert.deepEqual(schedule(input).faults, [])
  })
