import assert from 'node:assert/strict'
import { test } from 'node:test'
import { VectorCache, ResourceSpace } from './resource-space.ts'

test('amounts that last are read once for decisions about the same resources, and anew for others', () => {
  const known = new VectorCache()
  const amounts = { cpu: 2, memory: 3 }
  const spaceOf = (...names: readonly string[]) => {
    const space = new ResourceSpace(known)
    for (const name of names) space.add({ [name]: 1 })
    return space
  }
  const first = spaceOf('cpu', 'memory').lastingVector(amounts)
  assert.deepEqual([...first], [2, 3])
  assert.equal(spaceOf('cpu', 'memory').lastingVector(amounts), first)
  assert.deepEqual([...spaceOf('memory', 'cpu').lastingVector(amounts)], [3, 2])
  const growing = spaceOf('memory')
  assert.deepEqual([...growing.lastingVector(amounts)], [3])
  growing.add(amounts)
  assert.deepEqual([...growing.lastingVector(amounts)], [3, 2])
  assert.deepEqual([...new ResourceSpace().lastingVector(amounts)], [])
})
