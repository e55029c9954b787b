import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { test } from 'node:test'
import { AbortableWaits } from './abortable.ts'

const never = () => new Promise<never>(() => undefined)

test('waits one after the other listen to their signal once, and to the end', async () => {
  const { signal } = new AbortController()
  const waits = new AbortableWaits(signal)
  for (const value of [1, 2, 3]) assert.equal(await waits.until(Promise.resolve(value)), value)
  await assert.rejects(waits.until(Promise.reject(new Error('broken'))), /broken/)
  assert.equal(getEventListeners(signal, 'abort').length, 1)
  waits.end()
  assert.equal(getEventListeners(signal, 'abort').length, 0)
})

test('an abort ends the wait under way and every later one with its reason', async () => {
  const controller = new AbortController()
  const waits = new AbortableWaits(controller.signal)
  await waits.until(Promise.resolve())
  const underWay = waits.until(never())
  controller.abort(new Error('stopped'))
  await assert.rejects(underWay, /stopped/)
  await assert.rejects(waits.until(never()), /stopped/)
})
