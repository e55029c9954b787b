/** Words for stories about a node that is too large for its pods, and the cheaper one in its place. */
import type { TestContext } from 'node:test'
import { formatResources, type InstanceType, labels, type NodeClaim } from '@tenon/api'
import { seconds, type Stage } from '../testing/stage.test-support.ts'
import { aType, madeClaims } from '../testing/pools.test-support.ts'
import { openDisruption, setDisruption, tainted } from './disruption-stage.test-support.ts'

type Options = Parameters<typeof openDisruption>[1]

export const small: InstanceType = aType('small', 2)
export const large: InstanceType = aType('large', 8)

/** A stage whose cloud sells small and large instances, and whose pool lets nodes be until told otherwise. */
export async function openReplacing(
  t: Pick<TestContext, 'after'>,
  { disruption, ...options }: Options = {},
): Promise<Stage> {
  const stage = await openDisruption(t, {
    types: [small, large],
    ...options,
    disruption: { consolidateAfter: 'Never', ...disruption },
  })
  stage.cloud.onCreate = (claim) => {
    const type = typeOf(stage, claim)
    const amounts = formatResources(type.capacity)
    stage.cloud.extras = {
      labels: {
        [labels.os]: 'linux',
        [labels.instanceType]: type.name,
        [labels.zone]: 'zone-1',
        [labels.capacityType]: 'on-demand',
      },
      capacity: amounts,
      allocatable: amounts,
    }
  }
  return stage
}

/** The cheapest type of the catalogue that the claim admits. */
function typeOf(stage: Stage, { spec }: NodeClaim): InstanceType {
  const admitted = spec.requirements.find(({ key }) => key === labels.instanceType)?.values
  const found = stage.cloud.instanceTypes.find(({ name }) => admitted?.includes(name) ?? true)
  if (found === undefined) throw new Error(`no type of the catalogue is one of ${admitted?.join()}`)
  return found
}

/** An initialized node `node-NAME` of a type, of a claim made by hand. */
export async function aNodeOf(
  stage: Stage,
  name: string,
  type: InstanceType,
  spec: Partial<NodeClaim['spec']> = {},
  metadata: Partial<NodeClaim['metadata']> = {},
): Promise<void> {
  const only = { key: labels.instanceType, operator: 'In' as const, values: [type.name] }
  await stage.claim(name, { requirements: [only], ...spec }, metadata)
  await join(stage, name, type)
}

async function join(stage: Stage, name: string, type: InstanceType): Promise<void> {
  await stage.join(name)
  await stage.report(`node-${name}`, 'True', formatResources(type.capacity))
}

/** Every launched claim that has no Node yet becomes one. */
export async function joinReplacements(stage: Stage): Promise<void> {
  for (const claim of madeClaims(stage)) {
    const { name } = claim.metadata
    if (stage.nodeNow(`node-${name}`) === undefined) await join(stage, name, typeOf(stage, claim))
  }
}

/** A pod that runs on a node and asks for this much. */
export async function running(
  stage: Stage,
  name: string,
  node: string,
  cpu: string = '1',
  { spec, ...rest }: NonNullable<Parameters<Stage['pod']>[2]> = {},
): Promise<void> {
  const containers = [{ name: 'app', image: 'registry.k8s.io/pause', resources: { requests: { cpu } } }]
  await stage.pod(name, node, { ...rest, spec: { containers, ...spec } })
}

/** Nodes that are not used well may go from now on; the decision is carried out within 26 s. */
export function consolidate(stage: Stage): void {
  setDisruption(stage, { consolidateAfter: '0s' })
}

/** Lets time pass until some nodes are kept free of new pods, and its replacement has been created. */
export async function untilBegun(stage: Stage, limitMs: number = 40 * seconds): Promise<readonly string[]> {
  await stage.world.clock.advanceUntil(() => tainted(stage).length > 0, limitMs)
  await stage.pass(500)
  return tainted(stage)
}

/** Whether the state holds the node for one that goes. */
export function isMarked(stage: Stage, name: string): boolean {
  const instances = stage.operator.operator.state.stateNodes()
  return instances.some(
    ({ claim, isMarkedForDeletion }) => claim?.metadata.name === name && isMarkedForDeletion,
  )
}

/** A large node `node-a` with one small pod. */
export async function anOversizedNode(t: TestContext, options: Options = {}): Promise<Stage> {
  const stage = await openReplacing(t, options)
  await aNodeOf(stage, 'a', large)
  await running(stage, 'p', 'node-a')
  return stage
}
