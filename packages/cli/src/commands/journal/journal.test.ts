import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { Journal, journalPage } from '@tenon/operator'
import { oneChunk, serveHttp, SystemClock } from '@tenon/runtime'
import { runCommand } from '../../testing/command.test-support.ts'

const hourMs = 3_600_000

const aMove: Parameters<Journal['note']>[0] = {
  kind: 'move',
  reason: 'Underutilized',
  message: 'replace: [node-a] -> [1 replacement]',
  nodePool: 'general',
  nodes: ['node-a'],
  nodeClaims: ['claim-a'],
  replacements: ['claim-b'],
  pricePerHour: { before: 4, after: 1 },
  decision: 'd-1',
}

/** A journal whose clock is three hours late until `arrive` is called. */
function aJournal() {
  const clock = new SystemClock()
  let shiftMs = 3 * hourMs
  const shifted = { now: () => clock.now() - shiftMs }
  const arrive = () => (shiftMs = 0)
  return { journal: new Journal(shifted, () => 'EUR'), shifted, arrive }
}

/** A controller that answers with its journal; it noted one move three hours ago, and a launch just now. */
async function aController(t: TestContext) {
  const { journal, shifted, arrive } = aJournal()
  journal.note(aMove)
  journal.note({ kind: 'launched', reason: 'Launched', message: 'm', nodeClaims: ['claim-b'] })
  journal.note({
    kind: 'removed',
    reason: 'Terminated',
    message: 'gone',
    nodes: ['node-a'],
    nodeClaims: ['claim-a'],
  })
  arrive()
  journal.note({
    kind: 'launch',
    reason: 'Provisioned',
    message: 'NodeClaim claim-c was created for 3 pods',
    nodePool: 'other',
    nodeClaims: ['claim-c'],
    pricePerHour: { before: 0 },
  })
  return await served(t, { journal, clock: shifted })
}

/** `tenon journal` for a controller with this journal. */
async function served(t: TestContext, answers: Parameters<typeof journalPage>[0]) {
  const server = await serveHttp(
    (request, signal) =>
      Promise.resolve(
        request.path.startsWith('/debug/journal')
          ? journalPage(answers, request, signal)
          : { status: 200, headers: {}, body: oneChunk('{}') },
      ),
    { host: '127.0.0.1', port: 0 },
  )
  t.after(() => server.close())
  return (...args: readonly string[]) => runCommand(['journal', '--controller', server.url, ...args])
}

test('docs/ask/journal.md shows what a move prints, and its savings', async (t) => {
  const { journal: notes, shifted, arrive } = aJournal()
  notes.note(aMove)
  const next = { nodes: ['node-b'], nodeClaims: ['claim-b'] }
  notes.note({ kind: 'launched', reason: 'Launched', message: 'm', ...next, pricePerHour: { after: 1 } })
  const gone = { nodes: ['node-a'], nodeClaims: ['claim-a'] }
  const price = { pricePerHour: { before: 4, after: 0 } }
  notes.note({
    kind: 'removal',
    reason: 'Underutilized',
    message: 'NodeClaim claim-a was deleted',
    ...gone,
    ...price,
  })
  notes.note({
    kind: 'removed',
    reason: 'Terminated',
    message: 'NodeClaim claim-a and its instance are gone',
    ...gone,
  })
  arrive()
  const journal = await served(t, { journal: notes, clock: shifted })
  const page = await readFile(join(import.meta.dirname, '../../../../../docs/ask/journal.md'), 'utf8')
  const shown = Array.from(page.matchAll(/^```text\n([^]*?)^```$/gm), ([, text]) => text)
  const { out: savings } = await journal('--savings')
  assert.deepEqual(shown, [
    (await journal('--node', 'node-a')).out,
    savings.replace(/\d{4}-\d\d-\d\d/, '2026-11-26'),
  ])
})

test('EXP-7 a node that is gone is explained from the journal', async (t) => {
  const journal = await aController(t)
  const { code, out, err } = await journal('--node', 'node-a')
  assert.deepEqual([code, err], [0, ''])
  assert.deepEqual(
    out.split('\n').map((line) => line.replaceAll(/ {2,}/g, ' | ')),
    [
      'TYPE | REASON | OBJECT | PRICE/H | AGE | MESSAGE',
      'move | Underutilized | node/node-a | 4.000 -> 1.000 EUR | 3h | replace: [node-a] -> [1 replacement]',
      'removed | Terminated | node/node-a | <none> | 3h | gone',
      '',
    ],
  )
})

test('entries are chosen by age and NodePool, and an unknown price is called unknown', async (t) => {
  const journal = await aController(t)
  const { out } = await journal('--since', '1h', '--nodepool', 'other', '--no-headers')
  assert.match(
    out,
    /^launch +Provisioned +nodeclaim\/claim-c +0\.000 -> <unknown> EUR +\d+s +NodeClaim claim-c was/,
  )
  const none = await journal('--nodepool', 'none')
  assert.deepEqual(none, { code: 0, out: '', err: 'No resources found\n' })
})

test('programs get a List of JournalEntry', async (t) => {
  const journal = await aController(t)
  const { out } = await journal('-o', 'json')
  const { kind, items } = JSON.parse(out) as { kind: string; items: readonly Record<string, unknown>[] }
  assert.equal(kind, 'List')
  assert.deepEqual(
    items.map(({ apiVersion, kind: each, type }) => [apiVersion, each, type]),
    ['move', 'launched', 'removed', 'launch'].map((type) => ['tenon.sh/v1alpha1', 'JournalEntry', type]),
  )
  const names = await journal('-o', 'jsonpath={.items[*].reason}')
  assert.equal(names.out, 'Underutilized Launched Terminated Provisioned')
})

test('savings are told apart from what was expected', async (t) => {
  const journal = await aController(t)
  const { out } = await journal('--savings')
  const [titles = '', day = ''] = out.split('\n')
  assert.deepEqual(titles.split(/ +/), [
    'DAY',
    'MOVES',
    'UNPRICED',
    'EXPECTED/H',
    'EXPECTED',
    'SAVED',
    'CURRENCY',
  ])
  assert.deepEqual(day.split(/ +/).slice(1), ['1', '0', '3.000', '9.00', '9.00', 'EUR'])
  assert.deepEqual(await journal('--savings', '--observed'), { code: 0, out: '', err: 'No moves found\n' })
})

test('EXP-29 what cannot be answered is told with what to do', async (t) => {
  const journal = await aController(t)
  assert.equal(
    (await journal('-s', 'a.snapshot')).err,
    'error: a snapshot has no journal: ask the cluster, without --snapshot\n',
  )
  assert.equal((await journal('--savings', '-w')).code, 1)
  const nowhere = await runCommand(['journal', '--controller', 'http://127.0.0.1:9'])
  assert.equal(nowhere.code, 1)
  assert.match(nowhere.err, /^error: the controller at http:\/\/127\.0\.0\.1:9: /)
})
