/**
 * The proof that plans hold: pods under every kind of constraint, placed by the real scheduler on the
 * nodes of the first decision alone. Replay another draw with TENON_PROOF_SEED=<text>; on a host that is
 * slow, TENON_PROOF_PATIENCE=<factor> stretches the limits of waiting.
 */
import assert from 'node:assert/strict'
import { dirname } from 'node:path'
import { after, before, describe, type TestContext, test } from 'node:test'
import { honoursNominations } from '@tenon/api'
import { SeededRandom, SystemClock } from '@tenon/runtime'
import { Autoscaler } from '../src/scheduling-proof/autoscaler.ts'
import { Field } from '../src/scheduling-proof/field.ts'
import {
  averseFirst,
  followers,
  loopRounds,
  oneEach,
  unconstrainedTarget,
} from '../src/scheduling-proof/loop-rounds.ts'
import { nodeRounds } from '../src/scheduling-proof/node-rounds.ts'
import { Draw } from '../src/scheduling-proof/objects.ts'
import { figures, type Outcome } from '../src/scheduling-proof/outcome.ts'
import { podRounds } from '../src/scheduling-proof/pod-rounds.ts'
import { makerOf, namespaceOf, type Round } from '../src/scheduling-proof/round.ts'
import {
  heldShortcuts,
  ignoredAffinity,
  oneOpens,
  openedZone,
  refusedShortcuts,
} from '../src/scheduling-proof/shortcut-rounds.ts'
import { volumeRound } from '../src/scheduling-proof/volume-round.ts'
import { sharedControlPlane } from './cluster.ts'

const seed = process.env['TENON_PROOF_SEED'] ?? 'proof'
const plannedPlacement = process.env['TENON_PROOF_MODE'] !== 'free'
const patience = Number(process.env['TENON_PROOF_PATIENCE'] ?? 1)
const roundMs = 30_000
const maxReplays = 3
/** A replay that begins later would run into the limit of its test, and on into the next one. */
const replayMs = 100_000
/** How the user agent of the controller manager's taint eviction ends. */
const taintEviction = ':node-controller'
const single: readonly Round[] = [...nodeRounds, ...podRounds, volumeRound]
/** Enough kinds to meet on each other's nodes. */
const mixed = single.filter(({ kind }) =>
  ['taints', 'zone-spread', 'pod-affinity', 'anti-affinity', 'volumes'].includes(kind),
)
/**
 * Whether a pod slipped onto another's room: somebody had no place in the end, a node stayed empty, or another number
 * of decisions launched than should. Where one decision is for all pods, nobody may lack a place for a while either.
 */
function isAstray({ unbound, disowned, idle, launches }: Outcome, decisions: number): boolean {
  const isDisowned = decisions === 1 && Object.keys(disowned).length > 0
  return unbound.length > 0 || isDisowned || idle.length > 0 || launches.length !== decisions
}

const namespaces = Object.fromEntries(
  [...single, ...loopRounds, ...heldShortcuts, ...refusedShortcuts].flatMap((round) => [
    [namespaceOf(round.kind), {}],
    ...Object.entries(round.namespaces ?? {}),
  ]),
)

