import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { after, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { labels } from '@tenon/api'
import { schedule, type SchedulingInput, type SchedulingResult } from '@tenon/engine'
import { eventLoopTurns, silentLogger, SystemClock } from '@tenon/runtime'
import type { SchedulingDecider } from './decider.ts'
import { InlineDecider } from './inline-decider.ts'
import { aNode, anInput, aPod, aPool, aQuestion, aType, is, some, someTypes } from './inputs.test-support.ts'
import { ThreadDecider } from './thread-decider.ts'

const options = { clock: new SystemClock(), turns: eventLoopTurns, logger: silentLogger }
const never = new AbortController().signal
const inAMinute = { deadlineMs: 60_000, signal: never }

/** A look at all 15,000 nodes: `LOOK_NODES=15000`. */
const lookedAtNodes = Number(process.env['LOOK_NODES'] ?? 4000)

/** Milliseconds of CPU that all threads but this one have used. */
function otherCpuMs(): number {
  const [all, own] = [process.cpuUsage(), process.threadCpuUsage()]
  return (all.user + all.system - own.user - own.system) / 1000
}

/** Pods a spread over zones, pods b next to bound ones, pods c that fit nowhere, pods d of any kind. */
function aBusyCluster(): SchedulingInput {
  const selector = { matchLabels: { app: 'a' } }
  const spread = { maxSkew: 1, whenUnsatisfiable: 'DoNotSchedule', labelSelector: selector } as const
  const affinity = {
    podAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: [
        { topologyKey: labels.zone, labelSelector: { matchLabels: { app: 'x' } } },
      ],
    },
  }
  const nodes = some(30, (i) => aNode(`node-${i}`))
  return anInput(
    [
      ...some(200, (i) =>
        aPod(`a-${i}`, '900m', { topologySpreadConstraints: [{ ...spread, topologyKey: labels.zone }] }),
      ),
      ...some(150, (i) => aPod(`b-${i}`, '300m', { affinity })),
      ...some(400, (i) => aPod(`c-${i}`, '100', { nodeSelector: { 'example.com/kind': String(i % 3) } })),
      ...some(900, (i) => aPod(`d-${i}`, `${100 + (i % 7) * 50}m`)),
    ],
    {
      nodes,
      pools: [aPool('one'), aPool('two', [...someTypes, aType(16)])],
      topology: {
        pods: some(60, (i) => aPod(`x-${i}`, '100m', { nodeName: `node-${i % 30}` })),
        nodes: new Map(
          nodes.map(({ name, labels: own }) => [
            name,
            { hostname: name, labels: own, taints: [], isCandidate: true },
          ]),
        ),
        namespaces: new Map([['default', {}]]),
      },
      daemons: [{ name: 'agent', namespace: 'd', labels: {}, spec: aPod('agent', '50m').spec }],
      volumes: new Map([
        ['d-1', { alternatives: [[is(labels.zone, 'zone-2')]], claims: { 'csi.example': ['v'] } }],
      ]),
      origins: new Map([['d-2', 'deleting']]),
    },
  )
}

/** Takes long enough to be interrupted: every pod but the first thousands needs a claim of its own. */
function aLongDecision(): SchedulingInput {
  const apart = {
    podAntiAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: [
        { topologyKey: labels.hostname, labelSelector: { matchLabels: { app: 'p' } } },
      ],
    },
  }
  return anInput(some(4000, (i) => aPod(`p-${i}`, `${1 + (i % 1000)}m`, { affinity: apart })))
}

const inputs: Readonly<Record<string, () => SchedulingInput>> = {
  'no pods': () => anInput([]),
  'no pools': () => anInput([aPod('p', '1')], { pools: [] }),
  'pods that cannot be read': () =>
    anInput([aPod('p', 'many'), aPod('q', '1'), { ...aPod('r', '1'), spec: null as never }]),
  'a busy cluster': aBusyCluster,
}

