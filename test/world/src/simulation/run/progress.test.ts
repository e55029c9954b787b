import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import type { Io } from './io.ts'
import { describeMoment, Progress } from './progress.ts'
import { playOne } from './world.ts'

/** Lines that a run says when each question for the time takes so long. */
async function saidBy(args: readonly string[], lookTakesMs: number): Promise<readonly string[]> {
  const folder = await mkdtemp(join(tmpdir(), 'tenon-progress-'))
  const lines: string[] = []
  let now = 0
  const io: Io = {
    args: [...args, '--trace', join(folder, 'trace.json')],
    say: (line) => lines.push(line),
    clock: { monotonic: () => (now += lookTakesMs) },
  }
  await playOne(io)
  await rm(folder, { recursive: true })
  return lines
}

const short = ['--seed', '3', '--hours', '0.1', '--nodes', '4']

describe('the progress of a run', () => {
  test('is told every five seconds while a run lasts', async () => {
    const lines = await saidBy(short, 2500)
    const told = /^ {2}at 0:0(\d):\d\d of 0:06:00: \d+ pods on \d+ nodes, \d+ events so far$/
    assert.deepEqual(
      lines.flatMap((line) => told.exec(line)?.[1] ?? []),
      ['2', '4'],
    )
    assert.ok(lines.some((line) => /^ {2}at 0:\d\d:\d\d, no more faults: /.test(line)))
    assert.match(lines.at(-1) ?? '', /every invariant held/)
  })

  test('is not told of a run that is over soon', async () => {
    const lines = await saidBy(short, 1)
    assert.deepEqual(
      lines.filter((line) => /so far/.test(line)),
      [],
    )
    assert.match(lines[0] ?? '', /^seed 3, /)
  })

  test('tells which of the runs for a shorter story is being played', async () => {
    const lines = await saidBy(['--seed', '1', '--bug', 'undrained', '--shrink', '2'], 5000)
    const runs = new Set(
      lines.flatMap((line) => /^ {2}run (\d) of at most 2, seed 1, .*: at /.exec(line)?.[1] ?? []),
    )
    assert.deepEqual([...runs], ['1', '2'])
    assert.equal(lines.filter((line) => line.startsWith('Shortest story: ')).length, 1)
  })

  test('says when nothing more goes wrong', () => {
    const now = { atMs: 7_260_000, ofMs: 7_200_000, nodes: 3, pods: 12, events: 400 }
    assert.equal(describeMoment(now), 'at 2:01:00, no more faults: 12 pods on 3 nodes, 400 events so far')
  })

  test('works a line out only when it is said', () => {
    let now = 0
    const lines: string[] = []
    const progress = new Progress({ say: (line) => lines.push(line), clock: { monotonic: () => now } })
    let asked = 0
    const line = () => `line ${++asked}`
    for (const ms of [0, 4999, 5000, 9999, 10_000]) {
      now = ms
      progress.tell(line)
    }
    assert.deepEqual(lines, ['line 1', 'line 2'])
  })
})
