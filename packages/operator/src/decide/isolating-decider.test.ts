import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import type { Pod } from '@tenon/api'
import {
  type ConsolidationQuestion,
  renderPodReason,
  schedule,
  type SchedulingInput,
  type SchedulingResult,
} from '@tenon/engine'
import { eventLoopTurns, type LogFields, silentLogger, SystemClock, VirtualClock } from '@tenon/runtime'
import { Metrics } from '../metrics/metrics.ts'
import { DecisionFaults } from './decision-faults.ts'
import type { DecisionOptions, SchedulingDecider } from './decider.ts'
import { InlineDecider } from './inline-decider.ts'
import { nothingDecided } from './inline-scheduler.ts'
import { aNode, anInput, aPod, aPool, aQuestion, some } from './inputs.test-support.ts'
import { IsolatingDecider } from './isolating-decider.ts'
import { ThreadDecider } from './thread-decider.ts'

const options: DecisionOptions = { deadlineMs: 60_000, signal: new AbortController().signal }

/** What the decider under test is asked for, and what comes of it. */
function aDecider(inner: (clock: VirtualClock) => SchedulingDecider) {
  const clock = new VirtualClock(0)
  const metrics = new Metrics({ clock })
  const logged: LogFields[] = []
  const events: { readonly reason: string; readonly name: string; readonly message: string }[] = []
  const logger = { ...silentLogger, error: (_: string, fields: LogFields = {}) => logged.push(fields) }
  const decider = new IsolatingDecider({
    inner: inner(clock),
    clock,
    logger,
    events: {
      record: ({ reason, object, message }) => events.push({ reason, name: object.metadata.name, message }),
    },
    faults: new DecisionFaults({ logger, metrics }),
  })
  return {
    decider,
    clock,
    events,
    stacks: () => logged.flatMap(({ stack }) => (typeof stack === 'string' ? [stack] : [])),
    faults: async () =>
      Object.fromEntries(
        (await metrics.decisionFaults.get()).values.flatMap(({ labels, value }) =>
          value === 0 ? [] : [[String(labels.part), value]],
        ),
      ),
  }
}

/** Decides inline, unless something in the input is broken. */
function failingFor(isBroken: (input: SchedulingInput) => boolean) {
  let asked = 0
  const make = (clock: VirtualClock): SchedulingDecider => {
    const inline = new InlineDecider(clock)
    const checked = <T>(input: SchedulingInput, run: () => Promise<T>): Promise<T> => {
      asked++
      return isBroken(input) ? Promise.reject(new TypeError('cannot read this')) : run()
    }
    return {
      decide: (input, more) => checked(input, () => inline.decide(input, more)),
      examine: (input, question, more) => checked(input, () => inline.examine(input, question, more)),
      close: () => inline.close(),
    }
  }
  return { make, asked: () => asked }
}

const named = (pods: readonly Pod[], ...names: readonly string[]) =>
  pods.some(({ metadata }) => names.includes(metadata.name))

const placed = ({ claims, placements }: ReturnType<typeof schedule>) =>
  [...claims.flatMap(({ pods }) => pods), ...placements.map(({ pod }) => pod)]
    .map(({ metadata }) => metadata.name)
    .toSorted()

