import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { conditionOf, karpenterKinds, kinds, labels, type NodePool, type Requirement } from '@tenon/api'
import { kwokNodeClassKind } from '@tenon/provider-kwok'
import { hours, minutes, seconds, Stage } from '../testing/stage.test-support.ts'
import { createPool, madeClaims, waitingPod } from '../testing/pools.test-support.ts'
import { joinAll, openStatic, resize, stayingNames } from '../static-capacity/static-stage.test-support.ts'
import { aKwokPool } from '../world.ts'
import {
  left,
  openDisruption,
  setDisruption,
  setDrifted,
  tainted,
  eventMessages,
} from './disruption-stage.test-support.ts'

const os: Requirement = { key: labels.os, operator: 'In', values: ['linux'] }
const isTeam = (operator: Requirement['operator'], ...values: readonly string[]): Requirement => ({
  key: 'team',
  operator,
  ...(values.length > 0 && { values }),
})

/** Gives the template of pool `default` the label `team=a` and these requirements. */
async function contradict(stage: Stage, ...requirements: readonly Requirement[]): Promise<void> {
  const template = { metadata: { labels: { team: 'a' } }, spec: { requirements: [os, ...requirements] } }
  stage.patch(karpenterKinds.nodePool, 'default', { spec: { template } })
  await stage.pass(10)
}

function readiness(pool: NodePool | undefined): readonly (string | undefined)[] {
  return ['ValidationSucceeded', 'Ready'].map((type) => pool && conditionOf(pool, type)?.status)
}

function another(name: string, spec: Partial<NodePool['spec']> = {}): NodePool {
  return aKwokPool(name, { disruption: { consolidateAfter: 'Never' }, weight: 1, ...spec })
}

const contradictions: readonly (readonly Requirement[])[] = [
  [isTeam('In', 'b')],
  [isTeam('NotIn', 'a')],
  [isTeam('DoesNotExist')],
  [isTeam('Gt', '5'), isTeam('Lt', '6')],
  [{ ...isTeam('Exists'), minValues: 2 }],
]

for (const requirements of contradictions) {
  test(`RPT-22 a pool with label team=a and ${JSON.stringify(requirements)} takes no part, the others go on`, async (t) => {
    const stage = await openDisruption(t, { disruption: { consolidateAfter: '0s' } })
    setDrifted(stage, 'old')
    setDisruption(stage, { budgets: [{ nodes: '0' }] })
    await stage.ready('old', { expireAfter: '1h' })
    await stage.ready('empty', { expireAfter: '1h' })
    await stage.pod('p', 'node-old')
    await contradict(stage, ...requirements)
    setDisruption(stage, { budgets: [{ nodes: '100%' }] })
    waitingPod(stage, 'alone', { spec: { nodeSelector: { team: 'a' } } })
    await stage.pass(2 * hours)
    assert.deepEqual(readiness(stage.poolNow()), ['False', 'False'])
    assert.deepEqual(left(stage), ['empty', 'old'])
    assert.deepEqual(tainted(stage), [])
    assert.equal(
      stage.world.pods().some(({ metadata }) => metadata.name === 'p'),
      true,
    )
    assert.match(
      eventMessages(stage, 'FailedScheduling', 'Pod/alone')[0] ?? '',
      /NodePool default is ignored.*team/,
    )
    assert.match(
      eventMessages(stage, 'DisruptionBlocked', 'Node/node-old').join('\n'),
      /NodePool is not valid/,
    )

    createPool(stage, another('second'))
    waitingPod(stage, 'anywhere', { spec: { nodeSelector: { [labels.nodePool]: 'second' } } })
    await stage.pass(10 * seconds)
    assert.deepEqual(
      madeClaims(stage).map(({ metadata }) => metadata.labels?.[labels.nodePool]),
      ['second'],
    )
  })
}

test('RPT-22 a pool that is fixed takes part again', async (t) => {
  const stage = await openDisruption(t)
  await contradict(stage, isTeam('In', 'b'))
  waitingPod(stage, 'p', { spec: { nodeSelector: { team: 'a' } } })
  await stage.pass(minutes)
  assert.deepEqual(madeClaims(stage), [])
  await contradict(stage, isTeam('In', 'a', 'b'))
  await stage.pass(30 * seconds)
  assert.deepEqual(readiness(stage.poolNow()), ['True', 'True'])
  assert.equal(madeClaims(stage).length, 1)
})

