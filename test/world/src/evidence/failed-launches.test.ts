/** What is remembered of launches that fail, whatever they fail with. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { labels, type NodeClaim, type NodePool } from '@tenon/api'
import { type Blame, ProviderError, type ProviderErrorKind } from '@tenon/provider'
import { kwokNodeClassKind } from '@tenon/provider-kwok'
import { aType, createPool, PoolCloud, waitingPod } from '../testing/pools.test-support.ts'
import { minutes, seconds, Stage } from '../testing/stage.test-support.ts'
import { aKwokPool } from '../world.ts'

const types = [aType('small', 1), aType('medium', 2), aType('large', 4), aType('huge', 8)]
const failing = 'default'

/** A pool of `nodeClass`, which launches nothing but what its pods ask for. */
function poolSpec(nodeClass: string, spec: Partial<NodePool['spec']> = {}): Partial<NodePool['spec']> {
  const { template } = aKwokPool().spec
  const { nodeClassRef } = template.spec
  return {
    disruption: { consolidateAfter: 'Never' },
    template: {
      ...template,
      spec: { ...template.spec, requirements: [], nodeClassRef: { ...nodeClassRef, name: nodeClass } },
    },
    ...spec,
  }
}

interface Ground {
  readonly stage: Stage
  readonly cloud: PoolCloud
  /** Claims that were created for the pool whose launches fail. */
  readonly claims: () => Promise<number>
}

/** A preferred pool whose launches fail, and another one that works. */
async function open(t: TestContext, fail: (claim: NodeClaim) => void, hasOther = true): Promise<Ground> {
  let stage: Stage | undefined
  const cloud = new PoolCloud(() => (stage as Stage).world.clock)
  cloud.instanceTypes = types
  cloud.onCreate = (claim) => {
    if (claim.metadata.labels?.[labels.nodePool] === failing) fail(claim)
  }
  stage = await Stage.open(t, { idle: true, provider: cloud, pool: poolSpec('default', { weight: 50 }) })
  const nodeClass = { apiVersion: 'karpenter.kwok.sh/v1alpha1', kind: 'KWOKNodeClass' }
  stage.world.create(kwokNodeClassKind, { ...nodeClass, metadata: { name: 'second' }, spec: {} })
  if (hasOther) createPool(stage, aKwokPool('second', poolSpec('second', { weight: 1 })))
  const opened = stage
  return {
    stage,
    cloud,
    claims: async () => await opened.metric('nodeclaims_created_total', { nodepool: failing }),
  }
}

const kinds: readonly ProviderErrorKind[] = [
  'nodeClaimNotFound',
  'insufficientCapacity',
  'nodeClassNotReady',
  'create',
  'unevaluatedNodePool',
  'throttled',
  'unauthorized',
  'other',
]
const blames: readonly Blame['what'][] = ['instanceType', 'nodeClass', 'nodePool', 'cloud']

const failures: readonly (readonly [string, () => Error])[] = [
  ...kinds.map((kind) => [kind, () => new ProviderError(kind, 'the cloud says no')] as const),
  ...blames.map(
    (what) =>
      [
        `insufficientCapacity for the ${what}`,
        () => new ProviderError('insufficientCapacity', 'the cloud says no', { blames: { what } }),
      ] as const,
  ),
  ...blames.map(
    (what) =>
      [
        `create for the ${what}`,
        () => new ProviderError('create', 'the cloud says no', { blames: { what }, reason: 'No' }),
      ] as const,
  ),
  [
    'insufficientCapacity of one offering',
    () =>
      new ProviderError('insufficientCapacity', 'the cloud says no', {
        offerings: [{ instanceType: 'small', zone: 'zone-1', capacityType: 'on-demand' }],
      }),
  ],
  ['an error that is not of the contract', () => new Error('the cloud says no')],
]

for (const [title, error] of failures) {
  test(`RPB-11 launches that fail with ${title} leave the pods to the other pool`, async (t) => {
    const { stage, claims } = await open(t, () => {
      throw error()
    })
    for (const name of ['a', 'b', 'c']) waitingPod(stage, name, { cpu: '7' })
    await stage.start()
    await stage.pass(50 * seconds)
    const { plans } = stage.operator.operator.state
    const served = new Set(
      stage.world
        .claims()
        .filter((claim) => (claim.status?.providerID ?? '') !== '')
        .map(({ metadata }) => metadata.name),
    )
    const places = stage.world.pods().map(({ metadata }) => plans.get(metadata.uid ?? '')?.target)
    assert.ok(
      places.every((place) => place?.kind === 'claim' && served.has(place.name)),
      JSON.stringify(places),
    )
    assert.ok((await claims()) <= 5, `${await claims()} NodeClaims`)
    const told = stage.events('LaunchFailed').filter(({ object }) => object === `NodePool/${failing}`)
    assert.ok(
      told.some(({ message }) => message.includes('the cloud says no')),
      'the pool is told',
    )
  })

  test(`RPB-11 launches that fail with ${title} are few when there is no other pool, and pods are told`, async (t) => {
    const { stage, claims } = await open(
      t,
      () => {
        throw error()
      },
      false,
    )
    waitingPod(stage, 'a', { cpu: '7' })
    await stage.start()
    await stage.pass(10 * minutes)
    assert.ok((await claims()) <= 5, `${await claims()} NodeClaims`)
    const told = stage.events('FailedScheduling').filter(({ object }) => object === 'Pod/a')
    assert.ok(
      told.some(({ message }) => message.includes('the cloud says no')),
      JSON.stringify(told.map(({ message }) => message)),
    )
  })
}