describe('deciding in a thread', () => {
  const decider = new ThreadDecider(options)
  after(() => decider.close())

  for (const [name, make] of Object.entries(inputs)) {
    test(`${name}: the same result as in this thread`, async () => {
      const input = make()
      assert.deepEqual(await decider.decide(input, inAMinute), schedule(input))
    })
  }

  test('the result names the very objects of the input', async () => {
    const input = aBusyCluster()
    const { claims, placements } = await decider.decide(input, inAMinute)
    assert.ok(claims.length > 0 && placements.length > 0)
    const pods = new Set(input.pods)
    assert.ok(claims.every((claim) => claim.pods.every((pod) => pods.has(pod))))
    assert.ok(claims.every(({ pool }) => input.pools.some(({ nodePool }) => nodePool === pool)))
    assert.ok(placements.every(({ pod }) => pods.has(pod)))
  })

  test('a question about removing nodes has the same answer as in this thread', async () => {
    const { input, question } = aQuestion(12)
    const inline = await new InlineDecider(options.clock).examine(input, question, inAMinute)
    const answer = await decider.examine(input, question, inAMinute)
    assert.deepEqual(answer, inline)
    assert.ok(answer?.kind === 'consolidation' && answer.moves[0]?.candidates.length === 9)
  })

  test('SCA-3 pods that wait do not wait for a full look at all nodes, which is left unanswered', async () => {
    const { input, question } = aQuestion(lookedAtNodes)
    const look = { ...question, search: 'global' as const }
    const decision = anInput([aPod('p', '1')])
    // Its thread runs.
    await decider.decide(decision, inAMinute)
    const progress = { isOver: false }
    const answer = decider.examine(input, look, inAMinute).finally(() => {
      progress.isOver = true
    })
    // The thread has begun once it has worked for longer than it takes to receive the problem.
    const begun = otherCpuMs() + 100
    while (!progress.isOver && otherCpuMs() < begun) await eventLoopTurns.next()
    assert.equal(progress.isOver, false, 'the look takes longer')
    const before = otherCpuMs()
    assert.deepEqual(await decider.decide(decision, inAMinute), schedule(decision))
    const tookMs = otherCpuMs() - before
    assert.ok(tookMs <= 1000, `${tookMs} ms of CPU time of other threads`)
    assert.equal(await answer, undefined)
  })

  test('decisions asked for at once are made one after the other', async () => {
    const all = [aBusyCluster(), anInput([aPod('p', '1')]), aBusyCluster()]
    const results = await Promise.all(all.map((input) => decider.decide(input, inAMinute)))
    assert.deepEqual(
      results,
      all.map((input) => schedule(input)),
    )
  })

  test('catalogues that come and go are decided on as they are', async () => {
    for (let round = 0; round < 12; round++) {
      // Far more types than a thread keeps; every other round goes back to one it has seen.
      const types = round % 2 === 0 ? someTypes : some(1000, (i) => aType(2 + (i % 50)))
      const input = anInput([aPod('p', '3')], { pools: [aPool('default', types)] })
      assert.deepEqual(await decider.decide(input, inAMinute), schedule(input))
    }
  })
})

/** How many pods got a place, found none, and were not decided about. */
function countsOf({ claims, placements, failures, undecided }: SchedulingResult) {
  const placed = claims.reduce((count, { pods }) => count + pods.length, placements.length)
  return { placed, failed: failures.length, undecided: undecided.length }
}

/**
 * Interrupts decisions after more or less time, since nobody knows how fast this instance is, until one
 * is interrupted when it has placed some pods and not all.
 */
async function interruptedAmid(
  decide: (input: SchedulingInput, ms: number) => Promise<SchedulingResult>,
): Promise<void> {
  const input = aLongDecision()
  let ms = 8
  for (let attempt = 0; attempt < 200; attempt++) {
    const { placed, failed, undecided } = countsOf(await decide(input, ms))
    assert.equal(placed + failed + undecided, input.pods.length)
    if (placed > 0 && undecided > 0) return
    ms *= undecided > 0 ? 1.2 : 0.6
  }
  assert.fail('every decision was interrupted before its first pod or after its last')
}

