import assert from 'node:assert/strict'
import { test } from 'node:test'
import { VirtualClock } from '@tenon/runtime'
import { SweepGuard } from './sweep-guard.ts'

const minute = 60_000

function aGuard(): { readonly clock: VirtualClock; readonly guard: SweepGuard } {
  const clock = new VirtualClock()
  return { clock, guard: new SweepGuard({ clock, name: 'things', graceMs: 5 * minute }) }
}

const ids = (count: number) => Array.from({ length: count }, (_, i) => `i${i}`)

test('RPT-35 one object, or a fifth of what is there, goes in one pass', () => {
  for (const [wanted, present] of [
    [0, 0],
    [1, 1],
    [2, 10],
    [20, 100],
  ] as const)
    assert.deepEqual(
      aGuard().guard.admit(ids(wanted), present).admitted,
      ids(wanted),
      `${wanted} of ${present}`,
    )
})

test('RPT-35 more than that goes only once every pass of the grace period has named it, a tenth a pass', async () => {
  const { clock, guard } = aGuard()
  let wanted = ids(30)
  let present = 100
  assert.equal(guard.admit(wanted, present).admitted.length, 0)
  assert.equal(guard.held, 30)
  await clock.advance(4 * minute)
  assert.equal(guard.admit(wanted, present).admitted.length, 0)
  await clock.advance(minute)
  const passes: number[] = []
  while (wanted.length > 0) {
    const { admitted, held } = guard.admit(wanted, present)
    assert.deepEqual([...admitted, ...held].toSorted(), [...wanted].toSorted())
    wanted = wanted.filter((id) => !admitted.includes(id))
    present -= admitted.length
    passes.push(admitted.length)
  }
  assert.deepEqual(passes, [10, 9, 8, 3], 'what is left goes slowly to the end')
  assert.deepEqual(guard.admit([], present), { admitted: [], held: [] })
  assert.equal(guard.held, 0)
})

test('RPT-35 a pass that disagrees starts the wait again', async () => {
  const { clock, guard } = aGuard()
  guard.admit(ids(11), 14)
  await clock.advance(4 * minute)
  assert.deepEqual(guard.admit([], 14), { admitted: [], held: [] })
  await clock.advance(4 * minute)
  assert.equal(guard.admit(ids(11), 14).admitted.length, 0)
  await clock.advance(4 * minute)
  assert.equal(guard.admit(ids(11), 14).admitted.length, 0)
  await clock.advance(minute)
  assert.equal(guard.admit(ids(11), 14).admitted.length, 1, 'a tenth of fourteen, and no more')
})

const noticed = (clock: VirtualClock) =>
  new SweepGuard({ clock, name: 'things', graceMs: 5 * minute, noticeMs: 10 * minute })

test('ADO-15 notice goes on while a person asks, and begins anew for what had an owner while nothing was judged', async () => {
  const clock = new VirtualClock()
  const guard = noticed(clock)
  const always = () => true
  guard.admit(['a', 'b'], 14, always)
  await clock.advance(6 * minute)
  guard.admit(ids(9).concat('a', 'b'), 14)
  guard.gate = () => 'another cluster'
  assert.deepEqual(guard.admit(['a'], 14, always).admitted, [])
  guard.gate = () => undefined
  await clock.advance(5 * minute)
  assert.deepEqual(guard.admit(['a', 'b'], 14, always), { admitted: ['a'], held: ['b'], announced: 1 })
})

test('ADO-15 what is announced takes nothing of the pace of a large sweep', async () => {
  const clock = new VirtualClock()
  const guard = noticed(clock)
  const isLost = (id: string) => id.startsWith('lost')
  const wanted = ['lost1', 'lost2', 'lost3', ...ids(3)]
  guard.admit(wanted, 12, isLost)
  await clock.advance(5 * minute)
  assert.deepEqual(guard.admit(wanted, 12, isLost).admitted, ['i0'])
})