describe('a decision that throws', () => {
  test('RPT-30 is made without the pods that make it throw, which are told why', async () => {
    const { make, asked } = failingFor(({ pods }) => named(pods, 'p-17', 'p-63'))
    const { decider, faults } = aDecider(make)
    const pods = some(100, (i) => aPod(`p-${i}`, '100m'))
    const result = await decider.decide(anInput(pods), options)
    assert.equal(placed(result).length, 98)
    const reason = { kind: 'undecidable', problem: 'cannot read this' }
    assert.deepEqual(
      new Map(result.failures.map((failure) => [failure.pod.metadata.name, failure.reason])),
      new Map(['p-17', 'p-63'].map((name) => [name, reason])),
    )
    assert.ok(asked() < 40, `${asked()} attempts`)
    assert.ok(((await faults())['decision'] ?? 0) > 0)
  })

  test('RPT-30 sets them aside for a while that grows, and decides about the others at once', async () => {
    const { make, asked } = failingFor(({ pods }) => named(pods, 'p-1'))
    const { decider, clock } = aDecider(make)
    const input = anInput(some(8, (i) => aPod(`p-${i}`, '100m')))
    await decider.decide(input, options)
    const attempts = async () => {
      const before = asked()
      const { failures } = await decider.decide(input, options)
      assert.deepEqual(
        failures.map(({ pod }) => pod.metadata.name),
        ['p-1'],
      )
      return asked() - before
    }
    assert.equal(await attempts(), 1)
    await clock.advance(61_000)
    assert.ok((await attempts()) > 1)
    await clock.advance(61_000)
    assert.equal(await attempts(), 1)
    await clock.advance(61_000)
    assert.ok((await attempts()) > 1)
  })

  test('RPT-30 suspects new pods first', async () => {
    const { make, asked } = failingFor(({ pods }) => named(pods, 'new'))
    const { decider } = aDecider(make)
    const old = some(64, (i) => aPod(`p-${i}`, '100m'))
    await decider.decide(anInput(old), options)
    const before = asked()
    const result = await decider.decide(anInput([...old, aPod('new', '1')]), options)
    assert.equal(placed(result).length, 64)
    assert.ok(asked() - before <= 3, `${asked() - before} attempts`)
  })

  test('RPT-30 a pod that was decided about before can be the one', async () => {
    let isBroken = false
    const { make } = failingFor(({ pods }) => isBroken && named(pods, 'p-3'))
    const { decider } = aDecider(make)
    const input = anInput(some(10, (i) => aPod(`p-${i}`, '100m')))
    await decider.decide(input, options)
    isBroken = true
    assert.equal(placed(await decider.decide(input, options)).length, 9)
    const more = anInput([...input.pods, aPod('q', '100m')])
    assert.equal(placed(await decider.decide(more, options)).length, 10)
  })

  test('RPT-29 is made again without improvements, and its stack is logged once', async () => {
    const { make } = failingFor(({ policy }) => policy.improvement !== undefined)
    const { decider, faults, stacks } = aDecider(make)
    const input = anInput(some(10, (i) => aPod(`p-${i}`, '100m')))
    const planned: SchedulingInput = { ...input, policy: { ...input.policy, improvement: 'planned' } }
    for (let pass = 0; pass < 3; pass++)
      assert.deepEqual(placed(await decider.decide(planned, options)), placed(schedule(input)))
    assert.deepEqual(await faults(), { decision: 3 })
    assert.equal(stacks().length, 1)
  })

  test('RPT-29 a part that fails by itself is counted, and its stack is logged once', async () => {
    const inner = (): SchedulingDecider => ({
      decide: (input) =>
        Promise.resolve(
          schedule(input, {
            shouldStop: () => false,
            shouldImprove: () => {
              throw new Error('improving is broken')
            },
          }),
        ),
      examine: () => Promise.resolve(undefined),
      close: () => Promise.resolve(),
    })
    const { decider, faults, stacks } = aDecider(inner)
    const input = anInput(some(10, (i) => aPod(`p-${i}`, '100m')))
    const planned: SchedulingInput = { ...input, policy: { ...input.policy, improvement: 'planned' } }
    for (let pass = 0; pass < 2; pass++)
      assert.deepEqual(placed(await decider.decide(planned, options)), placed(schedule(input)))
    assert.deepEqual(await faults(), { improvement: 2 })
    assert.equal(stacks().length, 1)
    assert.match(stacks()[0] ?? '', /isolating-decider\.test/)
  })

  test('RPT-30 a NodePool that makes every decision throw is set aside with an event', async () => {
    const { make } = failingFor(({ pools }) =>
      pools.some(({ nodePool }) => nodePool.metadata.name === 'broken'),
    )
    const { decider, events } = aDecider(make)
    const pods = some(4, (i) => aPod(`p-${i}`, '1'))
    const input = anInput(pods, { pools: [aPool('broken'), aPool('sound'), aPool('other')] })
    assert.equal(placed(await decider.decide(input, options)).length, 4)
    assert.deepEqual(
      events.map(({ reason, name }) => [reason, name]),
      [['DecisionFailed', 'broken']],
    )
    assert.match(events[0]?.message ?? '', /cannot read this/)
  })

  for (const kind of ['nodes', 'daemons'] as const)
    test(`RPT-30 so are ${kind}`, async () => {
      const { make } = failingFor((input) => input[kind].some(({ name }) => name === 'broken'))
      const { decider } = aDecider(make)
      const input = anInput([aPod('p', '1')], {
        nodes: ['one', 'broken', 'two'].map(aNode),
        daemons: ['a', 'broken'].map((name) => ({
          name,
          namespace: 'default',
          labels: {},
          spec: aPod(name, '50m').spec,
        })),
        [kind === 'nodes' ? 'daemons' : 'nodes']: [],
      })
      assert.deepEqual(placed(await decider.decide(input, options)), ['p'])
    })

  test('RPT-30 one that throws whatever is left out is rejected', async () => {
    const { make } = failingFor(() => true)
    const { decider } = aDecider(make)
    await assert.rejects(decider.decide(anInput([aPod('p', '1')]), options), /cannot read this/)
  })
})

