import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod } from '@tenon/api'
import { problemOf } from '../problem/problem.ts'
import { anInput, aPod } from '../../testing/builders.test-support.ts'

test('pods that hold what they ask for are alike, whatever else their status says', () => {
  const running = (name: string, cpu: string): Pod => {
    const pod = aPod({ cpu: '250m' })
    return {
      ...pod,
      metadata: { ...pod.metadata, name, uid: name },
      status: {
        phase: 'Running',
        podIP: name,
        containerStatuses: [{ name: 'app', resources: { requests: { cpu } }, allocatedResources: { cpu } }],
      },
    }
  }
  const pods = [running('a', '250m'), running('b', '250m'), running('c', '500m')]
  assert.equal(problemOf(anInput({ pods })).shapes.length, 2)
})
