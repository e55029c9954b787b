import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { integerBetween, SeededRandom } from '@tenon/runtime'
import type { TraceRecord } from './records.ts'
import { readTraceBytes, readTraceFile, TraceFile } from './trace-file.ts'

async function aPath(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'tenon-record-'))
  t.after(() => rm(folder, { recursive: true }))
  return join(folder, 'week.tnr')
}

const ended = (pod: number): TraceRecord => ({ kind: 'podEnded', atMs: 1000 * pod, pod })

/** Ten blocks of twenty records. */
async function written(path: string): Promise<readonly TraceRecord[]> {
  const file = await TraceFile.create(path)
  const all = Array.from({ length: 200 }, (_, pod) => ended(pod))
  for (const [index, record] of all.entries()) {
    file.write(record)
    if (index % 20 === 19) await file.flush()
  }
  await file.close()
  return all
}

test('EXP-16 a recording is read as it was written', async (t) => {
  const path = await aPath(t)
  const all = await written(path)
  const read = await readTraceFile(path)
  assert.equal('records' in read && read.end.kind, 'whole')
  assert.deepEqual('records' in read && read.records, all)
})

test('EXP-16 what a crash leaves of a block is cut off, and recording goes on behind it', async (t) => {
  const path = await aPath(t)
  const all = await written(path)
  const { length } = await readFile(path)
  await truncate(path, length - 3)
  const cut = await readTraceFile(path)
  if (!('records' in cut)) throw new Error(cut.message)
  assert.equal(cut.end.kind, 'cut')
  assert.deepEqual(cut.records, all.slice(0, 180))
  const file = await TraceFile.append(path, cut.wholeBytes)
  file.write(ended(1000))
  await file.close()
  const read = await readTraceFile(path)
  assert.equal('records' in read && read.end.kind, 'whole')
  assert.deepEqual('records' in read && read.records, [...all.slice(0, 180), ended(1000)])
})

test('EXP-30 a file damaged at any byte is refused or read up to the damage, never read wrong', async (t) => {
  const path = await aPath(t)
  const all = await written(path)
  const bytes = await readFile(path)
  const random = new SeededRandom(35)
  const seen = { refused: 0, cut: 0 }
  for (let run = 0; run < 500; run++) {
    const damaged = Buffer.from(bytes)
    const at = integerBetween(random, 0, bytes.length - 1)
    damaged[at] = (bytes[at] ?? 0) ^ integerBetween(random, 1, 255)
    const read = readTraceBytes(damaged)
    if (!('records' in read)) {
      assert.match(read.message, /recording/)
      seen.refused++
      continue
    }
    assert.equal(read.end.kind, 'cut', `byte ${at}`)
    assert.deepEqual(read.records, all.slice(0, read.records.length))
    assert.equal(read.records.length % 20, 0)
    seen.cut++
  }
  assert.equal(seen.cut > 400 && seen.refused > 0, true, JSON.stringify(seen))
})

test('EXP-30 a recording of a newer version is refused with both versions', async (t) => {
  const path = await aPath(t)
  await writeFile(path, 'tenon-record 7\n')
  const read = await readTraceFile(path)
  assert.equal(
    'message' in read && read.message,
    'the recording has version 7, and this program reads versions up to 1: use a newer tenon',
  )
})
