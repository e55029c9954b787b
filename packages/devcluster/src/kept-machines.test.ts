import assert from 'node:assert/strict'
import { test } from 'node:test'
import { VirtualClock } from '@tenon/runtime'
import { ExoscaleFixture } from './exoscale/exoscale.test-support.ts'
import type { InstanceRecord } from './exoscale/index.ts'
import { keptMachines } from './kept-machines.ts'
import { Store } from './storage/store.ts'

const aStore = () => new Store({ clock: new VirtualClock() })

/** The zone as the next process finds it: with nothing but what the store holds. */
const nextRun = (store: Store) => new ExoscaleFixture({ kept: keptMachines(store) })

const states = ({ cloud }: ExoscaleFixture) => cloud.instances().map(({ id, state }) => ({ id, state }))

test('instances are written down as they change and forgotten when they are gone', () => {
  const store = aStore()
  const kept = keptMachines(store)
  const record = { id: 'i', name: 'n', state: 'running' } as InstanceRecord
  kept.save(record)
  const { revision } = store
  kept.save({ ...record })
  assert.equal(store.revision, revision, 'what has not changed is not written again')
  assert.deepEqual(kept.all(), [record])
  kept.remove('i')
  kept.remove('i')
  assert.deepEqual(kept.all(), [])
})

test('an instance has the same address, labels and groups in the next run, and a new one another address', async () => {
  const store = aStore()
  const before = nextRun(store)
  const id = await before.instance({ labels: { a: '1' } })
  const shown = await before.ok('GET', `/instance/${id}`)
  before.cloud.stop()
  const after = nextRun(store)
  assert.deepEqual(await after.ok('GET', `/instance/${id}`), shown)
  const another = await after.ok('GET', `/instance/${await after.instance({ name: 'another' })}`)
  assert.notEqual(another['public-ip'], shown['public-ip'])
})

test('operations that a crash cut short have happened in the next run', async () => {
  const store = aStore()
  const before = nextRun(store)
  const stopping = await before.instance({ name: 'stopping' })
  const going = await before.instance({ name: 'going' })
  await before.ok('PUT', `/instance/${stopping}:stop`)
  await before.ok('DELETE', `/instance/${going}`)
  const { reference } = await before.ok('POST', '/instance', before.body({ name: 'coming' }))
  assert.deepEqual(
    states(nextRun(store)).toSorted((a, b) => a.state.localeCompare(b.state)),
    [
      { id: reference.id, state: 'running' },
      { id: stopping, state: 'stopped' },
    ],
  )
})
