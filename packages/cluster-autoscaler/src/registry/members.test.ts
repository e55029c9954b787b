import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NodeGroupError } from '@tenon/provider'
import { silentLogger, VirtualClock } from '@tenon/runtime'
import { GroupMembers } from './members.ts'
import { anInstance, minute } from './registry.test-support.ts'

/** Counts reads; answers with one member that is named after the number of the read. */
function stage() {
  const clock = new VirtualClock(1_000_000)
  const reads: string[] = []
  let isFailing = false
  let gate: Promise<void> | undefined
  const instances = async (id: string) => {
    reads.push(id)
    const name = `${id}-read-${reads.length}`
    await gate
    if (isFailing) throw new NodeGroupError('instance pool cannot be read')
    return [anInstance(name)]
  }
  const members = new GroupMembers({ groups: { instances }, clock, logger: silentLogger })
  const signal = new AbortController().signal
  const read = async (urgent: readonly string[] = []) => {
    const all = await members.read(['a', 'b'], (id) => urgent.includes(id), signal)
    return [...all].map(([id, found]) => `${id}: ${found.map(({ providerId }) => providerId).join()}`)
  }
  return {
    clock,
    members,
    reads,
    read,
    fail: (failing: boolean) => {
      isFailing = failing
    },
    holdReads: () => {
      const { promise, resolve } = Promise.withResolvers<undefined>()
      gate = promise
      return () => {
        gate = undefined
        resolve(undefined)
      }
    },
  }
}

test('members are read once and then again every two minutes beside the loop', async () => {
  const { clock, reads, read } = stage()
  await read()
  await clock.advance(minute)
  await read()
  assert.deepEqual(reads, ['a', 'b'])
  await clock.advance(minute)
  assert.deepEqual(await read(), ['a: exoscale://a-read-1', 'b: exoscale://b-read-2'])
  assert.deepEqual(reads, ['a', 'b', 'a', 'b'])
  await clock.advance(1)
  assert.deepEqual(await read(), ['a: exoscale://a-read-3', 'b: exoscale://b-read-4'])
})

test('the loop waits for the members of groups that scale up or had members removed', async () => {
  const { members, reads, read } = stage()
  await read()
  assert.deepEqual(await read(['b']), ['a: exoscale://a-read-1', 'b: exoscale://b-read-3'])
  members.invalidate('a')
  assert.deepEqual(await read(), ['a: exoscale://a-read-4', 'b: exoscale://b-read-3'])
  await read()
  assert.equal(reads.length, 4)
})

test('a read that began before a removal does not count as new', async () => {
  const { members, reads, read, holdReads } = stage()
  await read()
  const release = holdReads()
  const during = read(['a'])
  members.invalidate('a')
  release()
  await during
  await read()
  assert.deepEqual(reads, ['a', 'b', 'a', 'a'])
})

test('a group that cannot be read keeps what was known, and is absent when nothing was', async () => {
  const { read, fail } = stage()
  fail(true)
  assert.deepEqual(await read(), [])
  fail(false)
  const before = await read()
  fail(true)
  assert.deepEqual(await read(['a', 'b']), before)
})
