import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readWindows, windowChanges, windowsState } from './time-windows.ts'

function changes(text: string, from: string, count = 4): readonly string[] {
  const reading = readWindows(text)
  assert.ok('windows' in reading, text)
  const found = windowChanges(reading.windows, Date.parse(from)).take(count)
  return Array.from(found, ({ atMs, isOpen }) => {
    const time = new Date(atMs).toISOString().replace(':00.000Z', 'Z')
    return `${isOpen ? 'opens' : 'ends'} ${time}`
  })
}

test('WNT-29 windows of several days, beyond midnight and of one zone', () => {
  // A Friday in winter.
  assert.deepEqual(changes('Sat-Sun 00:00-06:00 Europe/Zurich', '2026-01-02T12:00:00Z'), [
    'opens 2026-01-02T23:00Z',
    'ends 2026-01-03T05:00Z',
    'opens 2026-01-03T23:00Z',
    'ends 2026-01-04T05:00Z',
  ])
  assert.deepEqual(changes('fri 22:00-2:00', '2026-01-02T12:00:00Z', 3), [
    'opens 2026-01-02T22:00Z',
    'ends 2026-01-03T02:00Z',
    'opens 2026-01-09T22:00Z',
  ])
  assert.deepEqual(changes('Sat-Mon 00:00-24:00', '2026-01-02T12:00:00Z', 2), [
    'opens 2026-01-03T00:00Z',
    'ends 2026-01-06T00:00Z',
  ])
  assert.deepEqual(changes('00:00-12:00 , 12:00-18:00', '2026-01-02T01:00:00Z', 2), [
    'ends 2026-01-02T18:00Z',
    'opens 2026-01-03T00:00Z',
  ])
  assert.deepEqual(changes('00:00-24:00', '2026-01-02T01:00:00Z'), [])
})

test('WNT-28 windows keep to clocks that change', () => {
  assert.deepEqual(changes('02:30-05:00 Europe/Zurich', '2026-03-28T12:00:00Z', 2), [
    'opens 2026-03-29T01:00Z',
    'ends 2026-03-29T03:00Z',
  ])
  assert.deepEqual(changes('02:30-05:00 Europe/Zurich', '2026-10-24T12:00:00Z', 2), [
    'opens 2026-10-25T00:30Z',
    'ends 2026-10-25T04:00Z',
  ])
  assert.deepEqual(changes('02:10-02:20 Europe/Zurich', '2026-03-28T12:00:00Z', 1), [
    'opens 2026-03-30T00:10Z',
  ])
})

test('WNT-28 a window that clocks skip comes back a week later', () => {
  assert.deepEqual(changes('Sun 02:10-02:20 Europe/Zurich', '2026-03-27T12:00:00Z', 1), [
    'opens 2026-04-05T00:10Z',
  ])
})

test('a window is open from its begin until before its end', () => {
  const reading = readWindows('06:00-07:00')
  assert.ok('windows' in reading)
  const isOpen = (time: string) => windowsState(reading.windows, Date.parse(time)).isOpen
  assert.deepEqual(
    ['05:59:59.999', '06:00:00', '06:59:59.999', '07:00:00'].map((time) => isOpen(`2026-01-02T${time}Z`)),
    [false, true, true, false],
  )
})

test('WNT-42 what is no window has a problem', () => {
  for (const text of [
    '',
    ',',
    '06:00',
    '06:00-06:00',
    '24:00-06:00',
    '25:00-26:00',
    '06:60-07:00',
    'Satt 06:00-07:00',
    'Sat-Foo 06:00-07:00',
    'Sat 06:00-07:00 Europe/Zürich',
    'Sat 06:00-07:00 Europe/Zurich, Sun 06:00-07:00',
    '__proto__',
    'NaN',
    '-1',
    '1e309',
    'true',
    '0 7 * * *',
    'x'.repeat(10_000),
    '06:00-07:00,'.repeat(20),
  ]) {
    const reading = readWindows(text)
    assert.ok('problem' in reading && reading.problem.length < 200, text.slice(0, 20))
  }
})
