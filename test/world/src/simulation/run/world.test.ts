import assert from 'node:assert/strict'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { playOne } from './world.ts'

test('a replay writes a trace of its own and leaves the one it plays alone', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'tenon-replay-'))
  const lines: string[] = []
  const play = (...args: string[]) =>
    playOne({ args, say: (line) => lines.push(line), clock: { monotonic: () => 0 } })
  const recorded = join(folder, 'one.json')
  await play('--seed', '3', '--hours', '0.1', '--nodes', '4', '--trace', recorded)
  const before = (await readFile(recorded, 'utf8')).replace(/"hash": "/, '"hash": "other ')
  await writeFile(recorded, before)
  assert.equal(await play('--replay', recorded), 1)
  assert.match(lines.at(-1) ?? '', /^The replay differs: [0-9a-f]{32} instead of other [0-9a-f]{32}\.$/)
  assert.deepEqual((await readdir(folder)).sort(), ['one-replay.json', 'one.json'])
  assert.equal(await readFile(recorded, 'utf8'), before)
  await rm(folder, { recursive: true })
})