describe(`scheduling proof, seed ${seed}`, () => {
  const clock = new SystemClock()
  const random = new SeededRandom(seed)
  let controlPlane: Awaited<ReturnType<typeof sharedControlPlane>>
  let autoscaler: Autoscaler
  let field: Field

  before(async () => {
    controlPlane = await sharedControlPlane()
    const { kubeconfigPath } = controlPlane
    autoscaler = await Autoscaler.start({
      kubeconfigPath,
      clock,
      random: random.fork('operator'),
      plannedPlacement,
      patience,
    })
    field = new Field(autoscaler, clock, dirname(kubeconfigPath), patience)
    await field.prepare(namespaces)
  })

  after(async () => {
    await field.leave(Object.keys(namespaces))
    await autoscaler.stop()
    await controlPlane.stop()
  })

  /**
   * Plays again what went astray: the scheduler may bind a pod just before its nomination stands; a wrong plan goes
   * astray each time. So does a round in which the taint eviction of Kubernetes deletes a pod: it may hear of a pod on
   * a new node before it hears that the node's taint is gone. Nobody else may delete one.
   * @param options.decisions that should launch nodes; omitted where pods are to stay unbound.
   * @param options.label separates the draws of rounds that are played twice.
   */
  async function play(
    context: TestContext,
    rounds: readonly Round[],
    {
      decisions,
      isOneDecision = false,
      label = '',
      withinMs = roundMs,
    }: {
      readonly decisions?: number
      readonly isOneDecision?: boolean
      readonly label?: string
      readonly withinMs?: number
    },
  ): Promise<Outcome> {
    const items = rounds.flatMap((round) =>
      round.items(makerOf(round.kind), new Draw(random.fork(`${label}${round.kind}`))),
    )
    const pods = items.reduce((sum, each) => sum + each.pods, 0)
    const start = clock.monotonic()
    for (let replays = 0; ; replays++) {
      const outcome = await field.play(items, { withinMs, isOneDecision })
      context.diagnostic(figures(outcome))
      const isShort = outcome.pods < pods
      if (isShort) {
        const others = outcome.podDeleters.filter((each) => !each.endsWith(taintEviction))
        assert.deepEqual(others, [], `pods were deleted: ${figures(outcome)}`)
      }
      const isRight = !isShort && (decisions === undefined || !isAstray(outcome, decisions))
      if (isRight || replays === maxReplays || clock.monotonic() - start > replayMs) return outcome
      context.diagnostic(
        `played again, ${isShort ? 'a pod was deleted' : 'pods went astray'}:\n${outcome.account}`,
      )
    }
  }

  function testOneDecision(what: string, rounds: readonly Round[], label = ''): void {
    let outcome: Outcome | undefined
    // Pods of several kinds may then end up in each other's way, and those that are left get a node.
    const mayStray = () => rounds.length > 1 && !honoursNominations(controlPlane.minor)

    test(`VER-9 ${what}: the first decision's nodes hold every pod`, async (context) => {
      if (mayStray()) {
        const free = await play(context, rounds, { label })
        assert.deepEqual(free.unbound, [], free.account)
        const [planned = 0] = free.launches
        // The one more may be left without a pod: the scheduler found another place before it was Ready.
        assert.ok(free.nodes <= planned + 1, free.account)
        return
      }
      outcome = await play(context, rounds, { decisions: 1, isOneDecision: plannedPlacement, label })
      const { refused, unbound, launches, nodes, account } = outcome
      assert.deepEqual(refused, {}, 'the first decision has a place for every pod')
      assert.deepEqual(unbound, [], `pods stranded\n${account}`)
      assert.deepEqual([launches.length, nodes], [1, launches[0]], account)
      assert.deepEqual(autoscaler.complaints, [])
    })

    test(`VER-9 ${what}: later decisions launch nothing`, (context) => {
      if (mayStray()) return context.skip('the scheduler does not know of the plan')
      assert.ok(outcome !== undefined && outcome.passes >= 2, 'a pass saw pods whose nodes were on their way')
      assert.deepEqual(outcome.disowned, {}, outcome.account)
    })
  }

  for (const round of single) testOneDecision(round.kind, [round])
  for (const round of heldShortcuts) {
    testOneDecision(`${round.kind === 'daemons-company' ? 'RPT-14' : 'RPT-50'} ${round.kind}`, [round])
  }

  /** The scheduler leaves as many pods as were refused, and no node was launched for any of them. */
  async function testRefused(context: TestContext, round: Round, refused: number): Promise<void> {
    // Longer, nothing would come of it.
    const outcome = await play(context, [round], { withinMs: 6000 })
    assert.equal(Object.keys(outcome.refused).length, refused, outcome.account)
    // The pods are alike: which of them the scheduler leaves is its own choice.
    assert.equal(outcome.unbound.length, refused, outcome.account)
    assert.deepEqual(outcome.idle, [], outcome.account)
    assert.equal(outcome.launches.length, 1, outcome.account)
  }

  test('RPT-50 with nodeAffinityPolicy Ignore all zones count, for the plan and for the scheduler', (context) =>
    testRefused(context, ignoredAffinity, 1))

  test('RPT-50 only the first pod of a self-affinity opens a node, for the plan and for the scheduler', (context) =>
    testRefused(context, oneOpens, 2))

  test('RPB-51 zones count that the plan itself opens, for the plan and for the scheduler', (context) =>
    testRefused(context, openedZone, 2))

  testOneDecision('several kinds at once', mixed, 'mixed ')

  /** Every pod is bound in the end, and no node was launched for nothing. */
  function assertConverged(outcome: Outcome): void {
    assert.deepEqual(outcome.unbound, [], outcome.account)
    assert.deepEqual(outcome.idle, [], outcome.account)
  }

  test('SCH-121 a zonal anti-affine pod waits one loop for its unconstrained target', async (context) => {
    const outcome = await play(context, [unconstrainedTarget], { decisions: 2 })
    assert.deepEqual(Object.keys(outcome.refused), ['proof-unconstrained-target/averse'])
    assertConverged(outcome)
    assert.deepEqual(outcome.launches, [1, 1], outcome.account)
    assert.equal(new Set(Object.values(outcome.zones)).size, 2)
  })

  test('SCH-122 a plain pod waits one loop for the anti-affine pod placed before it', async (context) => {
    const outcome = await play(context, [averseFirst], { decisions: 2 })
    assert.deepEqual(Object.keys(outcome.refused), ['proof-averse-first/target'])
    assertConverged(outcome)
    assert.deepEqual(outcome.launches, [1, 1], outcome.account)
    assert.equal(new Set(Object.values(outcome.zones)).size, 2)
  })

  test('SCH-124 three pods averse to each other by zone come one per loop, in distinct zones', async (context) => {
    const outcome = await play(context, [oneEach], { decisions: 3 })
    assertConverged(outcome)
    assert.deepEqual(outcome.launches, [1, 1, 1], outcome.account)
    assert.equal(new Set(Object.values(outcome.zones)).size, 3)
  })

  test('SCH-161 pods follow an unconstrained target one loop later, a pinned one at once', async (context) => {
    const outcome = await play(context, [followers], { decisions: 2 })
    const waiting = Object.keys(outcome.refused)
    assert.equal(waiting.length, 10, outcome.account)
    assert.ok(waiting.every((name) => name.startsWith('proof-followers/target-follower-')))
    assertConverged(outcome)
    assert.equal(outcome.launches.length, 2, outcome.account)
    const zonesOf = (app: string) =>
      new Set(
        Object.entries(outcome.zones).flatMap(([name, zone]) => (name.includes(`/${app}`) ? [zone] : [])),
      )
    // Each prefix takes in the followers.
    assert.equal(zonesOf('target').size, 1)
    assert.equal(zonesOf('pinned').size, 1)
  })
})
