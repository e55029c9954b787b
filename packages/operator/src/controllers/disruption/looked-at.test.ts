import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { NodePool, Pod } from '@tenon/api'
import { LookedAt } from './looked-at.ts'

const minute = 60_000
const open = new Map([['default', 3]])

function seen(name: string, pods: string, pricePerHour = 1, generation = 1) {
  return {
    name,
    movable: pods.split('').map((uid) => ({ metadata: { name: uid, uid } }) as Pod),
    pricePerHour,
    pool: { metadata: { name: 'default', generation } } as NodePool,
  }
}

test('candidates that are as they were need not be looked at again', () => {
  const looked = new LookedAt()
  assert.deepEqual(looked.unchanged([seen('a', 'p')], open, 0), new Set())
  looked.note([seen('a', 'p'), seen('b', 'qr'), seen('c', ''), seen('d', 's'), seen('e', 't')], open, 0)
  const now = [seen('a', 'p'), seen('b', 'rq'), seen('c', 'x'), seen('d', 's', 2), seen('e', 't', 1, 2)]
  assert.deepEqual(looked.unchanged([...now, seen('new', '')], open, minute), new Set(['a']))
})

test('all of them are after five minutes, however often something was looked at meanwhile', () => {
  const looked = new LookedAt()
  const all = [seen('a', 'p')]
  for (let at = 0; at < 5 * minute; at += 20_000) {
    assert.equal(looked.unchanged(all, open, at).size, at === 0 ? 0 : 1)
    looked.note(all, open, at)
  }
  assert.equal(looked.unchanged(all, open, 5 * minute).size, 0)
  looked.note(all, open, 5 * minute)
  assert.equal(looked.unchanged(all, open, 9 * minute).size, 1)
})

test('all of them are once budgets leave more or less, and after something was begun', () => {
  const looked = new LookedAt()
  const all = [seen('a', 'p')]
  looked.note(all, open, 0)
  assert.equal(looked.unchanged(all, new Map([['default', 2]]), 1).size, 0)
  looked.note(all, open, 2)
  looked.forget()
  assert.equal(looked.unchanged(all, open, 3).size, 0)
})
