/** Tenon takes a cluster over from the Go Karpenter, on virtual time. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import {
  annotations,
  conditionOf,
  disruptedTaint,
  karpenterKinds,
  kinds,
  labels,
  type Node,
  type NodeClaim,
  sameTaint,
} from '@tenon/api'
import { defaultSettings } from '@tenon/operator'
import { minutes, seconds } from '../testing/stage.test-support.ts'
import {
  budgetKind,
  healthyClaims,
  playRecording,
  type RecordedInstance,
  type RecordingTarget,
  recordedInstances,
  startupTaint,
} from './recorded-cluster.test-support.ts'
import { nodeNameOf, providerIdOf } from './recorded-instance.test-support.ts'
import { WriteLog } from './write-log.test-support.ts'
import { World } from '../world.ts'

interface Takeover {
  readonly world: World
  readonly log: WriteLog
  readonly recordedAtMs: number
}

/** A world with the recording in it, `ageMs` after it was made, and no operator yet. */
async function open(
  t: TestContext,
  wanted: (instance: RecordedInstance) => boolean = () => true,
  ageMs = 5 * seconds,
): Promise<Takeover> {
  const log = new WriteLog()
  const world = await World.start({
    seed: 1,
    provider: 'kwok',
    apiPath: log.listening,
    settings: { featureGates: { ...defaultSettings.featureGates, staticCapacity: true, nodeRepair: true } },
  })
  t.after(() => world.stop())
  const recordedAtMs = world.clock.now()
  await playRecording(targetOf(world), recordedInstances(recordedAtMs).filter(wanted), recordedAtMs)
  await world.clock.advance(ageMs)
  return { world, log, recordedAtMs }
}

function targetOf({ cluster }: World): RecordingTarget {
  const { local } = cluster.server
  return {
    create: (type, object) => Promise.resolve(local.create(type, object)),
    patchStatus: async (type, name, patch) => {
      await Promise.resolve(local.patch(type, undefined, name, patch, 'status'))
    },
    delete: async (type, name) => {
      await Promise.resolve(local.delete(type, undefined, name))
    },
  }
}

async function takeOver(t: TestContext, { world }: Takeover): Promise<void> {
  const running = await world.startOperator()
  t.after(() => world.bury(running))
}

const claimOf = ({ world }: Takeover, name: string): NodeClaim | undefined =>
  world.cluster.server.local.get(karpenterKinds.nodeClaim, undefined, name)

const nodesOf = ({ world }: Takeover, claim: string): readonly string[] =>
  world
    .nodes()
    .filter((node) => node.metadata.labels?.[labels.hostname] === claim)
    .map((node) => node.metadata.name)

/** What must stay as it is: identity, spec and what the API server counts of it. */
function unchanging({ world }: Takeover): unknown {
  const { local } = world.cluster.server
  const part = ({
    metadata,
    spec,
  }: {
    readonly metadata: NodeClaim['metadata']
    readonly spec?: unknown
  }) => {
    const { name, uid, generation, finalizers, ownerReferences } = metadata
    const { labels: tags, annotations: notes } = metadata
    return { name, uid, generation, tags, notes, finalizers, ownerReferences, spec }
  }
  const isHealthy = ({ name }: { readonly name: string }) =>
    healthyClaims.some((claim) => name === claim || name === nodeNameOf(claim))
  return {
    claims: local
      .list(karpenterKinds.nodeClaim)
      .filter((o) => isHealthy(o.metadata))
      .map(part),
    nodes: local
      .list(kinds.node)
      .filter((o) => isHealthy(o.metadata))
      .map(part),
    pools: local.list(karpenterKinds.nodePool).map(part),
    pods: local
      .list(kinds.pod)
      .filter((o) => o.metadata.labels?.['app'] === 'payments')
      .map(part),
    budgets: local.list(budgetKind).map(part),
  }
}

/** Takes a startup taint off, as the agent does that it waits for. */
function runAgents({ world }: Takeover): void {
  for (const { metadata, spec } of world.nodes()) {
    const taints = (spec?.taints ?? []).filter((taint) => !sameTaint(taint, startupTaint))
    world.cluster.server.local.patch(kinds.node, undefined, metadata.name, { spec: { taints } })
  }
}

const hasTaint = (
  node: Node | undefined,
  taint: { readonly key: string; readonly effect: string },
): boolean => (node?.spec?.taints ?? []).some((each) => sameTaint(each, taint as typeof disruptedTaint))

