import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { writeSnapshot } from '@tenon/ask'
import type { Question } from '@tenon/console'
import { SystemClock } from '@tenon/runtime'
import { snapshot } from '../../testing/snapshot.test-support.ts'
import { ThreadedAnswers } from './threaded-answers.ts'

const get = (path: string, query = ''): Question => ({ method: 'GET', path, query, body: '' })
const never = new AbortController().signal

test('answers come from a thread: one after the other, with their status, also after one that nobody waits for', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'tenon-answers-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const file = join(folder, 'cluster.jsonl')
  await writeSnapshot(file, snapshot)
  const answers = new ThreadedAnswers({ cwd: folder, env: {}, source: { snapshot: file } }, new SystemClock())
  t.after(async () => {
    await answers.close()
  })
  const replay = await answers.answer(get('/api/replay'), never)
  assert.match(replay.text, /no recording was given/)
  const [cost, missing, wrong] = await Promise.all([
    answers.answer(get('/api/cost', 'by=nodepool'), never),
    answers.answer(get('/api/explain', 'kind=node&name=nobody'), never),
    answers.answer(get('/api/cost', 'by=moon'), never),
  ])
  assert.equal(cost.status, 200)
  assert.equal((JSON.parse(cost.text) as { total: { perHour: number } }).total.perHour, 0.05)
  assert.deepEqual(missing, { status: 200, text: '{"gone":"node nobody is not there"}' })
  assert.equal(wrong.status, 400)
  const gone = new AbortController()
  const unheard = answers.answer(get('/api/pools'), gone.signal)
  gone.abort(new Error('the page is closed'))
  await assert.rejects(unheard)
  const pools = await answers.answer(get('/api/pools'), never)
  assert.equal(pools.status, 200)
})

test('a source that cannot be read is said with each question, and is read once it can be', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'tenon-answers-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const file = join(folder, 'cluster.jsonl')
  const answers = new ThreadedAnswers({ cwd: folder, env: {}, source: { snapshot: file } }, new SystemClock())
  t.after(async () => {
    await answers.close()
  })
  const failed = await answers.answer(get('/api/pools'), never)
  assert.equal(failed.status, 502)
  assert.match(failed.text, /cluster\.jsonl/)
  await writeFile(file, 'no snapshot\n')
  assert.match((await answers.answer(get('/api/pools'), never)).text, /1: the line is not a JSON object/)
  await writeSnapshot(file, snapshot)
  assert.equal((await answers.answer(get('/api/pools'), never)).status, 200)
})
