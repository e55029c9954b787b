import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ExoscaleFixture } from '../exoscale.test-support.ts'
import type { InstanceRecord, KeptInstances } from './kept-instances.ts'

/** What outlives a process, as text. */
type Stored = Map<string, string>

const aStore = (): Stored => new Map()

const keptIn = (stored: Stored): KeptInstances => ({
  all: () => [...stored.values()].map((text) => JSON.parse(text) as InstanceRecord),
  save: (record) => {
    stored.set(record.id, JSON.stringify(record))
  },
  remove: (id) => {
    stored.delete(id)
  },
})

/** The zone as the next process finds it: with nothing but what the store holds. */
const nextRun = (store: Stored) => new ExoscaleFixture({ kept: keptIn(store) })

const states = ({ cloud }: ExoscaleFixture) => cloud.instances().map(({ id, state }) => ({ id, state }))

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
