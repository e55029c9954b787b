import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { KubeObject } from '@tenon/api'
import { VirtualClock } from '@tenon/runtime'
import { Store } from './store.ts'

const anObject = (name: string, resourceVersion = '1'): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, uid: name, resourceVersion },
})

/** A store on a clock on which each word to a listener takes 1.5 ms. */
function slowlyHeard() {
  const clock = new VirtualClock()
  let spentMs = 0
  const heard: string[] = []
  const store = new Store<KubeObject>({
    clock: {
      now: () => clock.now(),
      monotonic: () => clock.monotonic() + spentMs,
      sleep: (ms, signal) => clock.sleep(ms, signal),
      after: (ms, callback) => clock.after(ms, callback),
    },
    onBug: (error) => {
      throw error
    },
  })
  const follow = (who: string) =>
    store.onChange(({ kind, object }) => {
      spentMs += 1.5
      heard.push(`${who} ${kind} ${object.metadata.name}@${object.metadata.resourceVersion}`)
    })
  return { clock, store, heard, follow }
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
