import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { TraceFile } from '@tenon/ask'
import { runCommand } from '../../testing/command.test-support.ts'
import { anHour } from '../../testing/recording.test-support.ts'
import { PlayedScreen } from './screen.test-support.ts'

const startMs = Date.UTC(2026, 0, 1)
let folder = ''
let trace = ''

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tenon-trace-'))
  trace = join(folder, 'hour.tnr')
  const node = anHour.find((record) => record.kind === 'nodeCame')
  const file = await TraceFile.create(trace)
  for (const record of anHour) {
    file.write(record)
    if (record.kind === 'podEnded' && node !== undefined)
      file.write({ ...node, atMs: startMs + 30 * 60_000, node: 'b', id: 'node-b', pricePerHour: 0.3 })
  }
  await file.close()
})

after(async () => {
  await rm(folder, { recursive: true, force: true })
})

test('CON-19 in the terminal a recording has a slider over its time, and shows the nodes and prices of it', async (t) => {
  const screen = new PlayedScreen(['--trace', trace], { columns: 120, rows: 24 })
  t.after(() => screen.close())
  await screen.shows((text) => text.includes('> a') && text.includes('2026-01-01T00:00:00Z'))
  assert.match(screen.text(), /^1 node {2}0\.200\/hour/m)
  assert.match(screen.text(), /a recording does not tell them, nor on which nodes pods ran/)
  screen.type('}}}}}')
  await screen.shows((text) => text.includes('2026-01-01T00:30:00Z') && text.includes('2 nodes  0.500/hour'))
  assert.match(screen.text(), /0\.5 of 1\.0 h/)
  screen.type('[')
  await screen.shows((text) => text.includes('2026-01-01T00:29:24Z') && text.includes('1 node '))
  screen.type(' ')
  await screen.shows((text) => text.includes('space stops'))
  await screen.shows((text) => text.includes('2 nodes'))
  screen.type('y')
  await screen.shows((text) => text.includes('yaml of node/a') && text.includes('kind: Node'))
  screen.type('\u001bp')
  await screen.shows((text) => text.includes('read-only: a recording cannot be changed'))
  screen.type(':cost\r')
  const costs = await screen.shows((text) => text.includes('total 0.500/h'))
  assert.match(costs, /^> default +0\.500 +\? +\? +365\.000 +\?$/m, 'what pods ask for is not known')
  screen.type('c')
  await screen.shows((text) => text.includes('no object whose name could be copied'))
  screen.type(':nodes\rd')
  await screen.shows((text) => text.includes('a recording does not tell why'))
})

test('CON-19 printed, a recording is as it was at its end; one that cannot be read is named', async () => {
  const { code, err, out } = await runCommand(['view', '--trace', trace, '--once'])
  assert.equal(code, 0, err)
  assert.match(out, /^2 nodes, 0 pending; .*0\.500\/hour/m)
  assert.match(out, /^note: without pods: a recording does not tell/m)
  const missing = await runCommand(['view', '--trace', 'missing.tnr', '--once'])
  assert.match(missing.err, /cannot read missing\.tnr/)
  const acting = await runCommand(['view', '--trace', trace, '--allow-actions'])
  assert.match(acting.err, /--allow-actions changes a cluster, and a recording is none/)
})
