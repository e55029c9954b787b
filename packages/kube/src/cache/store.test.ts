import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { KubeObject } from '@tenon/api'
import { type Clock, VirtualClock } from '@tenon/runtime'
import { TurnPace } from '../turn-pace.ts'
import { Store } from './store.ts'

const anObject = (name: string, resourceVersion = '1'): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, uid: name, resourceVersion },
})

/** Stores that take turns on a clock on which each word to a listener takes 2 ms. */
function slowlyHeard() {
  const clock = new VirtualClock()
  let spentMs = 0
  const slow: Clock = {
    now: () => clock.now(),
    monotonic: () => clock.monotonic() + spentMs,
    sleep: (ms, signal) => clock.sleep(ms, signal),
    after: (ms, callback) => clock.after(ms, callback),
  }
  const pacing = { clock: slow, pace: new TurnPace(slow) }
  const heard: string[] = []
  const another = () =>
    new Store<KubeObject>({
      pacing,
      onBug: (error) => {
        throw error
      },
    })
  const store = another()
  const follow = (who: string, followed = store) =>
    followed.onChange(({ kind, object }) => {
      spentMs += 2
      heard.push(`${who} ${kind} ${object.metadata.name}@${object.metadata.resourceVersion}`)
    })
  return { clock, store, another, heard, follow }
}

test('a listener that joins late hears of what there is in steps, and others run in between', async () => {
  const { clock, store, heard, follow } = slowlyHeard()
  for (const name of ['a', 'b', 'c', 'd', 'e', 'f', 'g']) store.put(anObject(name))
  follow('x')
  assert.deepEqual(heard, ['x added a@1', 'x added b@1', 'x added c@1'])
  clock.after(0, () => heard.push('others'))
  await clock.advance(10)
  const rest = ['x added d@1', 'x added e@1', 'x added f@1', 'others', 'x added g@1']
  assert.deepEqual(heard.slice(3), rest)
  store.put(anObject('h'))
  assert.equal(heard.at(-1), 'x added h@1')
})

test('of stores that tell what they hold, one goes on in each turn', async () => {
  const { clock, store, another, heard, follow } = slowlyHeard()
  const other = another()
  for (const each of [store, other])
    for (const name of ['a', 'b', 'c', 'd', 'e', 'f', 'g']) each.put(anObject(name))
  follow('x')
  follow('y', other)
  heard.length = 0
  const others = () => {
    heard.push('others')
    if (heard.length < 12) clock.after(0, others)
  }
  clock.after(0, others)
  await clock.advance(10)
  const turns = heard
    .join()
    .split('others')
    .map((turn) => turn.split(',').filter((each) => each !== ''))
  assert.deepEqual(
    turns.map((turn) => turn.map((each) => each.slice(0, 9))).filter((turn) => turn.length > 0),
    [
      ['x added d', 'x added e', 'x added f'],
      ['y added a', 'y added b', 'y added c'],
      ['x added g', 'y added d', 'y added e', 'y added f'],
      ['y added g'],
    ],
  )
})

test('what changes before a listener was told of it is told once, as it is then', async () => {
  const { clock, store, heard, follow } = slowlyHeard()
  for (const name of ['a', 'b', 'c', 'd', 'e']) store.put(anObject(name))
  follow('x')
  follow('y')
  heard.length = 0
  store.put(anObject('a', '2'))
  store.put(anObject('d', '2'))
  store.remove(anObject('e', '2'))
  store.put(anObject('f'))
  assert.deepEqual(heard, ['x updated a@2'])
  await clock.advance(100)
  assert.deepEqual(heard.slice(1), [
    'x added d@2',
    'x added f@1',
    'y added a@2',
    'y added b@1',
    'y added c@1',
    'y added d@2',
    'y added f@1',
  ])
})
