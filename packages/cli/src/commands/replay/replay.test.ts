import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { TraceFile, type TraceRecord } from '@tenon/ask'
import { runCommand } from '../../testing/command.test-support.ts'
import { anHour } from '../../testing/recording.test-support.ts'

async function aFolder(t: TestContext, records: readonly TraceRecord[] = anHour): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'tenon-replay-'))
  t.after(() => rm(folder, { recursive: true }))
  const file = await TraceFile.create(join(folder, 'hour.tnr'))
  for (const record of records) file.write(record)
  await file.close()
  return folder
}

test('EXP-17 replay prints what was paid beside each variant, and what it assumes', async (t) => {
  const cwd = await aFolder(t)
  await writeFile(join(cwd, 'prices.json'), '{"m.4": 0.1}')
  const args = ['replay', 'hour.tnr', '--price-file', 'prices.json']
  const { code, out, err } = await runCommand(args, { cwd })
  assert.equal(code, 0, err)
  assert.equal(
    out,
    `VARIANT       PRICE   OF RECORDED   PENDING MEDIAN   PENDING P99   EVICTIONS   LAUNCHES   PEAK NODES
as recorded   0.20    100.0%        -                -             0           0          1
replayed      0.20    100.0%        5s               5s            0           0          1
prices.json   0.10    50.0%         5s               5s            0           0          1

1.0 h of https://example.com from 2026-01-01T00:00:00Z; prices are in the unit of the recorded catalogue.
Assumed: the types that were seen on nodes can be bought, and no others.
Assumed: nodes are Ready 60s after their launch, pods 5s after they are bound (--node-boot, --pod-start).
`,
  )
  const page = await readFile(join(import.meta.dirname, '../../../../../docs/ask/replay.md'), 'utf8')
  assert.ok(page.includes(out.split('\n').slice(0, 4).join('\n')))
})

test('EXP-17 a price that nobody knows is told, and is not 0', async (t) => {
  const unpriced = anHour.map((record) => {
    if (record.kind !== 'nodeCame') return record
    const { pricePerHour: _price, ...rest } = record
    return rest
  })
  const cwd = await aFolder(t, unpriced)
  const { out } = await runCommand(['replay', 'hour.tnr'], { cwd })
  assert.match(out, /^as recorded +unknown +- /m)
  assert.match(out, /^replayed +unknown +- /m)
  assert.match(out, /The price of 1 recorded nodes is not known/)
  assert.match(out, /The price of 1 instance of replayed is not known \(--price-file\)/)
})

test('EXP-17 replay of the same file and seed prints the same, as JSON too', async (t) => {
  const cwd = await aFolder(t)
  const args = ['replay', 'hour.tnr', '-o', 'json', '--seed', '3']
  const first = await runCommand(args, { cwd })
  assert.deepEqual(await runCommand(args, { cwd }), first)
  const { kind, variants } = JSON.parse(first.out) as { kind: string; variants: { cost: number }[] }
  assert.equal(kind, 'ReplayReport')
  assert.equal(variants.length, 1)
  assert.equal(variants[0]?.cost.toFixed(4), '0.2000')
})

test('EXP-30 replay names the file that is none, and the one that is not there', async (t) => {
  const cwd = await aFolder(t)
  await writeFile(join(cwd, 'other.tnr'), 'hello')
  const other = await runCommand(['replay', 'other.tnr'], { cwd })
  assert.equal(other.code, 1)
  assert.match(other.err, /other\.tnr: this is no recording/)
  const missing = await runCommand(['replay', 'missing.tnr'], { cwd })
  assert.equal(missing.code, 1)
  assert.match(missing.err, /cannot read missing\.tnr: ENOENT/)
})

test('EXP-16 record does not write over a file', async (t) => {
  const cwd = await aFolder(t)
  const { code, err } = await runCommand(['record', '-o', 'hour.tnr'], { cwd })
  assert.equal(code, 1)
  assert.match(err, /hour\.tnr exists: go on with --append, or use another name/)
})
