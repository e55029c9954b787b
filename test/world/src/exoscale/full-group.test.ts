/** Node classes whose anti-affinity group has no room for another instance. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { karpenterKinds, kinds, labels } from '@tenon/api'
import { aDeployment, deploymentKind, World } from '../world.ts'
import { aNodeClass, aPool, nodeClassKind } from './manifests.test-support.ts'

const minute = 60_000
const group = '0b9c1f3e-52a4-4d0e-8d5b-6a7f0c1d2e3f'
const spread = { antiAffinityGroupSelectorTerms: [{ name: 'full' }] }

test('RPB-12 with a full anti-affinity group on the weighted pool pods run from the other one, until a member leaves', async (t) => {
  const world = await World.start({ seed: 3, provider: 'exoscale' })
  const { cloud } = world.cluster
  cloud.add({ antiAffinityGroups: [{ id: group, name: 'full' }] })
  cloud.add({
    instancePools: [{ name: 'others', type: 'standard.small', size: 8, antiAffinityGroupIds: [group] }],
  })
  world.create(nodeClassKind, aNodeClass('spread', spread))
  world.create(nodeClassKind, aNodeClass('plain'))
  world.create(
    karpenterKinds.nodePool,
    aPool('spread', ['standard.small', 'standard.medium'], { weight: 50 }),
  )
  world.create(karpenterKinds.nodePool, aPool('plain', ['standard.small', 'standard.medium']))
  const running = await world.startOperator()
  t.after(async () => {
    await world.bury(running)
    await world.stop()
  })
  const { local } = world.cluster.server
  const poolsOfNodes = () => local.list(kinds.node).map(({ metadata }) => metadata.labels?.[labels.nodePool])
  world.create(deploymentKind, aDeployment('web', 1))
  await world.clock.advance(minute)
  const claims = () => world.claims().map(({ metadata }) => metadata.labels?.[labels.nodePool])
  assert.deepEqual(claims(), ['plain'])
  await world.clock.advance(20 * minute)
  assert.deepEqual(poolsOfNodes(), ['plain'])
  const created = async () => {
    const metric = running.operator.metrics.registry.getSingleMetric('karpenter_nodeclaims_created_total')
    const { values } = (await metric?.get()) ?? { values: [] }
    return values
      .filter((each) => each.labels.nodepool === 'spread')
      .reduce((sum, each) => sum + each.value, 0)
  }
  assert.ok((await created()) <= 3, `${await created()} NodeClaims of the pool whose group is full`)
  const member = cloud.instances().find(({ name }) => name.startsWith('pool'))
  cloud.interventions.deleteInstance(member?.id ?? '')
  await world.clock.advance(minute)
  local.setScale(deploymentKind, 'default', 'web', 40)
  await world.clock.advance(5 * minute)
  assert.ok(poolsOfNodes().includes('spread'), 'the group has room again')
})
