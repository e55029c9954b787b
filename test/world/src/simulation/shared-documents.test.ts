import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DocumentBody, DocumentStream, type Transport } from '@tenon/runtime'
import { simulate } from './simulation.ts'
import { aStory } from './story.ts'

/** Servers of this process hand their documents over as they are: whoever changed one would change the server's. */
test('controllers change nothing that the servers of their process hand them', async () => {
  const story = aStory(3, { hours: 0.1, nodes: 4 })
  let frozen = 0
  const freezing = (inner: Transport): Transport => ({
    send: async (request, signal) => {
      const response = await inner.send(request, signal)
      const { body } = response
      if (body instanceof DocumentBody) {
        frozen++
        deepFreeze(body.document)
      }
      if (!(body instanceof DocumentStream)) return response
      const events = body.through(async function* (chunks) {
        for await (const chunk of chunks) {
          for (const event of chunk) deepFreeze(event)
          frozen += chunk.length
          yield chunk
        }
      })
      return { ...response, body: events }
    },
  })
  const report = await simulate(story, {
    name: 'freezing',
    mistake: 'none: what is read cannot be changed',
    api: freezing,
    cloud: freezing,
    profile: story,
  })
  assert.deepEqual(report.violation, undefined)
  assert.deepEqual(
    report.logs.filter((line) => /read only|not extensible|Cannot delete/.test(line)),
    [],
  )
  assert.ok(frozen > 1000, `${frozen} documents`)
})

const known = new WeakSet()

function deepFreeze(value: unknown): void {
  if (typeof value !== 'object' || value === null || known.has(value)) return
  known.add(value)
  Object.freeze(value)
  for (const part of Object.values(value)) deepFreeze(part)
}
