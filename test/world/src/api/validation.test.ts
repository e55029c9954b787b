/** NodePools that the API admits and a controller finds fault with (api.md 3.6). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Condition, conditionOf, type NodePool, type Requirement } from '@tenon/api'
import { seconds, Stage } from '../testing/stage.test-support.ts'
import { createPool, madeClaims, waitingPod } from '../testing/pools.test-support.ts'
import { aKwokPool } from '../world.ts'

type Template = NodePool['spec']['template']

function aPool(
  name: string,
  spec: Partial<Template['spec']>,
  labels?: Readonly<Record<string, string>>,
): NodePool {
  const { template } = aKwokPool().spec
  const metadata = labels && { metadata: { labels } }
  return aKwokPool(name, { template: { ...metadata, spec: { ...template.spec, ...spec } } })
}

const requiring = (name: string, ...requirements: readonly Requirement[]) => aPool(name, { requirements })
const capacityTypes = (values: readonly string[], minValues?: number): Requirement => ({
  key: 'karpenter.sh/capacity-type',
  operator: 'In',
  values,
  ...(minValues !== undefined && { minValues }),
})
const isIn = (key: string, ...values: readonly string[]): Requirement => ({ key, operator: 'In', values })
const noSchedule = (key: string) => ({ key, effect: 'NoSchedule' }) as const

const refused: readonly (readonly [pool: NodePool, message: RegExp])[] = [
  [aPool('api-13-key', { taints: [noSchedule(`${'a'.repeat(254)}.com/x`)] }), /taints\[0\]\.key/],
  [
    aPool('api-16-twice', { taints: [noSchedule('a')], startupTaints: [noSchedule('a')] }),
    /startupTaints\[0\]: taint a:NoSchedule appears twice/,
  ],
  [requiring('api-18-key', isIn(`test.com/${'a'.repeat(64)}`, 'x')), /requirements\[0\]/],
  [aPool('api-26-label', {}, { 'spaces are not allowed': 'x' }), /labels\["spaces are not allowed"\]/],
  [requiring('api-37-unknown', capacityTypes(['bogus'])), /capacity-type/],
  [requiring('api-37-min', capacityTypes(['spot', 'bogus'], 2)), /capacity-type/],
  [requiring('api-38-long', isIn('example.com/a', 'a'.repeat(64))), /at most 63 characters/],
  [requiring('api-38-letters', isIn('example.com/a', 'not a value!')), /not a value!/],
]

const accepted: readonly NodePool[] = [
  aPool('api-15', { taints: [noSchedule('a'), { key: 'a', effect: 'NoExecute' }] }),
  requiring('api-37', capacityTypes(['spot', 'bogus'])),
  requiring('api-25', isIn('example.com/a', 'test', 'foo'), {
    key: 'example.com/a',
    operator: 'NotIn',
    values: ['test', 'bar'],
  }),
  aPool('api-91', {}, { 'topology.kubernetes.io/zone': 'zone-1' }),
  aPool('trap-4', {}, { 'kubernetes.io/x': 'y', 'node-restriction.kubernetes.io/x': '' }),
]

const stateOf = (stage: Stage, name: string): Condition | undefined => {
  const pool = stage.poolNow(name)
  return pool && conditionOf(pool, 'ValidationSucceeded')
}

test('API-13 API-16 API-18 API-26 API-37 API-38 pools that are admitted and cannot be used say why', async (t) => {
  const stage = await Stage.open(t)
  for (const [pool] of refused) createPool(stage, pool)
  await stage.pass(2 * seconds)
  for (const [{ metadata }, message] of refused) {
    const state = stateOf(stage, metadata.name)
    assert.deepEqual([state?.status, state?.reason], ['False', 'NodePoolValidationFailed'], metadata.name)
    assert.match(state?.message ?? '', message)
    const pool = stage.poolNow(metadata.name)
    assert.equal(pool && conditionOf(pool, 'Ready')?.status, 'False')
  }
})

test('API-15 API-25 API-37 API-91 pools that may look wrong and are valid', async (t) => {
  const stage = await Stage.open(t)
  for (const pool of accepted) createPool(stage, pool)
  await stage.pass(2 * seconds)
  for (const { metadata } of accepted)
    assert.equal(stateOf(stage, metadata.name)?.status, 'True', stateOf(stage, metadata.name)?.message)
})

test('a pool that is not valid launches nothing', async (t) => {
  const stage = await Stage.open(t, { pool: { weight: 1 } })
  const heavy = requiring('heavy', capacityTypes(['bogus']))
  createPool(stage, { ...heavy, spec: { ...heavy.spec, weight: 100 } })
  await stage.pass(2 * seconds)
  waitingPod(stage, 'pod')
  await stage.pass(10 * seconds)
  assert.deepEqual(
    madeClaims(stage).filter(({ metadata }) => metadata.labels?.['karpenter.sh/nodepool'] === 'heavy'),
    [],
  )
})
