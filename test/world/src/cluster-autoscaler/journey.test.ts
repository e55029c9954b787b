import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kinds } from '@tenon/api'
import { aDeployment, deploymentKind } from '../world.ts'
import { AutoscalerWorld, type WorldPool } from './autoscaler-world.ts'

const minute = 60_000
const workers: WorldPool = {
  name: 'workers',
  kind: 'nodepool',
  type: 'standard.large',
  size: 1,
  min: 1,
  max: 30,
}
const stock = ['--stderrthreshold=info', '--cordon-node-before-terminating']

for (const pool of [workers, { ...workers, name: 'batch', kind: 'instancePool' as const }]) {
  test(`must-hold 2: 60 pods grow ${pool.kind} ${pool.name}, and it shrinks to its minimum when they are gone`, async () => {
    const world = await AutoscalerWorld.start({ seed: 1, pools: [pool], flags: stock })
    const autoscaler = world.startAutoscaler()
    await world.clock.advance(30_000)
    world.create(deploymentKind, aDeployment('web', 60, { cpu: '500m', memory: '512Mi' }))
    await world.clock.advance(5 * minute)
    assert.deepEqual(world.pending().length, 0)
    const grown = world.members(pool.name).length
    assert.ok(grown >= 9 && grown <= 12, `${grown} members`)
    world.cluster.server.local.patch(deploymentKind, 'default', 'web', { spec: { replicas: 0 } })
    await world.clock.advance(30 * minute)
    assert.equal(world.members(pool.name).length, 1)
    assert.equal(world.nodes().length, 1)
    assert.equal(autoscaler.failure(), undefined)
    assert.ok(world.cluster.cloud.calls().every(({ status }) => status !== 403))
    assert.ok(world.cluster.server.local.get(kinds.configMap, 'kube-system', 'cluster-autoscaler-status'))
    await autoscaler.end()
    assert.equal(
      world.cluster.server.local.get(kinds.configMap, 'kube-system', 'cluster-autoscaler-status'),
      undefined,
    )
    await world.stop()
  })
}
