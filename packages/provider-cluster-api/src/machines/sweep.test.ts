/** Machines that no NodeClaim needs (cluster-api.md trap 7). */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { karpenterKinds, kinds } from '@tenon/api'
import { KubeError } from '@tenon/kube'
import { ownNames } from '../names.ts'
import { hubKinds, Stage } from '../testing/fake-hub.test-support.ts'

const minute = 60_000

function swept(stage: Stage): AbortController {
  const end = new AbortController()
  stage.provider.startControllers(end.signal)
  return end
}

const forgotten = async (stage: Stage, name: string) => {
  await stage.kube.delete(karpenterKinds.nodeClaim, { name })
}

describe('the sweep of Machines', () => {
  test('CAP-87 a claim that dies before its Machine has a provider ID: the Machine goes, and its replica', async () => {
    const stage = new Stage()
    stage.add()
    stage.delays.providerMs = 600_000
    await stage.settled(stage.provider.create(stage.claim('a')).catch(() => undefined))
    assert.equal(stage.replicas(), 1)
    await forgotten(stage, 'a')
    const end = swept(stage)
    await stage.clock.advance(2 * minute)
    assert.equal(stage.replicas(), 1, 'not at once')
    await stage.clock.advance(3 * minute)
    assert.equal(stage.replicas(), 0)
    assert.deepEqual(stage.machines(), [])
    end.abort()
  })

  test('ADO-15 a node whose claim is lost is announced for ten minutes before its Machine goes', async () => {
    const stage = new Stage()
    stage.add()
    await stage.launch('a')
    await stage.clock.advance(5 * minute)
    const [name = ''] = stage.boundTo('a')
    const machine = { namespace: 'default', name }
    await stage.kube.patch(hubKinds.machine, machine, { status: { nodeRef: { name: 'node-a' } } })
    await forgotten(stage, 'a')
    const end = swept(stage)
    await stage.clock.advance(11 * minute)
    assert.equal(stage.replicas(), 1)
    await stage.clock.advance(4 * minute)
    assert.equal(stage.replicas(), 0)
    end.abort()
  })

  test('a Machine whose claim exists stays, also while the claims cannot be listed, or the list lacks it', async () => {
    const stage = new Stage()
    stage.add()
    await stage.launch('a')
    const list = stage.kube.list.bind(stage.kube)
    let lie: 'none' | 'error' | 'empty' = 'error'
    stage.kube.list = async (type, options) => {
      if (type.plural === 'nodeclaims' && lie === 'error') throw new KubeError('server', 500, 'out of order')
      if (type.plural === 'nodeclaims' && lie === 'empty') return []
      return await list(type, options)
    }
    const end = swept(stage)
    await stage.clock.advance(20 * minute)
    lie = 'empty'
    await stage.clock.advance(20 * minute)
    assert.equal(stage.replicas(), 1)
    assert.equal(stage.boundTo('a').length, 1)
    end.abort()
  })

  test('Machines made for claims that gave up are given back; what was there before, or may run pods, stays', async () => {
    const stage = new Stage()
    stage.add({ spec: { replicas: 1 } })
    await stage.clock.advance(5000)
    stage.barren.add('md-0')
    const claims = ['a', 'b', 'c', 'd'].map((name) => stage.claim(name))
    await stage.settled(
      Promise.all(claims.map((claim) => stage.provider.create(claim).catch(() => undefined))),
    )
    assert.equal(stage.replicas(), 4)
    for (const { metadata } of claims) await forgotten(stage, metadata.name)
    stage.barren.clear()
    const deployment = stage.deployment()
    if (deployment) stage.kube.put(hubKinds.machineDeployment, deployment)
    await stage.clock.advance(5000)
    assert.equal(stage.machines().length, 4)
    const open = stage.machines().at(-1)
    assert.ok(open)
    await stage.kube.patch(
      hubKinds.machine,
      { namespace: 'default', name: open.metadata.name },
      { status: { nodeRef: { name: 'open' } } },
    )
    stage.kube.put(kinds.node, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'open' }, spec: {} })
    const end = swept(stage)
    await stage.clock.advance(60 * minute)
    // The first was bound, and its claim has gone; of the other three one may run pods.
    assert.deepEqual(
      stage.machines().map(({ metadata }) => metadata.name),
      [open.metadata.name],
    )
    assert.equal(stage.replicas(), 1)
    end.abort()
  })

  test('Machines of a MachineDeployment that Tenon never raised are not given back', async () => {
    const stage = new Stage()
    stage.add({ spec: { replicas: 3 } })
    const end = swept(stage)
    await stage.clock.advance(60 * minute)
    assert.equal(stage.replicas(), 3)
    assert.equal(stage.machines().length, 3)
    end.abort()
  })

  test('Machines bound to claims of another cluster of the same hub stay, and are not listed', async () => {
    const stage = new Stage()
    stage.add()
    await stage.launch('a')
    const [name = ''] = stage.boundTo('a')
    await stage.kube.patch(
      hubKinds.machine,
      { namespace: 'default', name },
      { metadata: { annotations: { [ownNames.workloadCluster]: 'another-cluster' } } },
    )
    await forgotten(stage, 'a')
    const end = swept(stage)
    await stage.clock.advance(60 * minute)
    assert.equal(stage.machines().length, 1)
    assert.deepEqual(await stage.provider.list(), [])
    end.abort()
  })

  test('many at once wait for further passes, and go slowly', async () => {
    const stage = new Stage()
    stage.add()
    const claims = Array.from({ length: 20 }, (_, index) => `c-${index}`)
    await Promise.all(claims.map((name) => stage.launch(name)))
    for (const name of claims) await forgotten(stage, name)
    const end = swept(stage)
    await stage.clock.advance(4 * minute)
    assert.equal(stage.replicas(), 20)
    await stage.clock.advance(5 * minute)
    const left = stage.replicas() ?? 0
    assert.ok(left < 20 && left > 0, `${left} are left`)
    await stage.clock.advance(60 * minute)
    assert.equal(stage.replicas(), 0)
    end.abort()
  })
})
