/** What counts or logs a transition does so once for each that is stored (operations.md 9.1). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kinds } from '@tenon/api'
import { type Logger, silentLogger } from '@tenon/runtime'
import { type Interception, minutes, intercepting, seconds, Stage } from '../testing/stage.test-support.ts'

/** Counts lines by their message. */
function counted(): { readonly logger: Logger; readonly count: (message: string) => number } {
  const messages: string[] = []
  const logger: Logger = {
    ...silentLogger,
    info: (message) => messages.push(message),
    with: () => logger,
  }
  return { logger, count: (wanted) => messages.filter((message) => message === wanted).length }
}

const isStatusOf = (claim: string, method: string, path: string) =>
  method === 'PATCH' && path.includes(`/nodeclaims/${claim}/status`)

test('a launch is told once it is stored, also when another process has to store it', async (t) => {
  const { logger, count } = counted()
  let verdict: ReturnType<Interception> = 'error'
  const apiPath = intercepting((method, path) => (isStatusOf('a', method, path) ? verdict : 'pass'))
  const stage = await Stage.open(t, { logger, apiPath })
  await stage.claim('a')
  await stage.pass(10 * seconds)
  assert.equal(count('launched nodeclaim'), 0)
  await stage.restart()
  verdict = 'pass'
  await stage.pass(2 * minutes)
  assert.equal(stage.condition('a', 'Launched')?.status, 'True')
  assert.equal(count('launched nodeclaim'), 1)
})

test('nothing is told of a claim that was gone when its transition was to be stored', async (t) => {
  const { logger, count } = counted()
  const apiPath = intercepting((method, path) => (isStatusOf('a', method, path) ? 'notFound' : 'pass'))
  const stage = await Stage.open(t, { logger, apiPath })
  await stage.claim('a')
  await stage.pass(5 * seconds)
  assert.equal(count('launched nodeclaim'), 0)
})

test('a pod that was evicted and is ended by the deadline counts once', async (t) => {
  const stage = await Stage.open(t)
  await stage.ready('a', { terminationGracePeriod: '1m' })
  await stage.pod('slow', 'node-a', { spec: { terminationGracePeriodSeconds: 600 } })
  stage.delete(kinds.node, 'node-a')
  await stage.pass(2 * minutes)
  assert.ok(stage.isLeaving('slow'))
  assert.equal(await stage.metric('pods_drained_total'), 1)
})
