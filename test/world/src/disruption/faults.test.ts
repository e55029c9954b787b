import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { annotations, karpenterKinds } from '@tenon/api'
import { ProviderError } from '@tenon/provider'
import { type Logger, silentLogger, type Transport } from '@tenon/runtime'
import { hours, minutes, intercepting, seconds, type Stage } from '../testing/stage.test-support.ts'
import { madeClaims } from '../testing/pools.test-support.ts'
import { left, setDisruption, setDrifted, tainted, eventMessages } from './disruption-stage.test-support.ts'
import { priced, soldOut } from './fleet-stage.test-support.ts'
import {
  aNodeOf,
  anOversizedNode,
  consolidate,
  isMarked,
  joinReplacements,
  large,
  openReplacing,
  running,
  small,
  untilBegun,
} from './replacing-stage.test-support.ts'

/** Enough for a search, and not for its validation. */
const midValidation = 14 * seconds

/** Nothing is left of a command that was not carried out. */
function assertUntouched(stage: Stage): void {
  assert.deepEqual([left(stage), tainted(stage), madeClaims(stage).length], [['a'], [], 0])
  assert.equal(isMarked(stage, 'a'), false)
  assert.equal(stage.state('a', 'DisruptionReason'), 'absent')
}

/** Until a command is being validated. */
async function untilDecided(stage: Stage): Promise<void> {
  consolidate(stage)
  await stage.world.clock.advanceUntil(() => stage.events('ConsolidationCandidate').length > 0, minutes)
}

describe('between the decision and its execution', () => {
  test('the cheaper type is gone: nothing is launched, nothing is touched', async (t) => {
    const stage = await anOversizedNode(t)
    await untilDecided(stage)
    stage.cloud.instanceTypes = [soldOut(small), large]
    await stage.pass(2 * minutes)
    assertUntouched(stage)
  })

  test('a pod that comes to the node makes the replacement too small: the node stays', async (t) => {
    const stage = await anOversizedNode(t)
    await untilDecided(stage)
    await running(stage, 'late', 'node-a', '5')
    await stage.pass(2 * minutes)
    assertUntouched(stage)
    assert.ok(stage.events('ConsolidationRejected').length > 0)
  })

  test('the price of the replacement has risen: no node is launched that costs more than the old one', async (t) => {
    const stage = await anOversizedNode(t)
    await untilDecided(stage)
    stage.cloud.instanceTypes = [priced(small, 10), large]
    await stage.pass(2 * minutes)
    assertUntouched(stage)
  })

  test('a pod that must not be disrupted comes: the node stays', async (t) => {
    const stage = await anOversizedNode(t)
    await untilDecided(stage)
    await running(stage, 'held', 'node-a', '100m', { annotations: { [annotations.doNotDisrupt]: 'true' } })
    await stage.pass(2 * minutes)
    assertUntouched(stage)
    assert.equal(await stage.metric('voluntary_disruption_failed_validations_total'), 1)
  })
})

describe('a replacement that never comes up', () => {
  test('DIS-141 after ten minutes the node takes pods again and is no longer held, and it is counted', async (t) => {
    const stage = await anOversizedNode(t)
    consolidate(stage)
    assert.deepEqual(await untilBegun(stage), ['a'])
    await stage.pass(9 * minutes)
    assert.deepEqual(tainted(stage), ['a'])
    assert.equal(isMarked(stage, 'a'), true)
    setDisruption(stage, { consolidateAfter: 'Never' })
    await stage.pass(minutes + 5 * seconds)
    assert.deepEqual(tainted(stage), [])
    assert.equal(isMarked(stage, 'a'), false)
    assert.equal(stage.state('a', 'DisruptionReason'), 'absent')
    const failures = { decision: 'replace', reason: 'underutilized', consolidation_type: 'replace' }
    assert.equal(await stage.metric('voluntary_disruption_queue_failures_total', failures), 1)
    assert.equal(madeClaims(stage).length, 1)
  })

  test('a launch that the cloud refuses each time is tried less and less often, and nothing is left of it', async (t) => {
    // Its own pause after three failures would come before.
    const stage = await anOversizedNode(t, { settings: { autoBrake: false } })
    const { onCreate } = stage.cloud
    const launches: number[] = []
    stage.cloud.onCreate = (claim) => {
      launches.push(stage.now)
      onCreate(claim)
      throw new ProviderError('insufficientCapacity', 'no capacity')
    }
    consolidate(stage)
    await stage.pass(60 * minutes)
    const pauses = launches.slice(1).map((at, i) => at - (launches[i] ?? 0))
    assert.ok(pauses.length > 2 && pauses.length < 10, `${pauses.length + 1} launches`)
    assert.deepEqual(
      pauses,
      pauses.toSorted((a, b) => a - b),
    )
    stage.cloud.onCreate = onCreate
    for (let i = 0; i < 70 && left(stage).includes('a'); i++) {
      await stage.pass(minutes)
      await joinReplacements(stage)
    }
    assert.equal(left(stage).includes('a'), false)
    assert.equal(left(stage).length, 1)
  })
})

