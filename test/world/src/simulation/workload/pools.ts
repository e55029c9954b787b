/** NodePools and node classes, and users who edit them. */
import { karpenterKinds, type NodePool } from '@tenon/api'
import { isLarge, type WorkloadKind } from '../story.ts'
import type { WorkloadContext } from './workload-context.ts'

const { nodePool } = karpenterKinds

/**
 * Repeats a change that replaces whole pools, as {@link WorkloadContext.every} does. It is rarer in large worlds, where
 * it takes hundreds of nodes hours and would hide everything else.
 */
function everyTurnover(
  context: WorkloadContext,
  [leastMinutes, mostMinutes]: readonly [least: number, most: number],
  rarity: number,
  turn: () => void,
): void {
  const factor = isLarge(context) ? rarity : 1
  context.every(leastMinutes * factor, mostMinutes * factor, turn)
}

/** Types of the general pools. */
function generalTypes({ nodes, cloud: { wares } }: WorkloadContext): readonly string[] {
  return isLarge({ nodes }) ? wares.types.slice(0, wares.typesInLarge) : wares.types
}

interface PoolShape {
  readonly nodeClassName: 'standard' | 'gpu'
  readonly types: readonly string[]
  readonly spec?: Partial<NodePool['spec']>
  readonly template?: Partial<NodePool['spec']['template']['spec']>
}

/** A NodePool with one of the cloud's node classes. */
export function pool(
  { cloud: { wares } }: WorkloadContext,
  name: string,
  { nodeClassName, types, spec, template }: PoolShape,
): NodePool {
  const { group, kind } = wares.nodeClassKind
  return {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodePool',
    metadata: { name },
    spec: {
      template: {
        metadata: { labels: { 'world.tenon.sh/pool': name } },
        spec: {
          nodeClassRef: { group, kind, name: nodeClassName },
          requirements: [{ key: 'node.kubernetes.io/instance-type', operator: 'In', values: types }],
          ...template,
        },
      },
      ...spec,
    },
  }
}

/** The pools of every run. One without limits serves what the others may not. */
export function createPools(context: WorkloadContext, kinds: ReadonlySet<WorkloadKind>): void {
  const { dice, nodes } = context
  const { nodeClassKind, nodeClass } = context.cloud.wares
  context.create(nodeClassKind, nodeClass('standard'))
  // One at a time, hundreds of nodes would not be replaced within the calm phase.
  const single = isLarge(context) ? (['5%', '10%'] as const) : (['1', '2'] as const)
  const budgets = [{ nodes: dice.oneOf<string>([...single, '20%', '50%', '100%']) }]
  // Evaluating hundreds of nodes is expensive; a long consolidateAfter makes it rarer.
  const quietTimes = isLarge(context) ? (['5m', '15m', '30m'] as const) : (['30s', '2m', '5m'] as const)
  const consolidateAfter = dice.oneOf<string>(quietTimes)
  const consolidationPolicy = kinds.has('consolidation') ? 'WhenEmptyOrUnderutilized' : 'WhenEmpty'
  const disruption = { consolidationPolicy, consolidateAfter, budgets } as const
  const ages = isLarge(context) ? (['9h', '18h', 'Never'] as const) : (['20m', '60m', 'Never'] as const)
  const expireAfter = kinds.has('expiry') ? dice.oneOf<string>(ages) : 'Never'
  const grace = dice.oneOf([undefined, '5m', '15m'])
  const limits = { cpu: String(Math.max(8, Math.round(nodes * 4 * 0.6))) }
  context.create(
    nodePool,
    pool(context, 'general', {
      nodeClassName: 'standard',
      types: generalTypes(context),
      spec: { weight: 10, limits, disruption },
      template: { expireAfter, ...(grace !== undefined && { terminationGracePeriod: grace }) },
    }),
  )
  context.create(
    nodePool,
    pool(context, 'overflow', {
      nodeClassName: 'standard',
      types: generalTypes(context),
      spec: { disruption: { ...disruption, budgets: [{ nodes: '100%' }] } },
      template: { expireAfter: 'Never', terminationGracePeriod: '10m' },
    }),
  )
}

export function createGpuPool(context: WorkloadContext): void {
  const { nodeClassKind, nodeClass, gpuTypes } = context.cloud.wares
  context.create(nodeClassKind, nodeClass('gpu'))
  context.create(
    nodePool,
    pool(context, 'gpu', {
      nodeClassName: 'gpu',
      types: gpuTypes,
      spec: {
        weight: 5,
        disruption: { consolidationPolicy: 'WhenEmpty', consolidateAfter: '1m', budgets: [{ nodes: '1' }] },
      },
      template: {
        expireAfter: 'Never',
        terminationGracePeriod: '10m',
        taints: [{ key: 'nvidia.com/gpu', value: 'true', effect: 'NoSchedule' }],
      },
    }),
  )
}