test('healthy instances of the Go Karpenter are taken over with status writes alone', async (t) => {
  const takeover = await open(t, ({ name }) => healthyClaims.includes(name), 61 * minutes)
  const before = unchanging(takeover)
  await takeOver(t, takeover)
  await takeover.world.clock.advance(6 * minutes)
  assert.deepEqual(unchanging(takeover), before)
  // The pods were bound after the claims were stamped last, so the wait for consolidation begins again.
  assert.deepEqual(
    takeover.log.lines((target) => !/ events/.test(target)),
    [
      ...['general-a', 'general-b'].flatMap((name) => [
        `PATCH nodeclaims/${name}/status status.conditions`,
        `PATCH nodeclaims/${name}/status status.conditions status.lastPodEventTime`,
      ]),
      // How far rollouts are.
      ...['batch', 'broken', 'fixed', 'general'].map(
        (name) => `PATCH nodepools/${name}/status status.conditions`,
      ),
    ],
  )
  for (const name of healthyClaims) {
    const claim = claimOf(takeover, name)
    assert.equal(claim && conditionOf(claim, 'Drifted'), undefined, name)
    assert.equal(claim && conditionOf(claim, 'Ready')?.status, 'True', name)
  }
})

test('instances that were on their way arrive, each with one instance', async (t) => {
  const onTheirWay = ['created', 'launching', 'launched', 'registering', 'registered']
  const takeover = await open(t, ({ name }) => [...onTheirWay, 'lost', ...healthyClaims].includes(name))
  const before = unchanging(takeover)
  const providerIds = new Map(onTheirWay.map((name) => [name, claimOf(takeover, name)?.status?.providerID]))
  await takeOver(t, takeover)
  await takeover.world.clock.advance(10 * seconds)
  for (const name of onTheirWay) {
    const claim = claimOf(takeover, name)
    assert.equal(claim && conditionOf(claim, 'Initialized')?.reason, 'StartupTaintsExist', name)
    assert.equal(nodesOf(takeover, name).length, 1, name)
    assert.equal(claim?.status?.providerID, providerIds.get(name) ?? claim?.status?.providerID, name)
  }
  assert.deepEqual(nodesOf(takeover, 'launching'), [nodeNameOf('launching')])
  assert.equal(claimOf(takeover, 'launching')?.status?.providerID, providerIdOf('launching'))
  assert.equal(claimOf(takeover, 'lost'), undefined)

  runAgents(takeover)
  await takeover.world.clock.advance(10 * seconds)
  for (const name of onTheirWay) {
    const claim = claimOf(takeover, name)
    assert.equal(claim && conditionOf(claim, 'Ready')?.status, 'True', name)
    assert.equal(claim && conditionOf(claim, 'Drifted'), undefined, name)
  }
  assert.deepEqual(unchanging(takeover), before)
  assert.equal(takeover.log.lines((target) => target.startsWith('POST node')).length, 1, 'one launch')
})

test('instances that were on their way out go, and a disruption that was interrupted is taken back', async (t) => {
  const leaving = ['draining', 'terminating', 'finalizing', 'repairing']
  const takeover = await open(t, ({ name }) => ['interrupted', ...leaving, ...healthyClaims].includes(name))
  const { world, log, recordedAtMs } = takeover
  const { local } = world.cluster.server
  const before = unchanging(takeover)
  const deadline = () =>
    claimOf(takeover, 'draining')?.metadata.annotations?.[annotations.terminationTimestamp]
  const deadlineBefore = deadline()
  assert.notEqual(deadlineBefore, undefined)
  await takeOver(t, takeover)
  await world.clock.advance(40 * seconds)

  const interrupted = claimOf(takeover, 'interrupted')
  assert.equal(interrupted && conditionOf(interrupted, 'DisruptionReason'), undefined)
  assert.ok(!hasTaint(local.get(kinds.node, undefined, nodeNameOf('interrupted')), disruptedTaint))
  for (const name of ['terminating', 'finalizing', 'repairing']) {
    assert.equal(claimOf(takeover, name), undefined, name)
    assert.deepEqual(nodesOf(takeover, name), [], name)
  }
  assert.equal(local.get(kinds.pod, 'default', 'protected-repairing'), undefined)
  const blocked = () => local.get(kinds.pod, 'default', 'blocked-draining')
  assert.equal(blocked()?.metadata.deletionTimestamp, undefined, 'its budget holds')
  assert.equal(deadline(), deadlineBefore)

  await world.clock.advance(recordedAtMs + 9 * minutes + 20 * seconds - world.clock.now())
  assert.deepEqual([blocked(), claimOf(takeover, 'draining')], [undefined, undefined])
  assert.deepEqual(nodesOf(takeover, 'draining'), [])
  assert.deepEqual(unchanging(takeover), before)
  assert.deepEqual(
    log.lines((target) => /^POST (node|pods\/payments)|^DELETE pods\/payments/.test(target)),
    [],
    'nothing launched, no pod of others told to go',
  )
})

test('a claim deleted while the Go Karpenter was launching it takes its instance along', async (t) => {
  const takeover = await open(t, ({ name }) => ['launching', ...healthyClaims].includes(name))
  const { world } = takeover
  world.cluster.server.local.delete(karpenterKinds.nodeClaim, undefined, 'launching')
  assert.equal(claimOf(takeover, 'launching')?.status?.providerID, undefined)
  await takeOver(t, takeover)
  await world.clock.advance(10 * seconds)
  assert.deepEqual([claimOf(takeover, 'launching'), nodesOf(takeover, 'launching')], [undefined, []])
})