describe('an API server that fails during a command', () => {
  /** A stage whose API server answers 500 to what `fails` says, until it is fixed. */
  async function withFailures(
    t: Parameters<typeof anOversizedNode>[0],
    fails: (method: string, path: string, body: string) => boolean,
  ) {
    let isBroken = false
    let failures = 0
    const apiPath = intercepting((method, path, body) => {
      if (!isBroken || !fails(method, path, body)) return 'pass'
      failures++
      return 'error'
    })
    const stage = await anOversizedNode(t, { apiPath })
    return {
      stage,
      break: () => (isBroken = true),
      restore: () => (isBroken = false),
      failures: () => failures,
    }
  }

  const points: Readonly<Record<string, (method: string, path: string, body: string) => boolean>> = {
    'the taint': (method, path, body) =>
      method === 'PATCH' && /\/nodes\/[^/]+$/.test(path.split('?')[0] ?? '') && body.includes('taints'),
    'the reason': (method, path, body) =>
      method === 'PATCH' && path.includes('/nodeclaims/') && body.includes('DisruptionReason'),
    'the new claim': (method, path) => method === 'POST' && path.endsWith('/nodeclaims'),
    'the deletion': (method, path) => method === 'DELETE' && path.includes('/nodeclaims/'),
    'every write': (method) => method !== 'GET',
  }
  for (const [point, fails] of Object.entries(points)) {
    test(`500 for ${point}: once it is over, one cheaper node is left and nothing is stranded`, async (t) => {
      const { stage, restore, failures, ...broken } = await withFailures(t, fails)
      broken.break()
      consolidate(stage)
      await stage.pass(40 * seconds)
      await joinReplacements(stage)
      await stage.pass(30 * seconds)
      assert.ok(failures() > 0)
      assert.ok(left(stage).includes('a'))
      restore()
      for (let i = 0; i < 30 && left(stage).includes('a'); i++) {
        await stage.pass(20 * seconds)
        await joinReplacements(stage)
      }
      const [replacement, ...others] = left(stage)
      assert.deepEqual(others, [])
      assert.notEqual(replacement, 'a')
      assert.deepEqual(
        madeClaims(stage).map(({ metadata }) => metadata.name),
        [replacement],
      )
      await stage.end('p')
      await stage.pass(10 * seconds)
      assert.deepEqual([tainted(stage), stage.nodeNow('node-a')], [[], undefined])
    })
  }

  test('DIS-143 a node that cannot be tainted stays, the others that are removed with it go', async (t) => {
    const apiPath = intercepting((method, path, body) =>
      method === 'PATCH' && path.includes('/nodes/node-b') && body.includes('karpenter.sh/disrupted')
        ? 'error'
        : 'pass',
    )
    const stage = await openReplacing(t, { apiPath })
    for (const name of ['a', 'b', 'c']) await aNodeOf(stage, name, small)
    setDisruption(stage, { consolidateAfter: '0s' })
    await stage.pass(28 * seconds)
    assert.deepEqual(left(stage), ['b'])
    assert.equal(await stage.metric('nodeclaims_disrupted_total', { reason: 'empty' }), 2)
  })
})

/** Holds back what watches of a path report, from when it is told to until it is told otherwise. */
function stalling(path: string) {
  let gate: PromiseWithResolvers<void> | undefined
  const held = async function* <T>(body: AsyncIterable<T>): AsyncIterable<T> {
    for await (const chunk of body) {
      await gate?.promise
      yield chunk
    }
  }
  const apiPath = (inner: Transport): Transport => ({
    send: async (request, signal) => {
      const response = await inner.send(request, signal)
      const isWatch =
        request.method === 'GET' && request.path.includes(path) && request.path.includes('watch=')
      return isWatch ? { ...response, body: held(response.body) } : response
    },
  })
  return {
    apiPath,
    stall: () => {
      gate = Promise.withResolvers()
    },
    flow: () => gate?.resolve(),
  }
}

test('DIS-140 a replacement that only its creator knows of yet is waited for', async (t) => {
  const { apiPath, stall, flow } = stalling('/nodeclaims')
  const stage = await anOversizedNode(t, { apiPath })
  await untilDecided(stage)
  await stage.pass(midValidation)
  stall()
  await untilBegun(stage)
  await stage.pass(10 * seconds)
  const [replacement] = madeClaims(stage)
  assert.equal(
    stage.operator.operator.caches.nodeClaims.get({ name: replacement?.metadata.name ?? '' }),
    undefined,
  )
  assert.deepEqual(tainted(stage), ['a'])
  assert.equal(await stage.metric('voluntary_disruption_queue_failures_total'), 0)
  flow()
  await stage.pass(5 * seconds)
  await joinReplacements(stage)
  await stage.pass(5 * seconds)
  assert.deepEqual(left(stage), [replacement?.metadata.name])
})

