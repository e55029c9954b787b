/** Processes that are killed while they write: what they leave is read up to its end, or refused with the reason. */
import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { readTraceFile, TraceFile, type TraceRecord, writeSnapshot } from '@tenon/ask'
import { aNode, aPending, aPool, aSnapshot, aType } from '@tenon/ask/test-clusters'
import { Journal } from '@tenon/operator'
import { integerBetween, JsonLogger, SeededRandom, SystemClock } from '@tenon/runtime'
import { runCommand } from './testing/command.test-support.ts'
import { JournalFiles } from './commands/controller/journal-files.ts'
import { eventually, startTenon, temporaryDirectory } from './testing/tenon-process.test-support.ts'

const tries = 3
/** The kill comes so long after the first byte, at most. */
const mostMs = 40
const random = new SeededRandom(8)
const writer = new URL('./testing/endless-writer.test-support.ts', import.meta.url)

const clock = new SystemClock()

/** Kills a process at some moment after `isWriting` first holds. */
async function killed(child: ChildProcess, isWriting: () => Promise<boolean>): Promise<void> {
  const ended = once(child, 'exit')
  await eventually(
    async () => (child.exitCode === null && !(await isWriting()) ? undefined : true),
    () => 'nothing is written',
  )
  await pause(integerBetween(random, 0, mostMs))
  child.kill('SIGKILL')
  await ended
}

/** A process that writes until it is killed, once it has written more than there was. */
async function killedWriter(
  t: TestContext,
  args: readonly string[],
  bytes: () => Promise<number>,
): Promise<void> {
  const before = await bytes()
  // Not with the options of the test runner: a second reporter would write over the file of the first.
  const child = fork(writer, args, { execArgv: [], stdio: ['ignore', 'ignore', 'pipe', 'ipc'] })
  t.after(() => child.kill('SIGKILL'))
  let err = ''
  child.stderr?.on('data', (part: Buffer) => (err += part.toString()))
  await killed(child, async () => (await bytes()) > before)
  assert.equal(child.signalCode, 'SIGKILL', err)
}

const sizeOf = async (path: string): Promise<number> =>
  await stat(path).then(
    ({ size }) => size,
    () => 0,
  )

test('EXP-8 a journal of processes that were killed while they wrote is read, but for the line in progress', async (t) => {
  const directory = await temporaryDirectory(t)
  const bytes = async () => {
    const sizes = (await readdir(directory)).map((name) => sizeOf(join(directory, name)))
    return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0)
  }
  for (let at = 0; at < tries; at++) await killedWriter(t, ['journal', directory, `writer-${at}`], bytes)

  const journal = new Journal(clock, () => undefined)
  let log = ''
  const logger = new JsonLogger(clock, (text) => (log += text), { value: 'info' })
  const files = await JournalFiles.attach(directory, journal, logger)
  await files.close()
  const texts = await Promise.all(
    (await readdir(directory)).map((name) => readFile(join(directory, name), 'utf8')),
  )
  const lines = texts.flatMap((text) => text.split('\n')).filter((line) => line !== '').length
  const entries = [...journal.entries()]
  assert.equal(lines - entries.length <= tries, true, `${lines} lines, ${entries.length} entries: ${log}`)
  const byWriter = Map.groupBy(entries, ({ message }) => message.split(' ')[0])
  assert.equal(byWriter.size, tries)
  // All that a process wrote before it was killed, in order, without a gap.
  for (const [name, own] of byWriter)
    assert.deepEqual(
      own.map(({ message }) => message),
      own.map((_, n) => `${name} ${n}`),
    )
})

test('EXP-16 a recording goes on behind what processes that were killed while they wrote had written whole', async (t) => {
  const path = join(await temporaryDirectory(t), 'week.tnr')
  let before: readonly TraceRecord[] = []
  for (let at = 0; at < tries; at++) {
    await killedWriter(t, ['record', path, `writer-${at}`], () => sizeOf(path))
    const read = await readTraceFile(path)
    assert.ok('records' in read)
    assert.deepEqual(read.records.slice(0, before.length), before)
    const own = read.records.slice(before.length)
    assert.deepEqual(
      own.map((record) => (record.kind === 'alive' ? record.atMs : 0)),
      own.map((_, n) => n),
    )
    before = read.records
  }
  assert.equal(before.filter(({ kind }) => kind === 'session').length >= 1, true)
  const replayed = await runCommand(['replay', path])
  assert.equal(replayed.code, 0, replayed.err)
  assert.match(replayed.err, /^$|week\.tnr: .* what was written before is used\n$/)
})

test('EXP-16 a recording of which a crash left a part of the first line is begun anew', async (t) => {
  const path = join(await temporaryDirectory(t), 'week.tnr')
  for (const part of ['', 'tenon-rec']) {
    await writeFile(path, part)
    const read = await readTraceFile(path)
    assert.ok('records' in read)
    assert.deepEqual(read.end, { kind: 'cut', atByte: 0, because: 'it ends within its first line' })
    const { err } = await runCommand(['replay', path])
    assert.match(err, /week\.tnr: the recording has no session/)
    const file = await TraceFile.append(path, read.wholeBytes)
    file.write({ kind: 'alive', atMs: 1 })
    await file.close()
    const whole = await readTraceFile(path)
    assert.deepEqual('records' in whole && [whole.records, whole.end], [
      [{ kind: 'alive', atMs: 1 }],
      { kind: 'whole' },
    ])
  }
})

test('EXP-30 a snapshot is whole or not there when tenon is killed while it writes one', async (t) => {
  const cwd = await temporaryDirectory(t)
  const pods = Array.from({ length: 8000 }, (_, n) => aPending(`pod-${n}`, { cpu: '9' }, {}, 'web'))
  const snapshot = aSnapshot([aPool('blue'), aNode('alone', '1'), ...pods], [aType('small', 1)])
  await writeSnapshot(join(cwd, 'cluster.jsonl'), snapshot)
  for (const name of ['copy.jsonl', 'copy.jsonl.gz']) {
    const path = join(cwd, name)
    for (let at = 0; at < 2; at++) {
      const { child } = startTenon(t, cwd, ['snapshot', 'redact', 'cluster.jsonl', name])
      await killed(child, async () => (await sizeOf(`${path}.part`)) > 0)
      const isThere = (await sizeOf(path)) > 0
      const shown = await runCommand(['snapshot', 'show', path])
      assert.deepEqual([shown.code, shown.err === ''], isThere ? [0, true] : [1, false], shown.err)
      if (!isThere) assert.match(shown.err, /copy\.jsonl(\.gz)?: ENOENT/)
      if ((await sizeOf(`${path}.part`)) > 0 && name.endsWith('l')) {
        // What is left of it says where it ends, unless only its new name is missing.
        const part = await runCommand(['snapshot', 'show', `${path}.part`])
        if (part.code !== 0)
          assert.match(
            part.err,
            /part:\d+: (the file ends after line \d+; the rest is missing|the line is not a JSON object|the file is empty)/,
          )
      }
    }
    const whole = await runCommand(['snapshot', 'redact', join(cwd, 'cluster.jsonl'), path])
    assert.equal(whole.code, 0, whole.err)
    assert.equal((await runCommand(['explain', 'nodepool/blue', '-s', join(cwd, 'cluster.jsonl')])).code, 0)
    assert.match((await runCommand(['snapshot', 'show', path])).out, /Pod +8000/)
  }
})
