import assert from 'node:assert/strict'
import { test } from 'node:test'
import { playMany } from './world-many.ts'

test('many runs say where one of them has got to before the first is over', async () => {
  const lines: string[] = []
  let now = 0
  const args = ['--seeds', '3', '--hours', '0.1', '--nodes', '4', '--jobs', '1']
  const clock = { monotonic: () => (now += 5000) }
  assert.equal(await playMany({ args, say: (line) => lines.push(line), clock }), 0)
  const first =
    /^0 of 1 seeds, 0 failed, \d+ s; seed 3 at 0:0\d:\d\d of 0:06:00: \d+ pods on \d+ nodes, \d+ events so far$/
  assert.match(lines[0] ?? '', first)
  assert.match(lines.at(-1) ?? '', /^1 of 1 seeds, 0 failed, /)
})
