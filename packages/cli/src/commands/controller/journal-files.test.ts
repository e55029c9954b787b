import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { Journal, journalPage } from '@tenon/operator'
import { JsonLogger, readText, SeededRandom, VirtualClock } from '@tenon/runtime'
import { JournalFiles, type JournalSizes } from './journal-files.ts'

const mebibyte = 1024 * 1024
const sizes: JournalSizes = {
  fileBytes: 20_000,
  allBytes: 100_000,
  restoredBytes: 60_000,
  waitingBytes: mebibyte,
}

/** A journal as a process has it that starts now. */
async function aProcess(directory: string, given?: JournalSizes) {
  const clock = new VirtualClock(Date.parse('2026-11-20T08:00:00Z'), 1)
  const journal = new Journal(clock, () => 'EUR')
  let log = ''
  const logger = new JsonLogger(clock, (text) => (log += text), { value: 'info' })
  const files = await JournalFiles.attach(directory, journal, logger, given)
  return { journal, files, log: () => log, entries: () => [...journal.entries()] }
}

async function aDirectory(t: TestContext): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'tenon-journal-'))
  t.after(() => rm(directory, { recursive: true, force: true }))
  return directory
}

function move(journal: Journal, n: number): void {
  journal.note({
    kind: 'move',
    reason: 'Underutilized',
    message: `replace: [node-${n}] -> [1 replacement]`,
    nodePool: 'général',
    nodes: [`node-${n}`],
    nodeClaims: [`claim-${n}`],
    replacements: [`claim-${n}-next`],
    pods: { count: 2, names: ['shop/web-1', 'shop/web-2'] },
    pricePerHour: { before: 0.2, after: 0.1 },
    decision: `decision-${n}`,
  })
}

/** A directory in which a process has noted so many moves. */
async function aWrittenDirectory(t: TestContext, moves: number) {
  const directory = await aDirectory(t)
  const { journal, files, entries } = await aProcess(directory)
  for (let n = 0; n < moves; n++) move(journal, n)
  await files.close()
  return { directory, path: join(directory, 'journal-00000001.jsonl'), written: entries() }
}