test('DIS-173 a conflict at the start is tried again and is no error, another failure is one', async (t) => {
  let verdict: 'conflict' | 'error' | 'pass' = 'conflict'
  let tries = 0
  const apiPath = intercepting((method, path, body) => {
    if (method !== 'PATCH' || !path.includes('/nodes/') || !body.includes('karpenter.sh/disrupted'))
      return 'pass'
    tries++
    return verdict
  })
  const errors: string[] = []
  const logger: Logger = {
    ...silentLogger,
    with: () => logger,
    error: (message) => {
      errors.push(message)
    },
  }
  const stage = await anOversizedNode(t, { apiPath, logger })
  consolidate(stage)
  await stage.pass(40 * seconds)
  assert.ok(tries > 0)
  assert.deepEqual(errors, [])
  assertUntouched(stage)
  verdict = 'error'
  await stage.pass(40 * seconds)
  assert.notDeepEqual(errors, [])
  assertUntouched(stage)
  verdict = 'pass'
  await stage.pass(3 * minutes)
  assert.equal(madeClaims(stage).length, 1)
})

test('a replacement that is told to go before it was ready leaves the nodes it was for within their limits', async (t) => {
  const stage = await anOversizedNode(t)
  consolidate(stage)
  assert.deepEqual(await untilBegun(stage), ['a'])
  const [replacement] = madeClaims(stage)
  // The cloud does not let it go for a while.
  stage.cloud.onDelete = () => {
    throw new Error('not now')
  }
  stage.delete(karpenterKinds.nodeClaim, replacement?.metadata.name ?? '')
  await stage.pass(100)
  assert.ok(!isMarked(stage, 'a'))
  await stage.pass(500)
  assert.deepEqual(tainted(stage), [])
})

describe('replacements that never become nodes', () => {
  const refusals: Readonly<Record<string, () => Error>> = {
    'a quota that is used up': () => new ProviderError('insufficientCapacity', 'the quota is used up'),
    'a cloud that refuses': () => new ProviderError('create', 'forbidden'),
    'an error of the cloud': () => new Error('internal error'),
  }
  for (const [why, refusal] of Object.entries(refusals)) {
    test(`${why}: of many nodes that would be replaced, few are tried, and less and less often`, async (t) => {
      const stage = await openReplacing(t)
      for (let i = 0; i < 6; i++) {
        await aNodeOf(stage, `n${i}`, large)
        await running(stage, `p${i}`, `node-n${i}`, '1.5')
      }
      const { onCreate } = stage.cloud
      stage.cloud.onCreate = () => {
        throw refusal()
      }
      const claims = new Set<string>()
      stage.world.cluster.server.local.subscribe(karpenterKinds.nodeClaim, {
        added: ({ metadata }) => {
          if (metadata.name.startsWith('default-')) claims.add(metadata.name)
        },
      })
      consolidate(stage)
      await stage.pass(hours)
      assert.match(
        eventMessages(stage, 'ReplacementFailed', 'NodePool/default')[0] ?? '',
        /did not become a node/,
      )
      await stage.pass(5 * hours)
      assert.ok(claims.size >= 4 && claims.size <= 12, `${claims.size} claims in six hours`)
      stage.cloud.onCreate = onCreate
      for (let i = 0; i < 70 && left(stage).includes('n0'); i++) {
        await stage.pass(minutes)
        await joinReplacements(stage)
      }
      assert.equal(left(stage).includes('n0'), false, 'it is replaced once instances are to be had')
    })
  }

  test('drifted nodes wait as well: few replacements are tried, nodes without pods go', async (t) => {
    const stage = await openReplacing(t)
    const names = ['n0', 'n1', 'n2', 'n3', 'n4', 'n5']
    setDisruption(stage, { budgets: [{ nodes: '0' }] })
    setDrifted(stage, ...names, 'empty')
    for (const name of [...names, 'empty']) await aNodeOf(stage, name, large)
    for (const name of names) await running(stage, `p-${name}`, `node-${name}`, '7')
    stage.cloud.onCreate = () => {
      throw new ProviderError('insufficientCapacity', 'the quota is used up')
    }
    setDisruption(stage, { budgets: [{ nodes: '100%' }] })
    const before = stage.cloud.count('create')
    await stage.pass(3 * hours)
    const launches = stage.cloud.count('create') - before
    assert.ok(launches >= 4 && launches <= 9, `${launches} launches in three hours`)
    assert.deepEqual(left(stage), names)
    assert.match(
      eventMessages(stage, 'DisruptionBlocked', 'Node/node-n5').at(-1) ?? '',
      /the last one did not become a node|launches in a row failed/,
    )
  })
})
