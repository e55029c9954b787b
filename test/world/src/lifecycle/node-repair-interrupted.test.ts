/** Node repair that is interrupted, or meets something else on the same node (wanted.md 2). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type HttpRequest, rfc3339, type Transport } from '@tenon/runtime'
import { cpu, left, tainted } from '../disruption/disruption-stage.test-support.ts'
import { WrongViews } from '../simulation/faults/wrong-views.ts'
import { minutes, seconds } from '../testing/stage.test-support.ts'
import {
  annotatePool,
  deadlineOf,
  joinReplacement,
  nodeOf,
  openRepair,
  pressure,
  relief,
  silent,
  turn,
} from './repair-stage.test-support.ts'

const healthy = { type: 'Ready', status: 'True' } as const

/** A connection on which requests about NodeClaims can stay without an answer, as if the process had ended. */
function interruptible() {
  let isLost: (request: HttpRequest) => boolean = () => false
  const apiPath = (inner: Transport): Transport => ({
    send: async (request, signal) =>
      request.path.includes('/nodeclaims/') && isLost(request)
        ? await Promise.reject(new Error('connection lost'))
        : await inner.send(request, signal),
  })
  return {
    apiPath,
    lose(which: (request: HttpRequest) => boolean) {
      isLost = which
    },
  }
}

const isDeletion = ({ method }: HttpRequest) => method === 'DELETE'

test('WNT-13 a deletion that fails leaves no deadline on a node that is well again', async (t) => {
  const api = interruptible()
  const stage = await openRepair(t, { apiPath: api.apiPath })
  await nodeOf(stage, 'a')
  api.lose(isDeletion)
  turn(stage, 'node-a', silent)
  await stage.pass(10 * minutes + 5 * seconds)
  turn(stage, 'node-a', healthy)
  await stage.pass(5 * seconds)
  api.lose(() => false)
  await stage.restart()
  await stage.pass(10 * minutes)
  assert.deepEqual(left(stage), ['a'])
  assert.equal(deadlineOf(stage, 'a'), undefined)
})

test('WNT-13 a process that ends between the deletion and its deadline sets the deadline later', async (t) => {
  const api = interruptible()
  const stage = await openRepair(t, { apiPath: api.apiPath })
  await nodeOf(stage, 'a')
  stage.cloud.deletionMs = 10 * minutes
  api.lose(({ method }) => method === 'PATCH')
  turn(stage, 'node-a', silent)
  await stage.pass(10 * minutes + 5 * seconds)
  assert.deepEqual(left(stage), [])
  assert.equal(deadlineOf(stage, 'a'), undefined)
  api.lose(() => false)
  await stage.restart()
  await stage.pass(10 * seconds)
  assert.ok(Date.parse(deadlineOf(stage, 'a') ?? '') <= stage.now)
})

test('WNT-16 a node whose replacement is on its way is not rebooted', async (t) => {
  const stage = await openRepair(t, { idle: true })
  const rebooted: string[] = []
  stage.cloud.reboot = ({ metadata }) => {
    rebooted.push(metadata.name)
    return Promise.resolve()
  }
  await stage.start()
  await nodeOf(stage, 'a')
  await stage.pod('web', 'node-a', cpu('3'))
  turn(stage, 'node-a', pressure)
  await stage.pass(10 * minutes + 15 * seconds)
  assert.deepEqual(tainted(stage), ['a'])
  annotatePool(stage, { repair: 'reboot,replace' })
  await stage.pass(2 * minutes)
  assert.deepEqual([rebooted, tainted(stage)], [[], ['a']])
  await joinReplacement(stage, ['a'])
  await stage.pass(minutes)
  assert.ok(!left(stage).includes('a'))
})

test('WNT-15 a replacement that is ready does not take its node while a zone is down', async (t) => {
  const stage = await openRepair(t)
  const names = ['a', 'b', 'c', 'd', 'e', 'f']
  for (const name of names) await nodeOf(stage, name)
  await stage.pod('web', 'node-a', cpu('3'))
  for (const name of names.slice(1)) await stage.pod(`full-${name}`, `node-${name}`, cpu('3'))
  turn(stage, 'node-a', pressure)
  await stage.pass(10 * minutes + 15 * seconds)
  assert.deepEqual(tainted(stage), ['a'])
  for (const name of ['b', 'c', 'd', 'e']) turn(stage, `node-${name}`, pressure)
  await stage.pass(5 * seconds)
  await joinReplacement(stage, names)
  await stage.pass(2 * minutes)
  assert.ok(left(stage).includes('a'))
})

test('WNT-14 unhealthy time whose write fails is written later', async (t) => {
  const api = interruptible()
  const stage = await openRepair(t, { apiPath: api.apiPath })
  await nodeOf(stage, 'a')
  turn(stage, 'node-a', pressure)
  await stage.pass(9 * minutes)
  api.lose(({ method }) => method === 'PATCH')
  turn(stage, 'node-a', relief)
  await stage.pass(10 * seconds)
  api.lose(() => false)
  await stage.pass(2 * minutes)
  assert.match(
    stage.claimNow('a')?.metadata.annotations?.['tenon.sh/unhealthy-time'] ?? '',
    /^MemoryPressure=True \d+-\d+$/,
  )
})

test('WNT-11 the place of a repair that the caches do not show yet is not given away', async (t) => {
  const views = new WrongViews()
  const stage = await openRepair(t, { apiPath: views.path })
  for (const name of ['a', 'b', 'c']) await nodeOf(stage, name)
  stage.cloud.deletionMs = 5 * minutes
  turn(stage, 'node-a', silent)
  await stage.pass(seconds)
  turn(stage, 'node-b', silent)
  await stage.pass(9 * minutes + 58 * seconds)
  views.late('nodeclaims', 30 * seconds)
  await stage.pass(2 * seconds)
  for (let second = 0; second < 20; second++) {
    turn(stage, 'node-a', silent, { ...pressure, lastTransitionTime: rfc3339(stage.now) })
    await stage.pass(seconds)
    turn(stage, 'node-b', silent, { ...pressure, lastTransitionTime: rfc3339(stage.now) })
  }
  assert.equal(left(stage).length, 2)
})

test('WNT-14 nothing is written about nodes of a NodePool that is only observed', async (t) => {
  const stage = await openRepair(t)
  await nodeOf(stage, 'a')
  annotatePool(stage, { mode: 'observe' })
  assert.equal(stage.state('a', 'Initialized'), 'True/Initialized')
  turn(stage, 'node-a', pressure)
  await stage.pass(5 * minutes)
  turn(stage, 'node-a', relief)
  await stage.pass(minutes)
  assert.equal(stage.claimNow('a')?.metadata.annotations?.['tenon.sh/unhealthy-time'], undefined)
})
