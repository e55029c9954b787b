/**
 * NodeClaims come and go while a fifth of all calls to the cloud fails. `TENON_CHURN=full` churns 500 of
 * them in an hour of virtual time; without it a short run keeps the test suite quick.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { karpenterKinds, kinds, type KubeObject } from '@tenon/api'
import { integerBetween, SeededRandom, type Transport } from '@tenon/runtime'
import { aDeployment, deploymentKind, World } from '../world.ts'
import { aNodeClass, aPool, nodeClassKind } from './manifests.test-support.ts'
import { UnreliableCloud } from './unreliable-cloud.test-support.ts'

const minute = 60_000
const isFull = process.env['TENON_CHURN'] === 'full'
const size = isFull ? { minutes: 60, pods: 150, claims: 500 } : { minutes: 12, pods: 12, claims: 20 }
/** An instance whose pod is gone, whose deletion has failed several times, and which a sweep had to find. */
const calmMinutes = 60

/** Requests to the cloud for each claim, everything included: launch, polls, deletion, sweeps, node classes. */
const callsPerClaim = { calm: 50, storm: 70 } as const

interface Outcome {
  readonly claims: number
  readonly callsPerClaim: number
  readonly wrong: readonly string[]
  readonly struck: ReadonlyMap<string, number>
}

async function churn(share: number, seed: number): Promise<Outcome> {
  const random = new SeededRandom(`churn-${seed}`)
  const wrong: string[] = []
  let cloud: UnreliableCloud | undefined
  /** Looks after every creation whether a claim has two living instances. */
  const watched = (inner: Transport): Transport => ({
    send: async (request, signal) => {
      const response = await inner.send(request, signal)
      if (request.method !== 'POST') return response
      const alive = cluster.cloud.instances().filter(({ state }) => /^(starting|running)$/.test(state))
      const byClaim = Map.groupBy(alive, ({ labels }) => labels['exoscale.com/node-claim'])
      for (const [claim, instances] of byClaim)
        if (instances.length > 1) wrong.push(`${claim} has ${instances.length} instances`)
      return response
    },
  })
  const world = await World.start({
    seed,
    provider: 'exoscale',
    cloudPath: (inner) => cloud?.path(watched(inner)) ?? inner,
    cloudSettings: { operationDelay: { minMs: 2000, maxMs: 40_000 } },
    cluster: {
      kubelets: { leaseRenewMs: 60_000, leaseDurationSeconds: 240, statusReportMs: 600_000 },
      controllers: { nodeMonitorGraceMs: 210_000, nodeStartupGraceMs: 240_000 },
    },
  })
  const { clock, cluster } = world
  const { local } = cluster.server
  cloud = new UnreliableCloud({ clock, random: random.fork('cloud'), share })
  let claims = 0
  local.subscribe(karpenterKinds.nodeClaim, {
    added: () => claims++,
    deleted: ({ metadata, status }) => {
      const id = status?.providerID?.replace('exoscale://', '')
      const instance = cluster.cloud.instances().find((each) => each.id === id)
      if (instance !== undefined) wrong.push(`${metadata.name} is gone, its instance is ${instance.state}`)
    },
  })
  world.create(nodeClassKind, aNodeClass('standard'))
  world.create(karpenterKinds.nodePool, aPool('standard', ['standard.medium']))
  const running = await world.startOperator()
  const before = cloud.calls
  cloud.storm()
  for (const name of ['even', 'odd']) world.create(deploymentKind, aDeployment(name, 0, { cpu: '1500m' }))

  /** Every pod takes an instance of its own; each few minutes one half of them goes and another comes. */
  const end = clock.monotonic() + size.minutes * minute
  for (let wave = 0; clock.monotonic() < end || claims < size.claims; wave++) {
    world.scale(wave % 2 === 0 ? 'even' : 'odd', integerBetween(random, Math.ceil(size.pods / 2), size.pods))
    world.scale(wave % 2 === 0 ? 'odd' : 'even', 0)
    await clock.advance(integerBetween(random, 3 * minute, 5 * minute))
  }
  const pods = 5
  world.scale('even', pods)
  world.scale('odd', 0)
  const allRun = () => world.pods().filter(({ status }) => status?.phase === 'Running').length === pods
  if (!(await clock.advanceUntil(() => world.pods().length === pods && allRun(), 30 * minute)))
    wrong.push(`not all pods run while calls fail`)
  cloud.calm()
  const names = (objects: readonly KubeObject[]) => objects.map(({ metadata }) => metadata.name)
  const instances = () => cluster.cloud.instances().map(({ name, state }) => `instance ${name} ${state}`)
  world.scale('even', 0)
  const isEmpty = () => world.claims().length + world.nodes().length + cluster.cloud.instances().length === 0
  if (!(await clock.advanceUntil(isEmpty, calmMinutes * minute)))
    wrong.push(`left: ${[...names(world.claims()), ...names(world.nodes()), ...instances()].join(', ')}`)
  await clock.advance(15 * minute)
  const tokens = local
    .list(kinds.secret)
    .filter(({ metadata }) => metadata.name.startsWith('bootstrap-token-'))
  for (const { metadata } of tokens) wrong.push(`token ${metadata.name} is left`)
  const calls = cloud.calls - before
  await world.bury(running)
  await world.stop()
  return { claims, callsPerClaim: calls / claims, wrong: [...new Set(wrong)], struck: cloud.struck }
}

const calm = [0, callsPerClaim.calm] as const
const storm = [0.2, callsPerClaim.storm] as const

for (const [share, bound] of isFull ? [calm, storm] : [storm]) {
  test(`${size.claims} claims in ${size.minutes} minutes with ${share * 100} % of calls failing: none doubled, none left, at most ${bound} calls each`, async (t) => {
    const outcome = await churn(share, 1)
    t.diagnostic(
      `${outcome.claims} claims, ${outcome.callsPerClaim.toFixed(1)} calls each; ${[...outcome.struck].map(([manner, times]) => `${manner} ${times}`).join(', ')}`,
    )
    assert.deepEqual(outcome.wrong, [])
    assert.ok(outcome.claims >= size.claims, `${outcome.claims} claims`)
    assert.ok(outcome.callsPerClaim <= bound, `${outcome.callsPerClaim} calls for each claim`)
  })
}
