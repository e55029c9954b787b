/** What the template of a NodePool makes of its claims, and labels and annotations that users set (api.md 2, 7). */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import {
  annotations,
  karpenterKinds,
  labels,
  type NodeClaim,
  type NodePool,
  type Requirement,
} from '@tenon/api'
import { minutes, seconds, Stage } from '../testing/stage.test-support.ts'
import {
  openDisruption,
  setBudget,
  setDrifted,
  tainted,
  eventMessages,
} from '../disruption/disruption-stage.test-support.ts'
import { aType, madeClaims, waitingPod } from '../testing/pools.test-support.ts'
import { aKwokPool } from '../world.ts'

type Template = NodePool['spec']['template']

/** A stage whose pool `default` has this template; its operator does not run yet. */
async function open(
  t: TestContext,
  spec: Partial<Template['spec']>,
  tags?: Readonly<Record<string, string>>,
): Promise<Stage> {
  const { template } = aKwokPool().spec
  const metadata = tags && { metadata: { labels: tags } }
  const pool = { template: { ...metadata, spec: { ...template.spec, ...spec } } }
  const stage = await Stage.open(t, { idle: true, pool })
  stage.cloud.instanceTypes = [aType('medium', 4, ['zone-1', 'zone-2'])]
  return stage
}

/** The claim that a pod without wishes gets. */
async function claimFor(stage: Stage): Promise<NodeClaim> {
  waitingPod(stage, 'pod')
  await stage.start()
  await stage.pass(5 * seconds)
  const [claim] = madeClaims(stage)
  assert.ok(claim !== undefined)
  return claim
}

test('API-91 a zone in the labels of a template is a requirement of its claims', async (t) => {
  const claim = await claimFor(await open(t, {}, { [labels.zone]: 'zone-2' }))
  const zones = claim.spec.requirements.filter(({ key }) => key === labels.zone)
  assert.deepEqual(zones, [{ key: labels.zone, operator: 'In', values: ['zone-2'] }])
})

test('API-97 a claim shows the grace period in full and the lifetime as it was written', async (t) => {
  const claim = await claimFor(await open(t, { terminationGracePeriod: '90s', expireAfter: '1440m' }))
  assert.deepEqual([claim.spec.terminationGracePeriod, claim.spec.expireAfter], ['1m30s', '1440m'])
})

const tier = 'example.com/tier'
for (const [requirement, expected] of [
  [{ key: tier, operator: 'Exists' }, /^\d+$/],
  [{ key: tier, operator: 'In', values: ['a'] }, /^a$/],
  [{ key: tier, operator: 'DoesNotExist' }, /^absent$/],
] as const satisfies readonly (readonly [Requirement, RegExp])[]) {
  test(`API-104 with ${tier} ${requirement.operator} claims carry ${expected.source}`, async (t) => {
    const claim = await claimFor(await open(t, { requirements: [requirement] }))
    assert.match(claim.metadata.labels?.[tier] ?? 'absent', expected)
  })
}

test('API-92 pods with affinity by the older name of the zone share a zone', async (t) => {
  const stage = await open(t, {})
  const older = 'failure-domain.beta.kubernetes.io/zone'
  const term = { topologyKey: older, labelSelector: { matchLabels: { app: 'web' } } }
  const podAffinity = { requiredDuringSchedulingIgnoredDuringExecution: [term] }
  const together = { labels: { app: 'web' }, cpu: '3', spec: { affinity: { podAffinity } } }
  for (const name of ['a', 'b']) waitingPod(stage, name, together)
  await stage.start()
  await stage.pass(5 * seconds)
  const zones = madeClaims(stage).map(
    ({ spec }) => spec.requirements.find(({ key }) => key === labels.zone)?.values,
  )
  assert.equal(zones.length, 2)
  assert.equal(zones[0]?.length, 1)
  assert.deepEqual(zones[0], zones[1])
  assert.ok(!madeClaims(stage).some(({ spec }) => spec.requirements.some(({ key }) => key === older)))
})

test('API-93 a claim without the label of its node class gets it, and so does its Node', async (t) => {
  const key = 'karpenter.kwok.sh/kwoknodeclass'
  const stage = await Stage.open(t, { idle: true })
  const { metadata, ...rest } = stage.aClaim('a')
  const { [key]: _, ...others } = metadata.labels ?? {}
  stage.world.create(karpenterKinds.nodeClaim, { ...rest, metadata: { ...metadata, labels: others } })
  await stage.start()
  await stage.join('a')
  await stage.report('node-a')
  assert.equal(stage.claimNow('a')?.metadata.labels?.[key], 'default')
  assert.equal(stage.nodeNow('node-a')?.metadata.labels?.[key], 'default')
})

const guarded = (value: string) => ({ annotations: { [annotations.doNotDisrupt]: value } })

for (const [text, ageMinutes, isProtected] of [
  ['started 5 minutes ago', 5, true],
  ['started 11 minutes ago', 11, false],
  ['not started', undefined, true],
] as const) {
  test(`API-94 a pod with do-not-disrupt 10m that ${text} is ${isProtected ? '' : 'not '}protected`, async (t) => {
    const stage = await openDisruption(t, {
      disruption: { consolidateAfter: 'Never', budgets: [{ nodes: '0' }] },
    })
    await stage.ready('a')
    const startTime =
      ageMinutes === undefined ? undefined : new Date(stage.now - ageMinutes * minutes).toISOString()
    await stage.pod('p', 'node-a', { ...guarded('10m'), status: { startTime: startTime ?? (null as never) } })
    setDrifted(stage, 'a')
    setBudget(stage, '100%')
    await stage.pass(90 * seconds)
    assert.deepEqual(tainted(stage), isProtected ? [] : ['a'])
  })
}

test('API-94 values of do-not-disrupt that mean nothing protect nothing, and are told', async (t) => {
  const stage = await openDisruption(t, {
    disruption: { consolidateAfter: 'Never', budgets: [{ nodes: '0' }] },
  })
  const values = ['false', '0s', '-5m', 'abc']
  for (const [index, value] of values.entries()) {
    await stage.ready(`n${index}`)
    const ownerReferences = [await stage.daemonSet(`agent-${index}`)]
    await stage.pod(`p${index}`, `node-n${index}`, { ...guarded(value), ownerReferences })
  }
  setDrifted(stage, 'n0', 'n1', 'n2', 'n3')
  setBudget(stage, '100%')
  await stage.pass(2 * minutes)
  assert.deepEqual(
    stage.world
      .claims()
      .filter(
        (claim) => claim.metadata.deletionTimestamp === undefined && claim.metadata.name.startsWith('n'),
      ),
    [],
  )
  for (const [index, value] of values.entries()) {
    const [message = ''] = eventMessages(stage, 'InvalidDoNotDisruptAnnotation', `Pod/p${index}`)
    assert.ok(message.includes(`"${value}"`), message)
  }
})
