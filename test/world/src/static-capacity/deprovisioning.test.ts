import assert from 'node:assert/strict'
import { test } from 'node:test'
import { annotations, karpenterKinds } from '@tenon/api'
import { type LogFields, type Logger, silentLogger } from '@tenon/runtime'
import { hours, minutes, intercepting, seconds, type Stage } from '../testing/stage.test-support.ts'
import { madeClaims } from '../testing/pools.test-support.ts'
import {
  joinAll,
  openStatic,
  reportReady,
  resize,
  staying,
  stayingNames,
} from './static-stage.test-support.ts'

const keep = { annotations: { [annotations.doNotDisrupt]: 'true' } }

async function daemonPod(stage: Stage, name: string, node: string, metadata = {}): Promise<void> {
  await stage.pod(name, `node-${node}`, {
    ownerReferences: [await stage.daemonSet(`set-${name}`)],
    ...metadata,
  })
}

test('STA-76 a pool of none has none and loses those it had', async (t) => {
  const stage = await openStatic(t, 0)
  assert.equal(madeClaims(stage).length, 0)
  await resize(stage, 2)
  await joinAll(stage)
  await resize(stage, 0)
  assert.equal(staying(stage).length, 0)
  await stage.pass(minutes)
  assert.deepEqual(stage.world.claims(), [])
  assert.deepEqual(stage.world.nodes(), [])
  assert.equal(stage.cloud.instances.length, 0)
})

test('OPS-99 a node less is a claim that has ended, not one that was disrupted', async (t) => {
  const stage = await openStatic(t, 2)
  await joinAll(stage)
  await resize(stage, 1)
  await stage.pass(30 * seconds)
  assert.equal(madeClaims(stage).length, 1)
  assert.equal(await stage.metric('nodeclaims_disrupted_total'), 0)
  assert.equal(await stage.metric('nodeclaims_terminated_total', { nodepool: 'default' }), 1)
})

test('STA-81 claims without an instance go first', async (t) => {
  const stage = await openStatic(t, 2, { idle: true })
  const launched = new Set<string>()
  stage.cloud.onCreate = ({ metadata }) => {
    if (launched.size === 2 && !launched.has(metadata.name)) throw new Error('try again')
    launched.add(metadata.name)
  }
  await stage.start()
  await joinAll(stage)
  await resize(stage, 4)
  assert.equal(staying(stage).length, 4)
  await resize(stage, 2)
  await stage.pass(minutes)
  assert.deepEqual(stayingNames(stage), [...launched].toSorted())
})

test('STA-82 nodes with daemons only go before those with one pod, with two, and with protected pods', async (t) => {
  const stage = await openStatic(t, 8)
  const names = await joinAll(stage)
  const groups = [names.slice(6), names.slice(4, 6), names.slice(2, 4), names.slice(0, 2)]
  const [daemonOnly = [], onePod = [], twoPods = [], guarded = []] = groups
  for (const name of names) await daemonPod(stage, `agent-${name}`, name)
  for (const name of [...onePod, ...twoPods]) await stage.pod(`first-${name}`, `node-${name}`)
  for (const name of twoPods) await stage.pod(`second-${name}`, `node-${name}`)
  for (const name of guarded) await stage.pod(`kept-${name}`, `node-${name}`, keep)
  await resize(stage, 6)
  assert.deepEqual(stayingNames(stage), [...guarded, ...twoPods, ...onePod].toSorted())
  await resize(stage, 4)
  assert.deepEqual(stayingNames(stage), [...guarded, ...twoPods].toSorted())
  await resize(stage, 2)
  assert.deepEqual(stayingNames(stage), [...guarded].toSorted())
  await resize(stage, 0)
  assert.deepEqual(stayingNames(stage), [])
  assert.equal(daemonOnly.length, 2)
})