describe('the files of the journal', () => {
  test('PGE-4 entries that memory no longer has are read from the files, each once and in order', async (t) => {
    const directory = await aDirectory(t)
    const own = { ...sizes, restoredBytes: 1 }
    for (const first of [0, 50]) {
      const { journal, files } = await aProcess(directory, own)
      for (let n = first; n < first + 50; n++) move(journal, n)
      await files.close()
    }
    const { journal, entries } = await aProcess(directory, own)
    assert.ok(entries().length < 100)
    move(journal, 100)
    const response = journalPage(
      { journal, clock: { now: () => Date.parse('2026-11-20T08:00:00Z') } },
      { path: '/debug/journal?stored=true&since=24h' },
    )
    const ids = new Set<string>()
    const moves: string[] = []
    for (const line of (await readText(response.body)).split('\n')) {
      if (line === '') continue
      const { id, nodes } = JSON.parse(line) as { id: string; nodes: readonly string[] }
      if (!ids.has(`${id} ${nodes[0] ?? ''}`)) moves.push(nodes[0] ?? '')
      ids.add(`${id} ${nodes[0] ?? ''}`)
    }
    assert.deepEqual(
      moves,
      Array.from({ length: 101 }, (_, n) => `node-${n}`),
    )
  })

  test('EXP-7 a node removed before a restart is found in the journal after it', async (t) => {
    const { directory, written } = await aWrittenDirectory(t, 3)
    const again = await aProcess(directory)
    assert.deepEqual(again.entries(), written)
    move(again.journal, 3)
    await again.files.close()
    const third = await aProcess(directory)
    assert.deepEqual(
      third.entries().map(({ nodes }) => nodes[0]),
      ['node-0', 'node-1', 'node-2', 'node-3'],
    )
    await third.files.close()
    assert.doesNotMatch(third.log(), /"warn"|"error"/i)
  })

  test('RPB-50 files of the journal can be read by their owner only', async (t) => {
    const { path } = await aWrittenDirectory(t, 1)
    assert.equal((await stat(path)).mode & 0o777, 0o600)
  })

  test('EXP-8 a line that a crash has cut off is left out, and what follows is whole', async (t) => {
    const { directory, path, written } = await aWrittenDirectory(t, 3)
    const { size } = await stat(path)
    for (let cut = 1; cut < size / 3; cut += 7) {
      await truncate(path, size - cut)
      const next = await aProcess(directory)
      assert.deepEqual(next.entries(), cut === 1 ? written : written.slice(0, 2), `cut by ${cut}`)
      move(next.journal, 9)
      await next.files.close()
      const after = await aProcess(directory)
      await after.files.close()
      assert.equal(after.entries().at(-1)?.nodes[0], 'node-9')
      if (cut > 1) assert.match(next.log(), /"firstLine":3,"problem":"it is cut off"/)
      // As it was before the crash.
      await rm(directory, { recursive: true })
      const fresh = await aProcess(directory)
      for (let n = 0; n < 3; n++) move(fresh.journal, n)
      await fresh.files.close()
    }
  })

  test('500 corruptions of a file: every entry that is read is as it was written, and the loss is told', async (t) => {
    const { directory, path, written } = await aWrittenDirectory(t, 40)
    const whole = await readFile(path)
    const known = new Map(written.map((entry) => [entry.id, entry]))
    const random = new SeededRandom('corruption')
    const below = (n: number) => random.uint32() % n
    for (let round = 0; round < 500; round++) {
      const bytes = Buffer.from(whole)
      const damaged = 1 + below(4)
      for (let i = 0; i < damaged; i++) bytes[below(bytes.length)] = below(256)
      const cut = round % 5 === 0 ? below(bytes.length) : bytes.length
      await writeFile(path, bytes.subarray(0, cut))
      const { entries, files, log } = await aProcess(directory)
      await files.close()
      const read = entries()
      for (const entry of read) assert.deepEqual(entry, known.get(entry.id), `round ${round}`)
      if (cut === bytes.length) assert.ok(read.length >= written.length - 2 * damaged, `round ${round}`)
      if (cut === bytes.length && read.length < written.length) assert.match(log(), /cannot be read/)
    }
  })

  test('other files, folders and lines of somebody else are left alone', async (t) => {
    const { directory, written } = await aWrittenDirectory(t, 2)
    await writeFile(join(directory, 'notes.txt'), 'mine')
    await writeFile(
      join(directory, 'journal-00000000.jsonl'),
      `{"kind":"Other"}\n\n\0\0\n${'x'.repeat(3 * mebibyte)}\n`,
    )
    await mkdir(join(directory, 'journal-00000007.jsonl'))
    const { entries, files, log, journal } = await aProcess(directory)
    assert.deepEqual(entries(), written)
    assert.match(log(), /"lines":4,"firstLine":1,"problem":"its checksum is missing or wrong"/)
    move(journal, 5)
    await files.close()
    assert.equal(await readFile(join(directory, 'notes.txt'), 'utf8'), 'mine')
  })

  test('files are rotated, and all of them together stay within their bound', async (t) => {
    const directory = await aDirectory(t)
    const { journal, files } = await aProcess(directory, sizes)
    for (let n = 0; n < 2000; n++) {
      move(journal, n)
      if (n % 20 === 0) await files.flush()
    }
    await files.close()
    const names = await readdir(directory)
    const all = await Promise.all(names.map(async (name) => (await stat(join(directory, name))).size))
    assert.ok(names.length > 2)
    assert.ok(all.every((bytes) => bytes <= sizes.fileBytes))
    assert.ok(all.reduce((sum, bytes) => sum + bytes, 0) <= sizes.allBytes)
    const next = await aProcess(directory, sizes)
    await next.files.close()
    assert.equal(next.entries().at(-1)?.nodes[0], 'node-1999')
  })

  test('a disk that takes nothing costs a line in the log, and no entry in memory', async (t) => {
    const directory = await aDirectory(t)
    const { journal, files, log, entries } = await aProcess(directory)
    await rm(directory, { recursive: true })
    for (let n = 0; n < 3; n++) {
      move(journal, n)
      await files.flush()
    }
    await files.close()
    assert.equal(entries().length, 3)
    assert.equal(log().match(/the journal cannot be written/g)?.length, 1)
  })
})
