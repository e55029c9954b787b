import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { readTraceFile } from './trace-file.ts'
import { traceStateAfter } from './trace-state.ts'

const mib = 1024 ** 2
const hours = 12
const hoursOfWeek = 168

test('EXP-18 half a day of 10 000 pods with 100 changes a minute fits in 64 MiB of heap and its share of 100 MiB of disk', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'tenon-record-'))
  t.after(() => rm(folder, { recursive: true }))
  const path = join(folder, 'week.tnr')
  // One that needs more memory ends with an error.
  const worker = new Worker(new URL('./week-feed.test-support.ts', import.meta.url), {
    workerData: { path, minutes: hours * 60 },
    resourceLimits: { maxOldGenerationSizeMb: 48, maxYoungGenerationSizeMb: 16 },
  })
  const [code] = (await once(worker, 'exit')) as readonly unknown[]
  assert.equal(code, 0)
  const { size } = await stat(path)
  assert.equal((size * hoursOfWeek) / hours < 100 * mib, true, `${(size / mib).toFixed(1)} MiB`)
  const read = await readTraceFile(path)
  assert.equal('records' in read && read.end.kind, 'whole')
  assert.equal('records' in read && traceStateAfter(read.records).pods.size, 10_000)
})
