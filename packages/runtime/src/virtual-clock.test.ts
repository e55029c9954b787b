import assert from 'node:assert/strict'
import { test } from 'node:test'
import { VirtualClock } from './virtual-clock.ts'

test('timers run in order of time, then in the order in which they were set', async () => {
  const clock = new VirtualClock(0)
  const seen: string[] = []
  clock.after(20, () => seen.push('late'))
  clock.after(10, () => seen.push('first'))
  clock.after(10, () => seen.push('second'))
  await clock.advance(15)
  assert.deepEqual(seen, ['first', 'second'])
  assert.equal(clock.now(), 15)
})

test('a cancelled timer never runs', async () => {
  const clock = new VirtualClock(0)
  let ran = false
  clock.after(5, () => {
    ran = true
  })()
  await clock.advance(10)
  assert.equal(ran, false)
})

test('a sleep ends early when its signal aborts', async () => {
  const clock = new VirtualClock(0)
  const stop = new AbortController()
  const sleeping = assert.rejects(clock.sleep(1000, stop.signal), /enough/)
  stop.abort(new Error('enough'))
  await sleeping
  assert.equal(clock.now(), 0)
})

test('time moves on however small the steps of a loop are', async () => {
  const clock = new VirtualClock(Date.UTC(2026, 0, 1))
  let turns = 0
  const again = () => {
    if (++turns < 5) clock.after(0.00001, again)
  }
  again()
  assert.equal(await clock.advanceUntil(() => turns === 5, 100), true)
  assert.equal(clock.monotonic(), 4)
})

test('advanceUntil gives up at its limit', async () => {
  const clock = new VirtualClock(0)
  clock.after(500, () => undefined)
  const start = clock.monotonic()
  assert.equal(await clock.advanceUntil(() => false, 100), false)
  assert.equal(clock.monotonic(), start + 100)
})

for (const turns of [1, 0])
  test(`with ${turns} turns all promises settle between two timers, however long their chain`, async () => {
    const clock = new VirtualClock(0, turns)
    const seen: string[] = []
    const chain = async (name: string) => {
      for (let link = 0; link < 50; link++) await Promise.resolve()
      seen.push(`${name} at ${clock.now()}`)
    }
    clock.after(10, () => void chain('first'))
    clock.after(10, () => seen.push('timer'))
    void chain('before')
    await clock.advance(10)
    assert.deepEqual(seen, ['before at 0', 'first at 10', 'timer'])
  })

test('however many timers there are, others have their turn', async () => {
  const clock = new VirtualClock(0, 0)
  let fired = 0
  for (let each = 0; each < 100; each++) clock.after(each, () => fired++)
  const firedThen = new Promise<number>((resolve) => {
    setImmediate(() => {
      resolve(fired)
    })
  })
  await clock.advance(100)
  assert.ok((await firedThen) < 50)
})
