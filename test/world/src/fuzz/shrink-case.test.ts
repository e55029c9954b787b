import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { KubeObject } from '@tenon/api'
import type { Case, Finding } from './case.ts'
import { shrinkCase } from './shrink-case.ts'

const finding: Finding = { oracle: 'noThrow', text: 'it throws', atMs: 0 }

function aDeploymentLike(name: string, spec: object): KubeObject {
  const object = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name }, spec }
  return object
}

const aCase = (objects: readonly KubeObject[]): Case => ({
  part: 'cluster',
  seed: 1,
  provider: 'kwok',
  catalogue: [
    { name: 'a', resources: {}, offerings: [] },
    { name: 'b', resources: {}, offerings: [] },
  ],
  objects,
  steps: [{ atMs: 1 }],
  settings: { preferences: 'Ignore' },
  surroundings: { memoryPercent: 97, quota: 3 },
  minutes: 20,
})

test('a failing case loses every object, field, step and circumstance that the failure does not need', async () => {
  const whole = aCase([
    aDeploymentLike('first', { replicas: 4 }),
    aDeploymentLike('second', { replicas: 8, hostNetwork: true, tolerations: [{ key: 'a' }, { key: 'b' }] }),
    aDeploymentLike('third', {}),
  ])
  const fails = ({ objects, surroundings }: Case): boolean =>
    surroundings.quota === 3 &&
    objects.some((object) => JSON.stringify(object).includes('"hostNetwork":true'))
  const { case: smallest } = await shrinkCase(
    { case: whole, finding },
    (smaller) => Promise.resolve(fails(smaller) ? finding : undefined),
    () => true,
  )
  assert.deepEqual(smallest.objects, [aDeploymentLike('second', { hostNetwork: true })])
  assert.deepEqual(smallest.surroundings, { quota: 3 })
  assert.deepEqual([smallest.steps, smallest.settings, smallest.catalogue], [[], {}, []])
})

test('shrinking ends when it may not go on, with what it has', async () => {
  let left = 3
  const { case: smallest } = await shrinkCase(
    { case: aCase([aDeploymentLike('a', {}), aDeploymentLike('b', {})]), finding },
    () => Promise.resolve(finding),
    () => left-- > 0,
  )
  assert.ok(smallest.objects.length < 2)
})