describe('a question that throws', () => {
  test('RPT-30 is asked without the nodes that make it throw', async () => {
    const { input, question } = aQuestion(12)
    const { make } = failingFor(({ pods }) => named(pods, 'p-5'))
    const { decider, events, faults } = aDecider(make)
    const healthy: ConsolidationQuestion = {
      ...question,
      candidates: question.candidates.filter(({ node }) => node !== 'node-5'),
    }
    const expected = await new InlineDecider(new SystemClock()).examine(
      { ...input, pods: input.pods.filter(({ metadata }) => metadata.name !== 'p-5') },
      healthy,
      options,
    )
    assert.deepEqual(await decider.examine(input, question, options), expected)
    assert.ok(expected?.kind === 'consolidation' && expected.moves.length === 1)
    assert.deepEqual(
      events.map(({ reason, name }) => [reason, name]),
      [['DecisionFailed', 'node-5']],
    )
    assert.ok(((await faults())['disruption'] ?? 0) > 0)
    assert.deepEqual(await decider.examine(input, question, options), expected)
  })
})

test('RPT-30 what cannot be told a thread costs only the pod that has it', async (t) => {
  const clock = new SystemClock()
  const inner = new ThreadDecider({ clock, turns: eventLoopTurns, logger: silentLogger })
  t.after(() => inner.close())
  const { decider } = aDecider(() => inner)
  const broken = aPod('broken', '1')
  const spec = { ...broken.spec, tolerations: [{ key: Symbol('no text') as never }] }
  const pods = [...some(7, (i) => aPod(`p-${i}`, '1')), { ...broken, spec }]
  const result = await decider.decide(anInput(pods), options)
  assert.equal(placed(result).length, 7)
  assert.deepEqual(
    result.failures.map(({ pod }) => pod.metadata.name),
    ['broken'],
  )
})

/** Like a thread that hangs while something in the input is broken: it is given up some time after its deadline. */
function hangingFor(isBroken: (input: SchedulingInput) => boolean, ending: 'fails' | 'decides nothing') {
  return (clock: VirtualClock): SchedulingDecider => {
    const inline = new InlineDecider(clock)
    return {
      decide: async (input, more) => {
        if (!isBroken(input)) return await inline.decide(input, more)
        await clock.advance(more.deadlineMs + (ending === 'fails' ? 30_000 : 0))
        if (ending === 'fails') throw new Error('gave no sign of life')
        return nothingDecided(input)
      },
      examine: (input, question, more) => inline.examine(input, question, more),
      close: () => inline.close(),
    }
  }
}

describe('a decision that hangs', () => {
  const replicas = (count: number) => some(count, (i) => aPod(`p-${i}`, '100m'))

  for (const ending of ['fails', 'decides nothing'] as const)
    test(`RPB-48 and ${ending} is made without the pod that hangs it, within two passes`, async () => {
      const { decider, clock } = aDecider(hangingFor(({ pods }) => named(pods, 'p-137'), ending))
      const input = anInput(replicas(300))
      let result = await decider.decide(input, options)
      if (placed(result).length < 299) result = await decider.decide(input, options)
      assert.equal(placed(result).length, 299)
      assert.deepEqual(
        result.failures.map(({ pod, reason }) => [pod.metadata.name, reason.kind]),
        [['p-137', 'undecidable']],
      )
      const before = clock.monotonic()
      assert.equal(placed(await decider.decide(input, options)).length, 299)
      assert.equal(clock.monotonic(), before, 'the pod is left out at once')
    })

  for (const kind of ['nodes', 'daemons', 'pools'] as const)
    test(`RPB-48 so it is without one of the ${kind}`, async () => {
      const nameOf = (item: SchedulingInput[typeof kind][number]) =>
        'nodePool' in item ? item.nodePool.metadata.name : item.name
      const { decider } = aDecider(
        hangingFor((input) => input[kind].some((item) => nameOf(item) === 'broken'), 'fails'),
      )
      const names = ['one', 'broken', 'two']
      const input = anInput(replicas(20), {
        nodes: kind === 'nodes' ? names.map(aNode) : [],
        pools: (kind === 'pools' ? names : ['one']).map((name) => aPool(name)),
        daemons: (kind === 'daemons' ? names : []).map((name) => ({
          name,
          namespace: 'default',
          labels: {},
          spec: aPod(name, '50m').spec,
        })),
      })
      const first = await decider.decide(input, options)
      const result = placed(first).length === 20 ? first : await decider.decide(input, options)
      assert.equal(placed(result).length, 20)
    })
})