export function createStaticPool(context: WorkloadContext): void {
  const { dice } = context
  const replicas = dice.between(1, 3)
  context.create(
    nodePool,
    pool(context, 'static', {
      nodeClassName: 'standard',
      types: [context.cloud.wares.staticType],
      spec: {
        replicas,
        limits: { nodes: '6' },
        disruption: { consolidateAfter: '0s', budgets: [{ nodes: '1' }] },
      },
      template: { expireAfter: 'Never', terminationGracePeriod: '10m' },
    }),
  )
  context.every(15, 50, () => {
    context.patch(nodePool, 'static', { spec: { replicas: dice.between(0, 4) } })
  })
}

/**
 * Changes limits, weights, budgets, labels and requirements; old nodes drift. In large worlds only every third
 * edit that replaces a pool is made.
 */
export function poolEdits(context: WorkloadContext): void {
  const { dice, nodes } = context
  let edition = 0
  context.every(15, 45, () => {
    const change = dice.between(0, 5)
    const isTurnover = change === 3 || change === 4
    if (isTurnover && isLarge(context) && !dice.chance(1 / 3)) return
    if (change === 0) {
      const cpu = String(Math.max(8, Math.round((nodes * 4 * dice.between(30, 120)) / 100)))
      context.patch(nodePool, 'general', { spec: { limits: { cpu } } })
    }
    if (change === 1) context.patch(nodePool, 'overflow', { spec: { weight: dice.oneOf([1, 20]) } })
    if (change === 2) {
      const budgets = [{ nodes: dice.oneOf(['0', isLarge(context) ? '5%' : '1', '10%', '100%']) }]
      context.patch(nodePool, 'general', { spec: { disruption: { budgets } } })
    }
    if (change === 3) {
      const labels = { 'world.tenon.sh/edition': String(edition++) }
      const name = dice.oneOf(['general', 'overflow'])
      context.patch(nodePool, name, { spec: { template: { metadata: { labels } } } })
    }
    if (change === 4) {
      const types = generalTypes(context)
      const values = dice.oneOf<readonly string[]>([types, types.slice(1), types.slice(1, 3)])
      const requirements = [{ key: 'node.kubernetes.io/instance-type', operator: 'In', values }]
      context.patch(nodePool, 'general', { spec: { template: { spec: { requirements } } } })
    }
    if (change === 5) {
      const consolidateAfter = dice.oneOf(isLarge(context) ? ['10m', 'Never'] : ['0s', '1m', '10m', 'Never'])
      context.patch(nodePool, 'general', { spec: { disruption: { consolidateAfter } } })
    }
  })
}

/** Overlays change prices, as a new price list does. */
export function priceChanges(context: WorkloadContext): void {
  const { dice } = context
  for (const type of generalTypes(context).slice(1, 3)) {
    const name = `price-${type.toLowerCase().replace('.', '-')}`
    const priceAdjustment = '+1%'
    const object = {
      apiVersion: 'karpenter.sh/v1alpha1',
      kind: 'NodeOverlay',
      metadata: { name },
      spec: {
        requirements: [{ key: 'node.kubernetes.io/instance-type', operator: 'In', values: [type] }],
        priceAdjustment,
      },
    }
    context.create(karpenterKinds.nodeOverlay, object)
    everyTurnover(context, [20, 60], 6, () => {
      const percent = dice.oneOf(['-50%', '-10%', '+5%', '+60%'])
      context.patch(karpenterKinds.nodeOverlay, name, { spec: { priceAdjustment: percent } })
    })
  }
}

/** New images are published, and node classes change. */
export function classDrift(context: WorkloadContext): void {
  everyTurnover(context, [30, 90], 3, () => {
    context.cloud.wares.drift(context)
  })
}

/** Every few minutes (in large worlds hours) a pool's template gets a new label, so that its nodes are replaced. */
export function poolRollouts(context: WorkloadContext): void {
  const { dice } = context
  let release = 0
  everyTurnover(context, [6, 15], 6, () => {
    const labels = { 'world.tenon.sh/release': String(release++) }
    const name = dice.oneOf(['general', 'overflow'])
    context.patch(nodePool, name, { spec: { template: { metadata: { labels } } } })
  })
}
