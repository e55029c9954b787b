/** Writes a journal or a recording, as the controller and `tenon record` do, until it is killed. */
import { TraceFile, readTraceFile } from '@tenon/ask'
import { Journal } from '@tenon/operator'
import { silentLogger, SystemClock } from '@tenon/runtime'
import { JournalFiles } from '../commands/controller/journal-files.ts'

const [what, path = '', writer = ''] = process.argv.slice(2)
/** Small ones are rotated while the process lives. */
const sizes = { fileBytes: 200_000, allBytes: 50_000_000, restoredBytes: 50_000_000, waitingBytes: 1_000_000 }
const perTurn = 20
const clock = new SystemClock()

if (what === 'journal') await writeJournal()
else await writeRecording()

async function writeJournal(): Promise<never> {
  const journal = new Journal(clock, () => undefined)
  const files = await JournalFiles.attach(path, journal, silentLogger, sizes)
  for (let n = 0; ; n++) {
    journal.note({
      kind: 'move',
      reason: 'Underutilized',
      message: `${writer} ${n}`,
      nodes: [`node-${n}-${'é'.repeat(n % 50)}`],
      decision: `decision-${n}`,
    })
    if (n % perTurn === 0) await files.flush()
  }
}

async function writeRecording(): Promise<never> {
  const read = await readTraceFile(path).catch(() => undefined)
  if (read !== undefined && 'message' in read) throw new Error(read.message)
  const file =
    read === undefined ? await TraceFile.create(path) : await TraceFile.append(path, read.wholeBytes)
  for (let n = 0; ; n++) {
    if (n === 0)
      file.write({ kind: 'session', atMs: clock.now(), program: writer, source: 'https://example.com' })
    else file.write({ kind: 'alive', atMs: n })
    if (n % perTurn === 0) await file.flush()
  }
}
