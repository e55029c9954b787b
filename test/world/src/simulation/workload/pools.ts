/** NodePools and node classes, and users who edit them. */
import { karpenterKinds, type NodePool } from '@tenon/api'
import { isLarge, type WorkloadKind } from '../story.ts'
import type { Hands } from './workload-context.ts'

const { nodePool } = karpenterKinds

/**
 * Continues with what turns whole pools over, as {@link Hands.every} does; so many times as rarely in large worlds,
 * where it takes hundreds of nodes hours and would hide everything else.
 */
function everyTurnover(
  hands: Hands,
  [leastMinutes, mostMinutes]: readonly [least: number, most: number],
  rarity: number,
  turn: () => void,
): void {
  const factor = isLarge(hands) ? rarity : 1
  hands.every(leastMinutes * factor, mostMinutes * factor, turn)
}

/** Types of the general pools. */
function generalTypes({ nodes, cloud: { wares } }: Hands): readonly string[] {
  return isLarge({ nodes }) ? wares.types.slice(0, wares.typesInLarge) : wares.types
}

interface PoolShape {
  readonly nodeClassName: 'standard' | 'gpu'
  readonly types: readonly string[]
  readonly spec?: Partial<NodePool['spec']>
  readonly template?: Partial<NodePool['spec']['template']['spec']>
}

/** A NodePool of one of the cloud's node classes. */
export function pool(
  { cloud: { wares } }: Hands,
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

/** The pools every run has. One without limits takes what the others may not. */
export function createPools(hands: Hands, kinds: ReadonlySet<WorkloadKind>): void {
  const { dice, nodes } = hands
  const { nodeClassKind, nodeClass } = hands.cloud.wares
  hands.create(nodeClassKind, nodeClass('standard'))
  // One node at a time, hundreds would not be replaced within the calm.
  const single = isLarge(hands) ? (['5%', '10%'] as const) : (['1', '2'] as const)
  const budgets = [{ nodes: dice.oneOf<string>([...single, '20%', '50%', '100%']) }]
  // A look at hundreds of nodes is for many moves; nodes that have to be unchanged for long are considered less often.
  const quietTimes = isLarge(hands) ? (['5m', '15m', '30m'] as const) : (['30s', '2m', '5m'] as const)
  const consolidateAfter = dice.oneOf<string>(quietTimes)
  const consolidationPolicy = kinds.has('consolidation') ? 'WhenEmptyOrUnderutilized' : 'WhenEmpty'
  const disruption = { consolidationPolicy, consolidateAfter, budgets } as const
  const ages = isLarge(hands) ? (['9h', '18h', 'Never'] as const) : (['20m', '60m', 'Never'] as const)
  const expireAfter = kinds.has('expiry') ? dice.oneOf<string>(ages) : 'Never'
  const grace = dice.oneOf([undefined, '5m', '15m'])
  const limits = { cpu: String(Math.max(8, Math.round(nodes * 4 * 0.6))) }
  hands.create(
    nodePool,
    pool(hands, 'general', {
      nodeClassName: 'standard',
      types: generalTypes(hands),
      spec: { weight: 10, limits, disruption },
      template: { expireAfter, ...(grace !== undefined && { terminationGracePeriod: grace }) },
    }),
  )
  hands.create(
    nodePool,
    pool(hands, 'overflow', {
      nodeClassName: 'standard',
      types: generalTypes(hands),
      spec: { disruption: { ...disruption, budgets: [{ nodes: '100%' }] } },
      template: { expireAfter: 'Never', terminationGracePeriod: '10m' },
    }),
  )
}

export function createGpuPool(hands: Hands): void {
  const { nodeClassKind, nodeClass, gpuTypes } = hands.cloud.wares
  hands.create(nodeClassKind, nodeClass('gpu'))
  hands.create(
    nodePool,
    pool(hands, 'gpu', {
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

export function createStaticPool(hands: Hands): void {
  const { dice } = hands
  const replicas = dice.between(1, 3)
  hands.create(
    nodePool,
    pool(hands, 'static', {
      nodeClassName: 'standard',
      types: [hands.cloud.wares.staticType],
      spec: {
        replicas,
        limits: { nodes: '6' },
        disruption: { consolidateAfter: '0s', budgets: [{ nodes: '1' }] },
      },
      template: { expireAfter: 'Never', terminationGracePeriod: '10m' },
    }),
  )
  hands.every(15, 50, () => {
    hands.patch(nodePool, 'static', { spec: { replicas: dice.between(0, 4) } })
  })
}

/**
 * Limits, weights, budgets, labels and requirements change; old nodes drift. In large worlds only every third of
 * the edits that turn a pool over is made.
 */
export function poolEdits(hands: Hands): void {
  const { dice, nodes } = hands
  let edition = 0
  hands.every(15, 45, () => {
    const change = dice.between(0, 5)
    const isTurnover = change === 3 || change === 4
    if (isTurnover && isLarge(hands) && !dice.chance(1 / 3)) return
    if (change === 0) {
      const cpu = String(Math.max(8, Math.round((nodes * 4 * dice.between(30, 120)) / 100)))
      hands.patch(nodePool, 'general', { spec: { limits: { cpu } } })
    }
    if (change === 1) hands.patch(nodePool, 'overflow', { spec: { weight: dice.oneOf([1, 20]) } })
    if (change === 2) {
      const budgets = [{ nodes: dice.oneOf(['0', isLarge(hands) ? '5%' : '1', '10%', '100%']) }]
      hands.patch(nodePool, 'general', { spec: { disruption: { budgets } } })
    }
    if (change === 3) {
      const labels = { 'world.tenon.sh/edition': String(edition++) }
      const name = dice.oneOf(['general', 'overflow'])
      hands.patch(nodePool, name, { spec: { template: { metadata: { labels } } } })
    }
    if (change === 4) {
      const types = generalTypes(hands)
      const values = dice.oneOf<readonly string[]>([types, types.slice(1), types.slice(1, 3)])
      const requirements = [{ key: 'node.kubernetes.io/instance-type', operator: 'In', values }]
      hands.patch(nodePool, 'general', { spec: { template: { spec: { requirements } } } })
    }
    if (change === 5) {
      const consolidateAfter = dice.oneOf(isLarge(hands) ? ['10m', 'Never'] : ['0s', '1m', '10m', 'Never'])
      hands.patch(nodePool, 'general', { spec: { disruption: { consolidateAfter } } })
    }
  })
}

/** Prices change by overlays, as a price list does in the middle of the day. */
export function priceChanges(hands: Hands): void {
  const { dice } = hands
  for (const type of generalTypes(hands).slice(1, 3)) {
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
    hands.create(karpenterKinds.nodeOverlay, object)
    everyTurnover(hands, [20, 60], 6, () => {
      const percent = dice.oneOf(['-50%', '-10%', '+5%', '+60%'])
      hands.patch(karpenterKinds.nodeOverlay, name, { spec: { priceAdjustment: percent } })
    })
  }
}

/** New images are published, and node classes change. */
export function classDrift(hands: Hands): void {
  everyTurnover(hands, [30, 90], 3, () => {
    hands.cloud.wares.drift(hands)
  })
}

/** Every few minutes, or hours in large worlds, the template of a pool has a new label: its nodes are replaced. */
export function poolRollouts(hands: Hands): void {
  const { dice } = hands
  let release = 0
  everyTurnover(hands, [6, 15], 6, () => {
    const labels = { 'world.tenon.sh/release': String(release++) }
    const name = dice.oneOf(['general', 'overflow'])
    hands.patch(nodePool, name, { spec: { template: { metadata: { labels } } } })
  })
}
