import assert from 'node:assert/strict'
import { test } from 'node:test'
import { VirtualClock } from '@tenon/runtime'
import { keptInstances } from './kept-instances.ts'
import { Store } from './storage/store.ts'

test('instances are written down as they change and forgotten when they are gone', () => {
  const store = new Store({ clock: new VirtualClock() })
  const kept = keptInstances(store)
  const record = { id: 'i', name: 'n', state: 'running' }
  kept.save(record)
  const { revision } = store
  kept.save({ ...record })
  assert.equal(store.revision, revision, 'what has not changed is not written again')
  assert.deepEqual(kept.all(), [record])
  kept.remove('i')
  kept.remove('i')
  assert.deepEqual(kept.all(), [])
})
