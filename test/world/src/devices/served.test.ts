/** Whether pods with claims get nodes is up to the cluster, unless an option forbids it (buffers-and-dra.md 1). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { labels } from '@tenon/api'
import { aType, madeClaims, objectsWithEvent, waitingPod } from '../testing/pools.test-support.ts'
import { minutes, intercepting, seconds, Stage } from '../testing/stage.test-support.ts'
import { createClaim, createClass, gpuType, using } from './device-stage.test-support.ts'

for (const refusal of ['notFound', 'forbidden'] as const)
  test(`BUF-37 pods with claims get no nodes while devices are ${refusal}, and hold nothing up`, async (t) => {
    let isRefused = true
    const stage = await Stage.open(t, {
      idle: true,
      settings: { ignoreDraRequests: false },
      apiPath: intercepting((method, path) =>
        isRefused && method === 'GET' && path.includes('/resource.k8s.io/') ? refusal : 'pass',
      ),
    })
    stage.cloud.instanceTypes = [aType('medium', 4), gpuType('with-gpu', 8, 1)]
    stage.cloud.extras = {
      labels: {
        [labels.os]: 'linux',
        [labels.instanceType]: 'with-gpu',
        [labels.zone]: 'zone-1',
        [labels.capacityType]: 'on-demand',
      },
    }
    createClass(stage)
    createClaim(stage, 'one')
    waitingPod(stage, 'claiming', { spec: using('one') })
    waitingPod(stage, 'plain', { cpu: '3' })
    await stage.start()
    await stage.pass(30 * seconds)
    assert.equal(madeClaims(stage).length, 1)
    assert.deepEqual(objectsWithEvent(stage, 'FailedScheduling'), ['Pod/claiming'])
    isRefused = false
    await stage.pass(minutes)
    assert.equal(madeClaims(stage).length, 2)
  })
