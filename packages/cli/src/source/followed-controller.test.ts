import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventLoopTurns, oneChunk, VirtualClock } from '@tenon/runtime'
import type { SourceEvent } from '@tenon/console'
import { followController } from './followed-controller.ts'

async function* bytesOf(text: string): AsyncGenerator<Uint8Array, void, undefined> {
  for await (const part of oneChunk(text)) yield Buffer.from(part)
}

/** Bytes of a page that goes on, and says nothing. */
async function* silence(signal: AbortSignal | undefined): AsyncGenerator<Uint8Array, void, undefined> {
  await new Promise((resolve) => {
    signal?.addEventListener('abort', resolve, { once: true })
  })
  yield* []
}

test('CON-7 pages of the controller that say what they said before are not told again', async () => {
  const clock = new VirtualClock()
  const ended = new AbortController()
  const told: SourceEvent['kind'][] = []
  let message = 'its pods'
  const following = followController(
    {
      clock,
      emit: ({ kind }) => {
        if (kind !== 'past') told.push(kind)
      },
      reach: () =>
        Promise.resolve({
          get: (path: string, signal?: AbortSignal) => {
            if (path.includes('follow=true')) return Promise.resolve(silence(signal))
            const pages: Readonly<Record<string, object>> = {
              '/debug/prices': { nodeClaims: [{ name: 'c1', pricePerHour: 0.1 }] },
              '/debug/offerings': {},
              '/debug/catalogue': { catalogues: [] },
              '/debug/decisions': { decisions: [{ nodeClaim: 'c1', cause: 'pods', message }] },
              '/debug/journal': {},
            }
            return Promise.resolve(bytesOf(JSON.stringify(pages[path.split('?')[0] ?? ''])))
          },
        }),
    },
    ended.signal,
  )
  const polled = async () => {
    await clock.advance(5000)
    for (let turn = 0; turn < 50; turn++) await eventLoopTurns.next()
  }
  for (let time = 0; time < 3; time++) await polled()
  assert.deepEqual(told.toSorted(), ['catalogues', 'decisions', 'journal', 'prices'])
  message = 'its budget'
  await polled()
  await polled()
  assert.deepEqual(told.slice(4), ['decisions'])
  ended.abort()
  await clock.advance(10_000)
  await following
})