test('RPT-22 a static pool whose template contradicts itself keeps what it has, and makes nothing', async (t) => {
  const stage = await openStatic(t, 2)
  const before = await joinAll(stage)
  stage.cloud.onIsDrifted = () => 'ImageChanged'
  await contradict(stage, isTeam('In', 'b'))
  await resize(stage, 4)
  await stage.pass(hours)
  assert.deepEqual(stayingNames(stage), before)
  await resize(stage, 1)
  await stage.pass(hours)
  assert.deepEqual(stayingNames(stage), before)
  assert.deepEqual(tainted(stage), [])
})

test('RPT-23 pods fall back to the next pool when the first one has a name of 64 characters', async (t) => {
  const stage = await openDisruption(t)
  const long = 'p'.repeat(64)
  createPool(stage, another(long, { weight: 50 }))
  const taints = [{ key: 'only', value: 'here', effect: 'NoSchedule' as const }]
  const tainted64 = another('t'.repeat(64))
  const { template } = tainted64.spec
  createPool(stage, {
    ...tainted64,
    spec: {
      ...tainted64.spec,
      template: { metadata: { labels: { only: 'here' } }, spec: { ...template.spec, taints } },
    },
  })
  waitingPod(stage, 'anywhere')
  waitingPod(stage, 'only', {
    spec: { nodeSelector: { only: 'here' }, tolerations: [{ key: 'only', operator: 'Exists' }] },
  })
  await stage.pass(minutes)
  assert.deepEqual(
    madeClaims(stage).map(({ metadata }) => metadata.labels?.[labels.nodePool]),
    ['default'],
  )
  assert.deepEqual(readiness(stage.poolNow(long)), ['False', 'False'])
  const message = stage.poolNow(long)?.status?.conditions?.find(({ type }) => type === 'ValidationSucceeded')
  assert.match(message?.message ?? '', /metadata\.name: .*at most 63 characters/)
  const [text = ''] = eventMessages(stage, 'FailedScheduling', 'Pod/only')
  assert.match(text, /NodePool t{64} is ignored because it is invalid: metadata\.name/)
  assert.doesNotMatch(text, /NodePool p{64} is ignored/)
})

test('RPT-23 a pool whose node class has a name of 64 characters takes no part, one of 63 does', async (t) => {
  const stage = await openDisruption(t)
  const classes = ['c'.repeat(64), 'd'.repeat(63)]
  for (const name of classes)
    stage.world.create(kwokNodeClassKind, {
      apiVersion: 'karpenter.kwok.sh/v1alpha1',
      kind: 'KWOKNodeClass',
      metadata: { name },
      spec: {},
    })
  const pools = classes.map((name, i) => {
    const pool = another(`pool-${i}`, { weight: 50 - i })
    const { template } = pool.spec
    const nodeClassRef = { ...template.spec.nodeClassRef, name }
    return { ...pool, spec: { ...pool.spec, template: { spec: { ...template.spec, nodeClassRef } } } }
  })
  for (const pool of pools) createPool(stage, pool)
  await stage.pass(seconds)
  waitingPod(stage, 'p')
  await stage.pass(minutes)
  assert.deepEqual(
    madeClaims(stage).map(({ metadata }) => metadata.labels?.[labels.nodePool]),
    ['pool-1'],
  )
})

test('RPT-23 a claim by hand with a name of 64 characters is not launched and told, one of 63 is', async (t: TestContext) => {
  const stage = await Stage.open(t)
  const long = 'c'.repeat(64)
  await stage.claim(long)
  await stage.claim('d'.repeat(63))
  await stage.pass(30 * seconds)
  const launched = (name: string) => {
    const claim = stage.claimNow(name)
    const condition = claim && conditionOf(claim, 'Launched')
    return `${condition?.status}/${condition?.reason}`
  }
  assert.equal(launched(long), 'Unknown/InvalidName')
  assert.equal(launched('d'.repeat(63)), 'True/Launched')
  assert.match(eventMessages(stage, 'InvalidName', `NodeClaim/${long}`)[0] ?? '', /at most 63 characters/)
})

test('RPT-23 claims of a pool with a name of 63 characters have names that label values can be', async (t) => {
  const stage = await openDisruption(t)
  createPool(stage, another('p'.repeat(63), { weight: 50 }))
  waitingPod(stage, 'p')
  await stage.pass(minutes)
  assert.deepEqual(
    madeClaims(stage).map(({ metadata }) => [metadata.name.length <= 63, metadata.name.startsWith('ppp')]),
    [[true, true]],
  )
  assert.equal(stage.world.cluster.server.local.list(kinds.node).length, 0)
})
