import assert from 'node:assert/strict'
import { appendFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, type TestContext, test } from 'node:test'
import { Journal, journalPage, type JournalNote } from '@tenon/operator'
import { oneChunk, serveHttp, SystemClock } from '@tenon/runtime'
import { sealed } from '../../source/journal-lines.ts'
import { runCommand } from '../../testing/command.test-support.ts'
import { assertPrinted } from '../../testing/printed.test-support.ts'
import { hostile } from './report.test-support.ts'
import type { PrintedShadow } from './shadow.ts'

const minuteMs = 60_000
let folder: string

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tenon-shadow-'))
})

after(() => rm(folder, { recursive: true }))

/** A journal of the last two hours, in which `tell` notes what happened at a minute. */
function aJournal(tell: (note: (note: JournalNote) => string, minute: number) => void): Journal {
  const nowMs = new SystemClock().now()
  let minute = 0
  const journal = new Journal({ now: () => nowMs - (120 - minute) * minuteMs }, () => 'EUR')
  const note = (each: JournalNote) => journal.note(each)
  for (; minute < 120; minute++) {
    if (minute === 0) note(seen('ObservingBegan'))
    if (minute === 0) note(seen('NodesPresent', { nodeClaims: ['old'], instances: [large] }))
    tell(note, minute)
    if (minute % 5 === 0) note(seen('Observing'))
  }
  return journal
}

const large = { instanceType: 'large', pricePerHour: 4 }

function seen(reason: string, more: Partial<JournalNote> = {}): JournalNote {
  return { kind: 'seen', reason, message: reason, ...more }
}

/** A node that Tenon would have launched smaller, and a pod that it would have left without one. */
function aDay(name = 'web'): Journal {
  let launch = ''
  return aJournal((note, minute) => {
    const on = { nodeClaims: [`${name}-1`], nodes: [`node-${name}-1`], nodePool: name }
    if (minute === 60) {
      launch = note({
        kind: 'launch',
        reason: 'Provisioned',
        message: 'm',
        nodePool: name,
        pods: { count: 1, names: [`shop/${name}`] },
        instances: [{ instanceType: 'small', pricePerHour: 1 }],
        observed: true,
      })
      note(seen('NodeJoined', { ...on, instances: [large] }))
    }
    if (minute === 61)
      note(
        seen('PodsBound', {
          ...on,
          pods: { count: 1, names: [`shop/${name}`] },
          waiting: { seconds: 60, plannedSeconds: 40 },
          decision: launch,
        }),
      )
    if (minute === 70)
      note(
        seen('PodsRefused', {
          ...on,
          message: `1 pod got Node node-${name}-1: no node would have been launched: no type has 32 cores`,
          pods: { count: 1, names: [`shop/${name}-huge`] },
        }),
      )
  })
}

async function served(t: TestContext, journal: Journal) {
  const server = await serveHttp(
    (request, signal) =>
      Promise.resolve(
        request.path.startsWith('/debug/journal')
          ? journalPage({ journal, clock: new SystemClock() }, request, signal)
          : { status: 200, headers: {}, body: oneChunk('{}') },
      ),
    { host: '127.0.0.1', port: 0 },
  )
  t.after(() => server.close())
  return (...args: readonly string[]) =>
    runCommand(['report', '--shadow', '--controller', server.url, ...args], { cwd: folder })
}

const parsed = (out: string): PrintedShadow => JSON.parse(out) as PrintedShadow
const near = (actual: number | undefined, expected: number) => {
  assert.ok(Math.abs((actual ?? Number.NaN) - expected) < 0.01, `${actual} is not ${expected}`)
}

test('ADO-7 report --shadow has both prices, as JSON, Markdown and HTML', async (t) => {
  const shadow = await served(t, aDay())
  const { code, err, out } = await shadow('-o', 'json')
  assert.deepEqual([code, err], [0, ''])
  assert.deepEqual(assertPrinted(out), ['ShadowReport'])
  const report = parsed(out)
  near(report.covered?.hours, 2)
  // Until the pod that Tenon would have left; from then on the node counts for both.
  near(report.cost?.other, 8 + 4)
  near(report.cost?.tenon, 8 + 10 / 60 + 4 * (50 / 60))
  const differences = report.cases.reduce(
    (sum, { difference }) => sum + difference,
    report.otherCases.difference,
  )
  assert.ok(Math.abs(differences - ((report.cost?.tenon ?? 0) - (report.cost?.other ?? 0))) < 1e-6)
  const { out: text } = await shadow()
  assert.match(text, /\*\*Cost, as it was and with Tenon: 12\.0\d EUR → 11\.5\d EUR\.\*\* -0\.50 \(-4\.2 %\)/)
  assert.match(text, /\*\*Pods waited for a node on average: 60 s → 40 s\.\*\* 1 pod can be compared/)
  assert.match(text, /\| shop\/web-huge \| node-web-1 \| \S+ \| no type has 32 cores \|/)
  assert.match(text, /\| web-1 \| web \| large \| small \| 4\.0\d \| 3\.5\d \| -0\.50 \|/)
  assert.match(text, /what removals and replacements save is an upper bound/)
  await shadow('--file', 'shadow.html')
  const page = await readFile(join(folder, 'shadow.html'), 'utf8')
  assert.match(page, /^<!doctype html>[^]*12\.0\d EUR → 11\.5\d EUR[^]*<\/html>\n$/)
})