describe('a thread that hangs', () => {
  /** A real thread; what hangs it is found by how long it gives no sign of life. */
  function hanging(t: TestContext, silentMs?: number) {
    const inner = new ThreadDecider({
      clock: new SystemClock(),
      turns: eventLoopTurns,
      logger: silentLogger,
      program: new URL('./hanging-thread.test-support.ts', import.meta.url),
      ...(silentMs !== undefined && { silentMs }),
    })
    t.after(() => inner.close())
    return aDecider(() => inner)
  }
  const workload = (uid: string, pod: Pod): Pod => ({
    ...pod,
    metadata: {
      ...pod.metadata,
      ownerReferences: [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: uid, uid, controller: true }],
    },
  })
  /** For tests in which many attempts hang: each costs that much CPU time. */
  const briefMs = 500
  const inAWhile: DecisionOptions = { ...options, deadlineMs: 20_000 }

  /** The decision of one of the next passes: on a busy host, a thread that does not hang may be ended as well. */
  async function decidedInTheEnd(
    decider: SchedulingDecider,
    input: SchedulingInput,
  ): Promise<SchedulingResult> {
    for (let pass = 1; ; pass++) {
      try {
        const result = await decider.decide(input, options)
        if (placed(result).length === input.pods.length || pass === 5) return result
      } catch (error) {
        if (pass === 5) throw error
      }
    }
  }

  test('RPB-48 at a pod is ended, and all other pods are placed in the same pass', async (t) => {
    const { decider } = hanging(t)
    const pods = [...some(50, (i) => aPod(`p-${i}`, '100m')), aPod('hangs', '1')]
    const result = await decider.decide(anInput(pods), inAWhile)
    assert.equal(placed(result).length, 50)
    const [failure] = result.failures
    assert.equal(failure?.pod.metadata.name, 'hangs')
    assert.match(renderPodReason(failure.reason), /gave no sign of life for 2 s/)
  })

  test('RPB-2 for want of CPU is waited for, and nothing is set aside', async (t) => {
    const { decider, faults } = hanging(t)
    const pods = [...some(50, (i) => aPod(`p-${i}`, '100m')), aPod('starves', '1')]
    const result = await decider.decide(anInput(pods), inAWhile)
    assert.equal(placed(result).length, 51)
    assert.deepEqual(await faults(), {})
  })

  test('RPB-48 at every pod of a workload is ended, and the workload set aside', async (t) => {
    const { decider } = hanging(t, briefMs)
    const pods = [
      ...some(50, (i) => aPod(`p-${i}`, '100m')),
      ...some(40, (i) => workload('bad', aPod(`hangs-${i}`, '1'))),
    ]
    const result = await decider.decide(anInput(pods), options)
    assert.equal(placed(result).length, 50)
    assert.equal(result.failures.length, 40)
  })

  for (const name of ['hangs', 'hangs-at-pods'])
    test(`RPB-48 at a NodePool (${name}) is ended, and the NodePool set aside with an event`, async (t) => {
      const { decider, events } = hanging(t, briefMs)
      const pods = some(20, (i) => aPod(`p-${i}`, '100m'))
      const input = anInput(pods, { pools: [aPool('sound'), aPool(name), aPool('other')] })
      assert.equal(placed(await decidedInTheEnd(decider, input)).length, 20)
      assert.deepEqual(
        events.map(({ reason, name: object }) => [reason, object]),
        [['DecisionFailed', name]],
      )
    })

  test('RPB-48 in a search for consolidation is ended, and the node that hangs it left', async (t) => {
    const { decider, events } = hanging(t, briefMs)
    const { input, question } = aQuestion(8)
    const pods = input.pods.map((pod) =>
      pod.metadata.name === 'p-5' ? { ...pod, metadata: { ...pod.metadata, uid: 'hangs' } } : pod,
    )
    const candidates = question.candidates.map((each) =>
      each.node === 'node-5' ? { ...each, pods: ['hangs'] } : each,
    )
    const origins = new Map([...(input.origins ?? []), ['hangs', 'candidate' as const]])
    const answer = await decider.examine({ ...input, pods, origins }, { ...question, candidates }, options)
    assert.ok(answer?.kind === 'consolidation' && answer.moves.length === 1)
    assert.deepEqual(
      events.map(({ name }) => name),
      ['node-5'],
    )
  })
})
