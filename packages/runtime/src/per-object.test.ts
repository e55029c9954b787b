import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { perObject } from './per-object.ts'

describe('what is worked out per object', () => {
  test('is worked out once for each object, not for equal ones', () => {
    const asked: object[] = []
    const sizeOf = perObject((numbers: readonly number[]) => {
      asked.push(numbers)
      return numbers.length
    })
    const some = [1, 2]
    const others = [1, 2]
    assert.deepEqual([sizeOf(some), sizeOf(some), sizeOf(others)], [2, 2, 2])
    assert.equal(asked.length, 2)
    assert.equal(asked[0], some)
    assert.equal(asked[1], others)
  })

  test('null and what is worth nothing are kept, too', () => {
    let count = 0
    const nothing = perObject(() => {
      count++
      return count === 1 ? null : 0
    })
    const object = {}
    const other = {}
    assert.deepEqual([nothing(object), nothing(object), nothing(other), nothing(other)], [null, null, 0, 0])
    assert.equal(count, 2)
  })

  test('what could not be worked out is tried again', () => {
    let count = 0
    const once = perObject((): number => {
      count++
      if (count === 1) throw new Error('not yet')
      return count
    })
    const object = {}
    assert.throws(() => once(object), /not yet/)
    assert.equal(once(object), 2)
  })
})