test('--since leaves out what is older, and a node is known from before', async (t) => {
  const shadow = await served(t, aDay())
  const { cost, covered, since } = parsed((await shadow('--since', '30m', '-o', 'json')).out)
  near(cost?.other, 4)
  near(cost?.difference, 0)
  near(covered?.hours, 0.5)
  assert.ok(since !== undefined)
})

test('a controller that has not observed only says how to begin', async (t) => {
  const journal = new Journal(new SystemClock(), () => 'EUR')
  journal.note({ kind: 'launch', reason: 'Provisioned', message: 'm', nodeClaims: ['own'] })
  const shadow = await served(t, journal)
  const { code, out } = await shadow()
  assert.equal(code, 0)
  assert.match(out, /nothing was observed\. Start a controller with --observe-only/)
  assert.doesNotMatch(out, /Cost|\| /)
  const { out: json } = await shadow('-o', 'json')
  assert.deepEqual(assertPrinted(json), ['ShadowReport'])
  assert.equal(parsed(json).covered, undefined)
  assert.match((await shadow('-o', 'html')).out, /nothing was observed/)
})

test('files of --journal-path are read, and lines that cannot be read are said', async () => {
  const lines = [...aDay().lines()].map((line) => `${sealed(line)}\n`)
  const half = Math.floor(lines.length / 2)
  await writeFile(join(folder, 'journal-00000001.jsonl'), lines.slice(0, half).join(''))
  await writeFile(join(folder, 'journal-00000002.jsonl'), lines.slice(half).join(''))
  await writeFile(join(folder, 'other.jsonl'), 'x')
  const shadow = (...args: readonly string[]) => runCommand(['report', '--shadow', ...args], { cwd: folder })
  const whole = parsed((await shadow('--journal', '.', '-o', 'json')).out)
  near(whole.cost?.other, 12)
  assert.equal(whole.unreadableLines, 0)
  await appendFile(join(folder, 'journal-00000002.jsonl'), `${lines[0]?.replace('seen', 'sEEn')}{"cut`)
  const { out } = await shadow('--journal', '.')
  assert.match(out, /2 lines of the journal cannot be read: what they said is unknown/)
  const one = parsed((await shadow('--journal', 'journal-00000001.jsonl', '-o', 'json')).out)
  assert.ok((one.cost?.other ?? 0) < 12)
  const { err } = await shadow('--journal', 'nowhere')
  assert.match(err, /^error: --journal: ENOENT/)
  const empty = await mkdtemp(join(folder, 'empty-'))
  assert.match(
    (await shadow('--journal', empty)).err,
    /^error: --journal \S+: no file journal-NNNNNNNN\.jsonl, as --journal-path writes them/,
  )
})

test('names cannot begin a line, a tag or an image, and --redact leaves none', async (t) => {
  const shadow = await served(t, aDay(hostile))
  const { out: page } = await shadow('-o', 'html')
  assert.match(page, /&lt;script&gt;/)
  assert.doesNotMatch(page, /<script|<img/)
  assert.doesNotMatch((await shadow()).out, /<script|!\[/)
  const plain = await served(t, aDay('checkout'))
  for (const format of ['json', 'markdown', 'html']) {
    const { out } = await plain('-o', format, '--redact')
    assert.match(out, /small|large/)
    assert.doesNotMatch(out, /checkout|shop|127\.0\.0\.1|32 cores/)
  }
})

test('flags that contradict each other are refused with what to do', async (t) => {
  const shadow = await served(t, aDay())
  assert.match(
    (await shadow('--prices', 'p.json')).err,
    /^error: --shadow compares the prices of its journal/,
  )
  assert.match(
    (await shadow('-s', 'a.jsonl')).err,
    /^error: --shadow reads the journal of a controller: leave -s out/,
  )
  const plain = await runCommand(['report', '--since', '1h'], { cwd: folder })
  assert.match(plain.err, /^error: --since and --journal belong to --shadow/)
  const nowhere = await runCommand(['report', '--shadow', '--controller', 'http://127.0.0.1:9'])
  assert.match(nowhere.err, /^error: --shadow reads the journal of a controller with --observe-only: /)
})