test('STA-126 an ended pod keeps a node from counting as empty, a protected daemon pod too', async (t) => {
  const stage = await openStatic(t, 3)
  const [ended = '', guarded = '', empty = ''] = await joinAll(stage)
  await daemonPod(stage, 'one', ended)
  await stage.pod('job', `node-${ended}`, { status: { phase: 'Succeeded' } })
  await daemonPod(stage, 'kept', guarded, keep)
  for (const name of ['x', 'y', 'z']) await daemonPod(stage, name, empty)
  await resize(stage, 2)
  assert.deepEqual(stayingNames(stage), [ended, guarded].toSorted())
  await resize(stage, 1)
  assert.deepEqual(stayingNames(stage), [guarded])
})

test('pods weigh less on a node that expires soon', async (t) => {
  const stage = await openStatic(t, 1, { pool: { disruption: { budgets: [{ nodes: '0' }] } } })
  stage.patch(karpenterKinds.nodePool, 'default', {
    spec: { template: { spec: { expireAfter: '10h' } } },
  })
  await stage.pass(seconds)
  const [before = ''] = stayingNames(stage)
  await stage.deleteClaim(before)
  await stage.pass(minutes)
  const [old = ''] = await joinAll(stage)
  await stage.pass(8 * hours)
  await resize(stage, 2)
  const young = (await joinAll(stage)).find((name) => name !== old) ?? ''
  for (const pod of ['a', 'b']) await stage.pod(`${pod}-old`, `node-${old}`)
  await stage.pod('a-young', `node-${young}`)
  await resize(stage, 1)
  assert.deepEqual(stayingNames(stage), [young])
})

test('STA-83 a node that is going already counts as gone', async (t) => {
  const stage = await openStatic(t, 3)
  const [first = '', ...others] = await joinAll(stage)
  await stage.pod('slow', `node-${first}`, keep)
  await reportReady(stage, 'False')
  await stage.deleteClaim(first)
  await resize(stage, 2)
  await stage.pass(5 * minutes)
  assert.notEqual(stage.claimNow(first), undefined)
  assert.deepEqual(stayingNames(stage), [...others].toSorted())
})

test('STA-84 a deletion that the API refuses is an error, changes no count and is tried again', async (t) => {
  let isRejecting = true
  const isDeletion = (method: string, path: string) => method === 'DELETE' && path.includes('/nodeclaims/')
  const logger = new Errors()
  const stage = await openStatic(t, 2, {
    logger,
    apiPath: intercepting((method, path) => (isRejecting && isDeletion(method, path) ? 'error' : 'pass')),
  })
  await joinAll(stage)
  await resize(stage, 1)
  assert.ok(logger.controllers.has('static.deprovisioning'))
  const { active, deleting } = stage.operator.operator.state.poolClaims.of('default')
  assert.deepEqual([active.length, deleting.length], [2, 0])
  isRejecting = false
  await stage.pass(minutes)
  assert.equal(staying(stage).length, 1)
})

test('neither budgets nor disruption budgets of pods nor do-not-disrupt keep a surplus node', async (t) => {
  const stage = await openStatic(t, 1, { pool: { disruption: { budgets: [{ nodes: '0' }] } } })
  const [name = ''] = await joinAll(stage)
  stage.patch(karpenterKinds.nodeClaim, name, { metadata: keep })
  await stage.pod('kept', `node-${name}`, keep)
  await resize(stage, 0)
  assert.deepEqual(stayingNames(stage), [])
  await stage.pass(5 * minutes)
  assert.ok(!stage.isLeaving('kept'))
})

test('a claim that somebody adds to a full pool costs the pool one', async (t) => {
  const stage = await openStatic(t, 2)
  await joinAll(stage)
  await stage.claim('extra')
  await stage.pass(2 * seconds)
  assert.equal(
    stage.world.claims().filter(({ metadata }) => metadata.deletionTimestamp === undefined).length,
    2,
  )
})

/** Remembers which controllers failed. */
class Errors implements Logger {
  readonly controllers = new Set<unknown>()

  debug(): void {
    silentLogger.debug('')
  }
  info(): void {
    silentLogger.info('')
  }
  warn(): void {
    silentLogger.warn('')
  }
  error(_: string, fields: LogFields = {}): void {
    this.controllers.add(fields['controller'])
  }
  with(): Logger {
    return this
  }
}
