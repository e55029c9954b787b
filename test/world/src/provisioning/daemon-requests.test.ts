import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { type DaemonSet, karpenterKinds, kinds, type NodePool, type PodSpec, parseResource } from '@tenon/api'
import { kwokNodeClassKind } from '@tenon/provider-kwok'
import { aDeployment, aKwokPool, deploymentKind, World } from '../world.ts'

const minutes = 60_000

type Requests = Readonly<Record<string, string>>

/** Nodes go as soon as nothing runs there. */
async function open(t: TestContext): Promise<World> {
  const world = await World.start({ seed: 1, provider: 'kwok' })
  t.after(() => world.stop())
  world.create(kwokNodeClassKind, {
    apiVersion: 'karpenter.kwok.sh/v1alpha1',
    kind: 'KWOKNodeClass',
    metadata: { name: 'default' },
  })
  const disruption: NodePool['spec']['disruption'] = { consolidateAfter: '0s', budgets: [{ nodes: '100%' }] }
  world.create(karpenterKinds.nodePool, aKwokPool('default', { disruption }))
  await world.startOperator()
  return world
}

function agent(requests?: Requests, spec: Partial<PodSpec> = {}): DaemonSet {
  const labels = { app: 'agent' }
  const container = { name: 'agent', image: 'agent:1', ...(requests && { resources: { requests } }) }
  return {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: { name: 'agent', namespace: 'default' },
    spec: {
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [container], ...spec } },
    },
  }
}

function limitRange(world: World, cpu: string): void {
  world.create(kinds.limitRange, {
    apiVersion: 'v1',
    kind: 'LimitRange',
    metadata: { name: 'bounds', namespace: 'default' },
    spec: { limits: [{ type: 'Container', defaultRequest: { cpu } }] },
  })
}

const running = (world: World, prefix: string) =>
  world
    .pods()
    .filter(({ metadata, status }) => metadata.name.startsWith(prefix) && status?.phase === 'Running')

/** Milli-cores that the instances were launched for, oldest first. */
async function launched(world: World, prefix: string): Promise<readonly number[]> {
  const seen = new Map<string, number>()
  for (let i = 0; i < 60 && running(world, prefix).length === 0; i++) {
    await world.clock.advance(5000)
    for (const { metadata, spec } of world.claims())
      seen.set(metadata.name, parseResource('cpu', spec.resources?.requests?.['cpu'] ?? '0'))
  }
  return [...seen.values()]
}

const most = { cpu: '3' }

describe('RPB-19 a DaemonSet counts', () => {
  test('with what a LimitRange of its namespace gives its pods, before there is one', async (t) => {
    const world = await open(t)
    limitRange(world, '2')
    world.create(kinds.daemonSet, agent())
    world.create(deploymentKind, aDeployment('web', 1, most))
    assert.deepEqual(await launched(world, 'web'), [5000])
    assert.equal(running(world, 'agent').length, 1)
  })

  test('with what its template states, whatever a LimitRange says, and with init containers', async (t) => {
    const world = await open(t)
    limitRange(world, '2')
    const init = {
      name: 'prepare',
      image: 'agent:1',
      resources: { requests: { cpu: '100m' }, limits: { cpu: '100m' } },
    }
    world.create(kinds.daemonSet, agent({ cpu: '200m' }, { initContainers: [init] }))
    world.create(deploymentKind, aDeployment('web', 1, most))
    assert.deepEqual(await launched(world, 'web'), [3200])
  })

  test('with the requests that its pods had last, when none is there', async (t) => {
    const world = await open(t)
    // What a webhook would do: nobody can know before the first pod.
    limitRange(world, '2')
    const { local } = world.cluster.server
    world.create(kinds.daemonSet, agent())
    world.create(deploymentKind, aDeployment('web', 1, most))
    await launched(world, 'web')
    local.patch(deploymentKind, 'default', 'web', { spec: { replicas: 0 } })
    await world.clock.advanceUntil(() => world.nodes().length === 0, 10 * minutes)
    await world.clock.advance(minutes)
    assert.deepEqual(running(world, 'agent'), [])
    local.delete(kinds.limitRange, 'default', 'bounds')
    world.create(deploymentKind, aDeployment('next', 1, most))
    assert.deepEqual(await launched(world, 'next'), [5000])
  })

  test('with another template anew', async (t) => {
    const world = await open(t)
    const { local } = world.cluster.server
    world.create(kinds.daemonSet, agent({ cpu: '2' }))
    world.create(deploymentKind, aDeployment('web', 1, most))
    assert.deepEqual(await launched(world, 'web'), [5000])
    local.patch(deploymentKind, 'default', 'web', { spec: { replicas: 0 } })
    await world.clock.advanceUntil(() => world.nodes().length === 0, 10 * minutes)
    local.patch(kinds.daemonSet, 'default', 'agent', { spec: agent({ cpu: '200m' }).spec })
    world.create(deploymentKind, aDeployment('next', 1, most))
    assert.deepEqual(await launched(world, 'next'), [3200])
  })
})

for (const admission of ['a webhook', 'a LimitRange'] as const)
  test(`RPB-4 a DaemonSet that takes what was meant for the pod, by ${admission}: the second node is right`, async (t) => {
    const world = await open(t)
    const { local } = world.cluster.server
    const made: number[] = []
    // A webhook is seen by nobody beforehand: what it does is there from the first launch on only.
    if (admission === 'a LimitRange') limitRange(world, '2')
    local.subscribe(karpenterKinds.nodeClaim, {
      added: ({ spec }) => {
        made.push(parseResource('cpu', spec.resources?.requests?.['cpu'] ?? '0'))
        if (admission === 'a webhook' && made.length === 1) limitRange(world, '2')
      },
    })
    world.create(kinds.daemonSet, agent())
    world.create(deploymentKind, aDeployment('web', 1, most))
    await world.clock.advance(15 * minutes)
    assert.equal(running(world, 'web').length, 1)
    assert.ok(made.length <= 2, `${made.length} NodeClaims`)
    assert.equal(made.at(-1), 5000)
  })
