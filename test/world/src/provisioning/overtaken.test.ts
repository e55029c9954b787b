/** Decisions that cannot be carried out any more are made again, and are no errors. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { karpenterKinds, type PodSpec } from '@tenon/api'
import type { Clock, Transport } from '@tenon/runtime'
import { seconds, Stage } from '../testing/stage.test-support.ts'
import { aType, createPool, madeClaims, waitingPod } from '../testing/pools.test-support.ts'
import { aKwokPool } from '../world.ts'

/** As many claims as are created at once; others wait for their turn. */
const atOnce = 20
const alone: Partial<PodSpec> = {
  affinity: {
    podAntiAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: [
        { labelSelector: { matchLabels: { app: 'alone' } }, topologyKey: 'kubernetes.io/hostname' },
      ],
    },
  },
}

/** A NodeClaim takes three seconds to be created. */
class SlowCreations {
  clock: Clock | undefined
  begun = 0

  readonly wrap = (inner: Transport): Transport => ({
    send: async (request, signal) => {
      if (request.method === 'POST' && request.path.endsWith('/nodeclaims')) {
        this.begun++
        await this.clock?.sleep(3 * seconds)
      }
      return await inner.send(request, signal)
    },
  })
}

test('a NodePool that goes while its claims are created: the pods left over are decided about again, without an error', async (t) => {
  const creations = new SlowCreations()
  const stage = await Stage.open(t, { apiPath: creations.wrap })
  stage.cloud.instanceTypes = [aType('medium', 4)]
  const { clock } = stage.world
  creations.clock = clock
  for (let at = 0; at <= atOnce; at++)
    waitingPod(stage, `pod-${at}`, { labels: { app: 'alone' }, spec: alone })
  await clock.advanceUntil(() => creations.begun === atOnce, 30 * seconds)
  stage.delete(karpenterKinds.nodePool, 'default')
  await stage.pass(5 * seconds)
  assert.equal(creations.begun, atOnce, 'the last claim is not created')
  const { registry } = stage.operator.operator.metrics
  const reconciles = await registry.getSingleMetric('controller_runtime_reconcile_total')?.get()
  const passes = (result: string) =>
    reconciles?.values.find(
      ({ labels }) => labels['controller'] === 'provisioner' && labels['result'] === result,
    )?.value
  assert.deepEqual([passes('error'), passes('requeue')], [0, 1])
  createPool(stage, aKwokPool('another'))
  await stage.pass(60 * seconds)
  assert.ok(madeClaims(stage).some(({ metadata }) => metadata.generateName === 'another-'))
})
