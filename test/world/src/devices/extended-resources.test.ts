/** Nodes for pods that request an extended resource which devices serve (devices.md 3.22). */
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { annotations, kinds, labels } from '@tenon/api'
import { aType, madeClaims, waitingPod } from '../testing/pools.test-support.ts'
import { minutes, seconds, Stage } from '../testing/stage.test-support.ts'
import { createClass, driver, gpuType, publish } from './device-stage.test-support.ts'

const resource = 'example.com/gpu'

async function openStage(t: TestContext, gitVersion = 'v1.36.0'): Promise<Stage> {
  const stage = await Stage.open(t, { settings: { ignoreDraRequests: false }, cluster: { gitVersion } })
  stage.cloud.instanceTypes = [aType('medium', 4), gpuType('with-gpu', 8, 1)]
  stage.cloud.extras = {
    labels: {
      [labels.os]: 'linux',
      [labels.instanceType]: 'with-gpu',
      [labels.zone]: 'zone-1',
      [labels.capacityType]: 'on-demand',
    },
  }
  return stage
}

/** A pod without a node that requests one of the resource. */
function asking(stage: Stage, name: string, requested = resource): void {
  const requests = { cpu: '1', [requested]: '1' }
  const resources = { requests, limits: { [requested]: '1' } }
  waitingPod(stage, name, {
    spec: { containers: [{ name: 'app', image: 'registry.k8s.io/pause', resources }] },
  })
}

describe('nodes for extended resources that devices serve', () => {
  test('VER-10 VER-17 a node is launched, which waits for its driver and not for the resource', async (t) => {
    const stage = await openStage(t)
    createClass(stage, resource)
    asking(stage, 'asking')
    await stage.pass(30 * seconds)
    const [made] = madeClaims(stage)
    assert.equal(madeClaims(stage).length, 1)
    assert.equal(made?.metadata.annotations?.[annotations.requestedDraDrivers], driver)
    assert.equal(Object.hasOwn(made.spec.resources?.requests ?? {}, resource), false)
    const { name } = made.metadata
    await stage.join(name)
    await stage.report(`node-${name}`)
    assert.equal(stage.state(name, 'Initialized'), 'Unknown/DRADriverPoolsNotPublished')
    publish(stage, `node-${name}`, [{ name: 'gpu-0' }])
    await stage.pass(5 * seconds)
    assert.equal(stage.state(name, 'Initialized'), 'True/Initialized')
    assert.equal(madeClaims(stage).length, 1)
  })

  test('VER-12 the implicit name of a class is served, but not by a server of 1.34', async (t) => {
    const implicit = 'deviceclass.resource.kubernetes.io/gpu'
    for (const [gitVersion, launched] of [
      ['v1.36.0', 1],
      ['v1.34.1', 0],
    ] as const) {
      const stage = await openStage(t, gitVersion)
      createClass(stage)
      asking(stage, 'asking', implicit)
      await stage.pass(30 * seconds)
      assert.equal(madeClaims(stage).length, launched, gitVersion)
    }
  })

  test('VER-20 without its class no node is launched, and the reason names it; re-created, it is served', async (t) => {
    const stage = await openStage(t)
    createClass(stage, resource)
    await stage.pass(seconds)
    stage.world.cluster.server.local.delete(kinds.deviceClass, undefined, 'gpu')
    asking(stage, 'asking')
    await stage.pass(minutes)
    assert.deepEqual(madeClaims(stage), [])
    assert.match(stage.events('FailedScheduling')[0]?.message ?? '', /example\.com\/gpu/)
    createClass(stage, resource)
    await stage.pass(15 * seconds)
    assert.equal(madeClaims(stage).length, 1)
  })
})