describe('decisions that end early', () => {
  const thread = new ThreadDecider(options)
  after(() => thread.close())
  const deciders: Readonly<Record<string, SchedulingDecider>> = {
    'in a thread': thread,
    'in the same thread': new InlineDecider(options.clock),
  }
  for (const [name, decider] of Object.entries(deciders)) {
    test(`${name}: at the deadline the result holds what is decided by then`, async () => {
      await interruptedAmid((input, ms) => decider.decide(input, { deadlineMs: ms, signal: never }))
    })
  }

  test('an aborted decision returns what is decided by then', async () => {
    await interruptedAmid((input, ms) =>
      thread.decide(input, { deadlineMs: 60_000, signal: AbortSignal.timeout(Math.ceil(ms)) }),
    )
  })

  test('with an aborted signal nothing is decided', async () => {
    const input = aLongDecision()
    const result = await thread.decide(input, { deadlineMs: 60_000, signal: AbortSignal.abort() })
    assert.deepEqual(result.undecided, input.pods)
    assert.deepEqual(countsOf(result), { placed: 0, failed: 0, undecided: input.pods.length })
  })
})

describe('the thread of a decider', () => {
  test('a decision that crashes it is rejected, and the next one is made', async (t) => {
    const decider = new ThreadDecider(options)
    t.after(() => decider.close())
    const input = anInput([aPod('p', '1')])
    const broken = { ...input, nodes: [null as never] }
    await assert.rejects(decider.decide(broken, inAMinute), /^Error: the scheduling thread failed: /)
    assert.deepEqual(await decider.decide(input, inAMinute), schedule(input))
  })

  test('an input that cannot be sent is rejected, and the next one is decided on', async (t) => {
    const decider = new ThreadDecider(options)
    t.after(() => decider.close())
    const type = { ...aType(4), describe: () => 'four cores' }
    const input = anInput([aPod('p', '1')], { pools: [aPool('default', [type])] })
    await assert.rejects(decider.decide(input, inAMinute), { name: 'DataCloneError' })
    const good = anInput([aPod('p', '1')])
    assert.deepEqual(await decider.decide(good, inAMinute), schedule(good))
  })

  test('closing rejects the decision under way and those after it', async () => {
    const decider = new ThreadDecider(options)
    const input = aLongDecision()
    const decisions = [decider.decide(input, inAMinute), decider.decide(input, inAMinute)]
    await decider.close()
    for (const decision of decisions) await assert.rejects(decision, /the scheduling thread was closed/)
    await assert.rejects(decider.decide(input, inAMinute), /the scheduling thread was closed/)
  })

  test('an idle thread does not keep the process alive, with and without closing', async () => {
    for (const last of ['', 'await decider.close()']) {
      const script = `
        import { eventLoopTurns, silentLogger, SystemClock } from '@tenon/runtime'
        import { ThreadDecider } from ${JSON.stringify(new URL('./thread-decider.ts', import.meta.url).href)}
        const clock = new SystemClock()
        const decider = new ThreadDecider({ clock, turns: eventLoopTurns, logger: silentLogger })
        const input = {
          pods: [], nodes: [], pools: [], daemons: [],
          topology: { pods: [], nodes: new Map(), namespaces: new Map() },
          policy: { preferences: 'Respect', minValues: 'Strict', wellKnownLabels: new Set(), maxInstanceTypes: 1 },
        }
        const signal = new AbortController().signal
        const result = await decider.decide(input, { deadlineMs: 60_000, signal })
        process.stdout.write('decided ' + result.claims.length)
        ${last}`
      const { stdout } = await promisify(execFile)(process.execPath, ['--eval', script], {
        cwd: import.meta.dirname,
        timeout: 60_000,
      })
      assert.equal(stdout, 'decided 0')
    }
  })
})
