/** Limits of NodePools hold while the provisioner and the disruption loop decide side by side. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { schedule, type SchedulingInput } from '@tenon/engine'
import { InlineDecider, type SchedulingDecider } from '@tenon/operator'
import type { Clock, Transport } from '@tenon/runtime'
import {
  cpu,
  left,
  openDisruption,
  setBudget,
  setDrifted,
} from '../disruption/disruption-stage.test-support.ts'
import { seconds } from '../testing/stage.test-support.ts'
import { aType, madeClaims, waitingPod } from '../testing/pools.test-support.ts'

/** Has the first creation of a claim take its time, and fail if it is to. */
class SlowCreation {
  clock: Clock | undefined
  isUnderWay = false
  readonly #isRefused: boolean
  #isFirst = true

  constructor({ isRefused = false } = {}) {
    this.#isRefused = isRefused
  }

  readonly wrap = (inner: Transport): Transport => ({
    send: async (request, signal) => {
      if (this.#isFirst && request.method === 'POST' && request.path.endsWith('/nodeclaims')) {
        this.#isFirst = false
        this.isUnderWay = true
        await this.clock?.sleep(8 * seconds)
        if (this.#isRefused) return { status: 422, headers: {}, body: refusal() }
      }
      return await inner.send(request, signal)
    },
  })
}

async function* refusal(): AsyncGenerator<string> {
  yield JSON.stringify({
    kind: 'Status',
    status: 'Failure',
    code: 422,
    reason: 'Invalid',
    message: 'refused',
  })
}

/** Keeps what is decided about pods that wait, as it is decided. */
class RecordedDecisions {
  readonly inputs: SchedulingInput[] = []

  readonly decider = (clock: Clock): SchedulingDecider => {
    const inner = new InlineDecider(clock)
    return {
      decide: (input, options) => {
        this.inputs.push(input)
        return inner.decide(input, options)
      },
      examine: (input, question, options) => inner.examine(input, question, options),
      close: () => inner.close(),
    }
  }
}

/** A replacement of 8 CPU is being created below a limit of 14, of which 4 are in use, when more is asked for. */
async function whileReplaced(t: TestContext, path: SlowCreation, decisions?: RecordedDecisions) {
  const stage = await openDisruption(t, {
    disruption: { consolidateAfter: 'Never', budgets: [{ nodes: '0' }] },
    pool: { limits: { cpu: '14' } },
    types: [aType('big', 8)],
    apiPath: path.wrap,
    ...(decisions && { decider: decisions.decider }),
  })
  path.clock = stage.world.clock
  setDrifted(stage, 'old')
  await stage.ready('old')
  const amounts = { cpu: '8', memory: '32Gi', pods: '110' }
  stage.cloud.extras = { capacity: amounts, allocatable: amounts }
  await stage.pod('on-old', 'node-old', cpu('3'))
  setBudget(stage, '1')
  await stage.world.clock.advanceUntil(() => path.isUnderWay, 30 * seconds)
  assert.ok(path.isUnderWay)
  waitingPod(stage, 'more', { cpu: '7' })
  return { stage, amounts }
}

test('the room that a replacement is to have is not given to other pods meanwhile', async (t) => {
  const { stage, amounts } = await whileReplaced(t, new SlowCreation())
  await stage.pass(30 * seconds)
  assert.equal(madeClaims(stage).length, 1)
  assert.ok(left(stage).includes('old'))
  for (const { metadata } of madeClaims(stage)) {
    await stage.join(metadata.name)
    await stage.report(`node-${metadata.name}`, 'True', amounts)
  }
  await stage.pass(30 * seconds)
  assert.ok(!left(stage).includes('old'))
  assert.equal(madeClaims(stage).length, 1, '8 of the 14 are in use')
  const errors = await stage.operator.operator.metrics.registry
    .getSingleMetric('controller_runtime_reconcile_errors_total')
    ?.get()
  const ofProvisioner = errors?.values.filter(({ labels }) => labels['controller'] === 'provisioner')
  assert.deepEqual(
    ofProvisioner?.map(({ value }) => value),
    [0],
    'that pods wait for room is no error',
  )
})

test('pods that wait for room get it as soon as the replacement is known not to come', async (t) => {
  const { stage } = await whileReplaced(t, new SlowCreation({ isRefused: true }))
  setBudget(stage, '0')
  await stage.pass(7 * seconds)
  assert.deepEqual(madeClaims(stage), [])
  await stage.pass(3 * seconds)
  assert.equal(madeClaims(stage).length, 1)
})

test('what a decision is made of tells exactly the claims that are created', async (t) => {
  const decisions = new RecordedDecisions()
  const { stage } = await whileReplaced(t, new SlowCreation({ isRefused: true }), decisions)
  setBudget(stage, '0')
  await stage.pass(10 * seconds)
  const decided = decisions.inputs.map((input) => schedule(input))
  assert.deepEqual(
    decided.flatMap(({ deferred }) => deferred.map(({ because }) => because))[0],
    { kind: 'limitReserved', limit: 'cpu' },
    'while the replacement is under way',
  )
  const claims = decided.flatMap((each) => each.claims)
  assert.equal(claims.length, 1, 'once it has come to nothing')
  assert.deepEqual(
    madeClaims(stage).map(({ spec }) => spec.requirements),
    claims.map(({ requirements }) => requirements),
  )
})
