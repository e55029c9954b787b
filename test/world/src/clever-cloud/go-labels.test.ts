/** NodePools and pods that were written for the labels of the Go provider (reports-2.md 10). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { conditionOf, type Requirement } from '@tenon/api'
import { aPool, CleverStage, minutes, plenty, seconds } from './stage.test-support.ts'

const key = 'karpenter.clever-cloud.com/instance-memory'
const all = ['2XS', 'XS', 'S', 'M', 'L', 'XL']
const memory = (operator: Requirement['operator'], ...values: readonly string[]) => ({
  key,
  operator,
  values,
})

const cases: readonly (readonly [requirement: Requirement, flavor: string, label: string])[] = [
  [memory('In', '15988992'), 'M', '15988992'],
  [memory('In', '15229256'), 'M', '15229256'],
  [memory('In', '11957148', '15988992'), 'S', '11957148'],
  [memory('In', '3911884'), '2XS', '3911884'],
  [memory('In', '7937580'), 'XS', '7937580'],
  [memory('In', '23983488'), 'L', '23983488'],
  [memory('In', '31977984'), 'XL', '31977984'],
  [memory('Gt', '15500000'), 'M', '15988992'],
  [memory('Gt', '7600000'), 'XS', '7937580'],
]

for (const [requirement, flavor, label] of cases)
  test(`RPB-28 a NodePool of ${requirement.operator} ${requirement.values?.join()} gets a node of ${flavor} that is not drifted`, async (t) => {
    const pool = aPool(all, { disruption: { consolidateAfter: 'Never' } })
    const { spec } = pool.spec.template
    const stage = await CleverStage.open(t, {
      pool: {
        ...pool,
        spec: {
          ...pool.spec,
          template: { spec: { ...spec, requirements: [...spec.requirements, requirement] } },
        },
      },
      cleverCloud: { settings: { quota: plenty } },
    })
    stage.deploy('web', 1, { cpu: '1', memory: '1Gi' })
    assert.ok(await stage.until(() => stage.allRun(1), 5 * minutes))
    assert.deepEqual(stage.flavors(), [flavor])
    const name = `${stage.world.claims()[0]?.metadata.name}-node0`
    assert.equal(stage.nodes().find(({ metadata }) => metadata.name === name)?.metadata.labels?.[key], label)
    await stage.pass(10 * minutes + 10 * seconds)
    assert.notEqual(conditionOf(stage.world.claims()[0] ?? assert.fail(), 'Drifted')?.status, 'True')
  })
