import assert from 'node:assert/strict'
import { test } from 'node:test'
import { aDeployment, aPod, builtin } from '../fixtures.test-support.ts'
import { jsonPatch } from './json-patch.ts'
import { mergePatch } from './merge-patch.ts'
import { strategicMergePatch } from './strategic-merge-patch.ts'

const pods = builtin('Pod').schema

test('a JSON patch changes a copy', () => {
  const pod = aPod()
  const result = jsonPatch(pod, [{ op: 'replace', path: '/spec/containers/0/image', value: 'x' }])
  assert.deepEqual(result.object?.['spec'], { containers: [{ name: 'main', image: 'x' }] })
  assert.deepEqual(pod, aPod())
})

test('a failed test of a JSON patch is an error', () => {
  const failed = jsonPatch(aPod(), [{ op: 'test', path: '/metadata/name', value: 'other' }])
  assert.equal(failed.error, 'testing value /metadata/name failed: test failed')
  assert.match(jsonPatch(aPod(), [{ op: 'remove', path: '/spec/nope' }]).error ?? '', /does not apply/)
  assert.match(jsonPatch(aPod(), { op: 'remove' }).error ?? '', /must be a list/)
})

test('a test of a JSON patch for null passes where nothing is, and only there', () => {
  const isNull = (path: string) => jsonPatch(aPod(), [{ op: 'test', path, value: null }]).error
  assert.equal(isNull('/metadata/nope'), undefined)
  assert.equal(isNull('/metadata/name'), 'testing value /metadata/name failed: test failed')
})

test('a merge patch deletes with null and replaces lists', () => {
  const pod = aPod({ nodeName: 'n', tolerations: [{ key: 'a' }, { key: 'b' }] })
  const patched = mergePatch(pod, { spec: { nodeName: null, tolerations: [{ key: 'c' }] } })
  assert.deepEqual(patched['spec'], {
    containers: [{ name: 'main', image: 'nginx:1.27' }],
    tolerations: [{ key: 'c' }],
  })
})

test('what a merge patch repeats stays the very same value', () => {
  const conditions = [
    { type: 'Ready', status: 'True' },
    { type: 'Scheduled', status: 'True' },
  ]
  const pod = { ...aPod(), status: { phase: 'Running', conditions } }
  const copy = <T>(value: T): T => JSON.parse(JSON.stringify(value))
  assert.equal(mergePatch(pod, copy({ metadata: pod.metadata, status: pod.status, gone: null })), pod)
  const [, scheduled] = conditions
  const patched = mergePatch(
    pod,
    copy({ status: { conditions: [{ type: 'Ready', status: 'False' }, scheduled] } }),
  )
  const status = patched['status'] as typeof pod.status
  assert.deepEqual(status, { phase: 'Running', conditions: [{ type: 'Ready', status: 'False' }, scheduled] })
  assert.equal(status.conditions[1], scheduled)
  assert.equal(patched['spec'], (pod as Record<string, unknown>)['spec'])
  assert.deepEqual(pod.status.conditions, conditions)
})

test('a strategic patch merges containers by name and keeps the order asked for', () => {
  const pod = aPod({ containers: [{ name: 'a', image: '1' }, { name: 'injected' }] })
  const patch = {
    spec: {
      '$setElementOrder/containers': [{ name: 'b' }, { name: 'a' }],
      containers: [{ name: 'a', image: '2' }, { name: 'b' }],
    },
  }
  assert.deepEqual(strategicMergePatch(pod, patch, pods).object?.['spec'], {
    containers: [{ name: 'b' }, { name: 'a', image: '2' }, { name: 'injected' }],
  })
})

test('a strategic patch deletes an item, replaces a list and empties a set', () => {
  const pod = aPod({ volumes: [{ name: 'v', emptyDir: {} }] }, { finalizers: ['a/b', 'c/d'] })
  const patch = {
    metadata: { '$deleteFromPrimitiveList/finalizers': ['a/b'], finalizers: ['e/f'] },
    spec: {
      containers: [{ $patch: 'delete', name: 'main' }],
      volumes: [{ $patch: 'replace' }, { name: 'w' }],
    },
  }
  const patched = strategicMergePatch(pod, patch, pods).object
  assert.deepEqual(patched?.metadata.finalizers, ['c/d', 'e/f'])
  assert.deepEqual(patched?.['spec'], { containers: [], volumes: [{ name: 'w' }] })
})

test('a strategic patch with $retainKeys drops what it does not name', () => {
  const deployment = aDeployment({ strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1 } } })
  const patch = { spec: { strategy: { $retainKeys: ['type'], type: 'Recreate' } } }
  const patched = strategicMergePatch(deployment, patch, builtin('Deployment').schema).object
  assert.ok(patched)
  assert.deepEqual((patched['spec'] as { strategy: unknown }).strategy, { type: 'Recreate' })
})

test('a strategic patch replaces a map as a whole', () => {
  const pod = aPod({ nodeSelector: { a: '1', b: '2' } })
  const patched = strategicMergePatch(
    pod,
    { spec: { nodeSelector: { $patch: 'replace', c: '3' } } },
    pods,
  ).object
  assert.ok(patched)
  assert.deepEqual((patched['spec'] as { nodeSelector: unknown }).nodeSelector, { c: '3' })
})

test('a strategic patch without the merge key is an error', () => {
  const result = strategicMergePatch(aPod(), { spec: { containers: [{ image: 'x' }] } }, pods)
  assert.equal(result.error, 'map: {"image":"x"} does not contain declared merge key: name')
})
