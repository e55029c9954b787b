/** Pods of one scale-up on the nodes they were planned for: the devcluster's scheduler places them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { HttpRequest } from '@tenon/runtime'
import { aDeployment, deploymentKind } from '../world.ts'
import { AutoscalerWorld, type WorldPool } from './autoscaler-world.ts'

const minute = 60_000
/** Nodes of 4 CPUs. */
const workers: WorldPool = {
  name: 'workers',
  kind: 'nodepool',
  type: 'standard.large',
  size: 1,
  min: 1,
  max: 30,
}

interface Outcome {
  readonly members: number
  readonly pending: number
  /** Requests that change the status of a pod. */
  readonly nominations: number
}

/** Twelve large pods, and twelve small ones that fit beside them. */
async function grown(seed: number, flags: readonly string[]): Promise<Outcome> {
  const writes: HttpRequest[] = []
  const world = await AutoscalerWorld.start({
    seed,
    pools: [workers],
    flags,
    ports: {
      api: (inner) => ({
        send: async (request, signal) => {
          if (request.method !== 'GET' && /\/pods\/[^/]+\/status$/.test(request.path)) writes.push(request)
          return await inner.send(request, signal)
        },
      }),
    },
  })
  const autoscaler = world.startAutoscaler()
  await world.clock.advance(30_000)
  world.create(deploymentKind, aDeployment('small', 12, { cpu: '800m', memory: '500Mi' }))
  world.create(deploymentKind, aDeployment('large', 12, { cpu: '2900m', memory: '4Gi' }))
  await world.clock.advance(8 * minute)
  const outcome = {
    members: world.members('workers').length,
    pending: world.pending().length,
    nominations: writes.length,
  }
  assert.equal(autoscaler.failure(), undefined)
  await autoscaler.end()
  await world.stop()
  return outcome
}

test('--planned-placement: large and small pods share the nodes that were asked for', async () => {
  for (const seed of [1, 2, 3]) {
    const free = await grown(seed, [])
    const planned = await grown(seed, ['--planned-placement'])
    assert.equal(free.nominations, 0)
    assert.ok(planned.nominations > 0)
    assert.deepEqual([free.pending, planned.pending], [0, 0])
    // A node for each large pod, beside the one that was there and takes small ones first.
    assert.equal(planned.members, 13)
    assert.ok(free.members > 13, `${free.members} without it: nothing is shown`)
  }
})
