import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readText, VirtualClock } from '@tenon/runtime'
import { Journal } from './journal.ts'
import { journalPage } from './journal-page.ts'

function aJournal() {
  const clock = new VirtualClock(Date.parse('2026-11-20T08:00:00Z'), 1)
  const journal = new Journal(clock, () => undefined)
  const note = (message: string) => {
    journal.note({ kind: 'launch', reason: 'Provisioned', message })
  }
  const get = (query: string, signal?: AbortSignal) =>
    journalPage({ journal, clock }, { path: `/debug/journal${query}` }, signal)
  return { clock, note, get }
}

const messages = (text: string) =>
  text.split('\n').flatMap((line) => (line === '' ? [] : [(JSON.parse(line) as { message: string }).message]))

test('/debug/journal gives entries as JSON lines with apiVersion and kind, from a duration ago or a time on', async () => {
  const { clock, note, get } = aJournal()
  note('old')
  await clock.advance(2 * 3_600_000)
  note('new')
  const all = await readText(get('').body)
  assert.deepEqual(messages(all), ['old', 'new'])
  const [first = ''] = all.split('\n')
  assert.match(
    first,
    /^\{"apiVersion":"tenon\.sh\/v1alpha1","kind":"JournalEntry","id":"[^"]+","at":"2026-11-20T08:00:00/,
  )
  assert.deepEqual(messages(await readText(get('?since=1h').body)), ['new'])
  assert.deepEqual(messages(await readText(get('?since=2026-11-20T09:00:00Z').body)), ['new'])
  const refused = get('?since=yesterday')
  assert.equal(refused.status, 400)
  assert.match(await readText(refused.body), /"yesterday" is no duration such as 1h30m/)
})

test('/debug/journal?follow=true goes on with each entry once, until the request ends', async () => {
  const { note, get } = aJournal()
  const stop = new AbortController()
  note('before')
  let text = ''
  const done = (async () => {
    for await (const part of get('?follow=true', stop.signal).body) {
      text += String(part)
      if (text.includes('second')) stop.abort()
    }
  })()
  note('first')
  await new Promise((resolve) => setImmediate(resolve))
  note('second')
  await done
  assert.deepEqual(messages(text), ['before', 'first', 'second'])
})

test('many entries are handed over in parts', async () => {
  const { note, get } = aJournal()
  for (let i = 0; i < 1000; i++) note(`entry ${i}`)
  let parts = 0
  for await (const part of get('').body) {
    parts++
    assert.ok(messages(String(part)).length <= 200)
  }
  assert.equal(parts, 5)
})
