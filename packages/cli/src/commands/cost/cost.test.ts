import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test, type TestContext } from 'node:test'
import { snapshotLines, writeSnapshot } from '@tenon/ask'
import { type JournalEntry, lineOf } from '@tenon/operator'
import { oneChunk, serveHttp } from '@tenon/runtime'
import { runCommand } from '../../testing/command.test-support.ts'
import { snapshot } from '../../testing/snapshot.test-support.ts'

let folder: string
let file: string

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tenon-cost-'))
  file = join(folder, 'snapshot.jsonl')
  await writeSnapshot(file, snapshot)
})

after(() => rm(folder, { recursive: true }))

const cost = (...args: readonly string[]) => runCommand(['cost', ...args, '-s', file])

test('EXP-27 cost by namespace tells what is asked for, what is idle, and what has no known price', async () => {
  const { code, out, err } = await cost('--by', 'namespace')
  assert.equal(code, 0)
  assert.deepEqual(out.split('\n'), [
    'NAMESPACE   PODS   REQUESTED   IDLE     EUR/HOUR   EUR/MONTH   UNPRICED',
    'shop        2      0.0250      0.0000   0.0250     18.25       0',
    'jobs        1      0.0125      0.0000   0.0125     9.13        0',
    '<idle>             0.0000      0.0125   0.0125     9.12        0',
    'TOTAL       3      0.0375      0.0125   0.0500     36.50       0',
    '',
  ])
  assert.equal(err, 'note: the price of 1 instance(s) is not known, and in no sum: strange (unknown type)\n')
})

test('the page about cost shows what it prints', async () => {
  const page = await readFile(join(import.meta.dirname, '../../../../../docs/ask/cost.md'), 'utf8')
  assert.ok(page.includes((await cost('--by', 'namespace')).out))
})

test('EXP-27 an instance without a known price stands in its group as unknown, never as 0', async () => {
  const { out } = await cost()
  assert.deepEqual(out.split('\n'), [
    'NODEPOOL   INSTANCES   REQUESTED   IDLE        EUR/HOUR    EUR/MONTH   UNPRICED',
    'web        1           0.0375      0.0125      0.0500      36.50       0',
    '<none>     1           <unknown>   <unknown>   <unknown>   <unknown>   1',
    'TOTAL      2           0.0375      0.0125      0.0500      36.50       1',
    '',
  ])
})

test('EXP-27 the form for programs names the currency, and its parts add up to its total', async () => {
  for (const by of ['nodepool', 'namespace', 'owner', 'type', 'zone']) {
    const report = JSON.parse((await cost('--by', by, '-o', 'json')).out) as {
      kind: string
      currency: string
      groups: { requestedPerMonth?: number; idlePerMonth?: number }[]
      idle: { perMonth: number }
      total: { perMonth: number }
    }
    assert.deepEqual([report.kind, report.currency], ['CostReport', 'EUR'])
    const parts = report.groups.map(
      ({ requestedPerMonth = 0, idlePerMonth = 0 }) => requestedPerMonth + idlePerMonth,
    )
    const total = parts.reduce((sum, part) => sum + part, report.idle.perMonth)
    assert.equal(Math.round(total * 100), Math.round(report.total.perMonth * 100), by)
  }
})

/** The pages of a controller that has the snapshot, and a journal. */
async function aController(t: TestContext, entries: readonly JournalEntry[]): Promise<string> {
  const pages = new Map([
    ['/debug/waiting', '{}'],
    ['/debug/snapshot', [...snapshotLines(snapshot)].join('\n')],
    ['/debug/journal', entries.map((entry) => lineOf(entry)).join('\n')],
  ])
  const server = await serveHttp(
    ({ path }) => {
      const page = pages.get(path.split('?')[0] ?? '')
      return Promise.resolve({
        status: page === undefined ? 404 : 200,
        headers: {},
        body: oneChunk(page ?? ''),
      })
    },
    { host: '127.0.0.1', port: 0 },
  )
  t.after(() => server.close())
  return server.url
}

test('EXP-27 cost --since adds up the journal, and says how far it reaches', async (t) => {
  const gone = {
    reason: 'R',
    message: 'm',
    nodePool: 'web',
    nodeClaims: ['old'],
    nodes: [],
    currency: 'EUR',
  }
  const url = await aController(t, [
    { ...gone, id: '1', kind: 'launched', at: '2026-11-26T02:00:00Z', pricePerHour: { after: 2 } },
    { ...gone, id: '2', kind: 'removed', at: '2026-11-26T04:00:00Z' },
  ])
  const { code, out, err } = await runCommand(['cost', '--since', '24h', '--controller', url])
  assert.deepEqual(out.split('\n'), [
    'NODEPOOL   INSTANCE-HOURS   EUR    UNPRICED',
    'web        3.0              4.05   0',
    'TOTAL      3.0              4.05   0',
    '',
  ])
  assert.match(err, /^note: the journal begins at 2026-11-26T02:00:00\.000Z;/)
  assert.equal(code, 0)
  assert.match(
    (await runCommand(['cost', '--controller', url])).out,
    /^web +1 +0\.0375 +0\.0125 +0\.0500 +36\.50/m,
  )
})

test('EXP-27 what cost cannot tell is refused with what can be done', async () => {
  assert.match((await cost('--since', '24h')).err, /a snapshot has no journal/)
  assert.match((await cost('--since', 'x')).err, /use a duration/)
  assert.match((await cost('--since', '24h', '--by', 'zone')).err, /knows NodePools and no zone/)
  assert.match((await cost('--by', 'color')).err, /Allowed choices are nodepool, namespace/)
  const none = await runCommand(['cost', '--controller', 'http://127.0.0.1:1'])
  assert.deepEqual([none.code, none.out], [1, ''])
  assert.match(none.err, /^error: the controller at http:\/\/127\.0\.0\.1:1: /)
})
