/** A cluster on the simulated Exoscale whose nodes are all healthy, and what may not happen to it. */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { karpenterKinds, labels } from '@tenon/api'
import { createCredentials } from '@tenon/devcluster'
import { aNodeClass, aPool, nodeClassKind } from '../exoscale/manifests.test-support.ts'
import { aDeployment, deploymentKind, type RunningOperator, World, type WorldOptions } from '../world.ts'

const minute = 60_000
const credentials = await createCredentials(Date.UTC(2026, 0, 1))

/** A pod a node: each fills the instance that its pool sells. */
export async function healthyCluster(
  t: TestContext,
  nodes: number,
  options: Partial<WorldOptions> = {},
  onStart: (operator: RunningOperator) => void = () => undefined,
): Promise<World> {
  const world = await World.start({ seed: 11, provider: 'exoscale', credentials, ...options })
  t.after(() => world.stop())
  world.create(nodeClassKind, aNodeClass('standard'))
  world.create(karpenterKinds.nodePool, aPool('standard', ['standard.small']))
  world.create(deploymentKind, aDeployment('web', nodes, { cpu: '1', memory: '1Gi' }))
  onStart(await world.startOperator())
  await world.clock.advance(8 * minute)
  assert.equal(runningPods(world), nodes)
  assert.equal(world.cluster.cloud.instances().length, nodes)
  return world
}

export function runningPods(world: World): number {
  return world
    .pods()
    .filter(({ metadata, status }) => metadata.deletionTimestamp === undefined && status?.phase === 'Running')
    .length
}

/** Names of the pods that run, which are others when one was moved. */
export function podNames(world: World): readonly string[] {
  return world.pods().map(({ metadata }) => metadata.name)
}

export function instanceIds(world: World): readonly string[] {
  return world.cluster.cloud.instances().map(({ id }) => id)
}

export function callsTo(world: World, operation: string): number {
  return world.cluster.cloud.calls().filter((call) => call.operation === operation).length
}

/** Claims and instances match one to one, as the cloud and the API server have them. */
export function assertMatched(world: World, what: string): void {
  const claims = world
    .claims()
    .map(({ metadata, status }) => `${metadata.name} ${status?.providerID}`)
    .toSorted()
  const instances = world.cluster.cloud
    .instances()
    .map(({ id, labels: tags }) => `${tags['exoscale.com/node-claim']} exoscale://${id}`)
    .toSorted()
  assert.deepEqual(instances, claims, what)
  const poolNodes = world.nodes().filter(({ metadata }) => metadata.labels?.[labels.nodePool] !== undefined)
  assert.equal(poolNodes.length, claims.length, what)
}
