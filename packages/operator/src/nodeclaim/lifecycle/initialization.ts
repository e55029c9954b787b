import {
  annotations,
  kinds,
  labels,
  type Node,
  type NodeClaim,
  ownValue,
  parseResource,
  type ResourceSlice,
  type Taint,
  taintText,
} from '@tenon/api'
import type { KubeClient } from '@tenon/kube'
import type { Clock, Logger } from '@tenon/runtime'
import type { ClaimJournal } from '../../journal/claim-journal.ts'
import { type Caches, indexes } from '../../state/caches.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import { isNodeReady, startupTaintKind } from '../../state/nodes/state-node.ts'
import type { ClaimDraft, StageResult } from './controller.ts'

interface Dependencies {
  readonly client: KubeClient
  readonly caches: Caches
  readonly state: ClusterState
  readonly clock: Clock
  readonly logger: Logger
  readonly claimJournal: ClaimJournal
}

/** Why a Node is not initialized yet. */
interface Obstacle {
  readonly reason: string
  readonly message: string
}

const nodeNotFound: Obstacle = { reason: 'NodeNotFound', message: 'Node not registered with the cluster' }

/** The third stage: marks the claim and its Node initialized once the Node can take pods (lifecycle.md 3.4). */
export async function initialize(deps: Dependencies, draft: ClaimDraft): Promise<StageResult> {
  const { caches, claimJournal, clock, state, client, logger } = deps
  const { claim, conditions } = draft
  if (!conditions.isUnknown('Initialized')) {
    return {
      kind: 'continue',
      draft: { ...draft, conditions: conditions.restamp('Initialized', clock.now()) },
    }
  }
  if (!conditions.isTrue('Registered')) return { kind: 'continue', draft }
  const node = draft.node ?? state.nodeOf(claim)
  const obstacle = node === undefined ? nodeNotFound : obstacleOf(caches, state, node, claim)
  if (node === undefined || obstacle !== undefined) {
    const set = conditions.set({ type: 'Initialized', status: 'Unknown', ...obstacle }, clock.now())
    return { kind: 'continue', draft: { ...draft, conditions: set } }
  }
  if (node.metadata.labels?.[labels.initialized] !== 'true') {
    await client.patch(
      kinds.node,
      { name: node.metadata.name },
      { metadata: { labels: { [labels.initialized]: 'true' } } },
    )
  }
  return {
    kind: 'continue',
    draft: { ...draft, conditions: conditions.set({ type: 'Initialized', status: 'True' }, clock.now()) },
    afterStore: () => {
      claimJournal.initialized(claim, node.metadata.name)
      logger.info('initialized nodeclaim', {
        NodeClaim: { name: claim.metadata.name },
        Node: { name: node.metadata.name },
        'provider-id': claim.status?.providerID,
        allocatable: node.status?.allocatable,
      })
    },
  }
}

/** @param node as it will be stored. */
export function isComplete(caches: Caches, state: ClusterState, node: Node, claim: NodeClaim): boolean {
  return obstacleOf(caches, state, node, claim) === undefined
}

function obstacleOf(caches: Caches, state: ClusterState, node: Node, claim: NodeClaim): Obstacle | undefined {
  if (!isNodeReady(node)) return { reason: 'NodeNotReady', message: 'Node status is not Ready' }
  const taints = node.spec?.taints ?? []
  const kindOf = (taint: Taint) => startupTaintKind(taint, claim, state.taintsOfCloud)
  const startup = taints.find((taint) => kindOf(taint) === 'startup')
  if (startup !== undefined) {
    return {
      reason: 'StartupTaintsExist',
      message: `Startup taint ${taintText(startup)} is still on the Node`,
    }
  }
  const ephemeral = taints.find((taint) => kindOf(taint) === 'ephemeral')
  if (ephemeral !== undefined) {
    return {
      reason: 'KnownEphemeralTaintsExist',
      message: `Taint ${taintText(ephemeral)} is still on the Node`,
    }
  }
  const missing = Object.entries(claim.spec.resources?.requests ?? {})
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .find(
      ([name, quantity]) =>
        parseResource(name, quantity) > 0 &&
        parseResource(name, ownValue(node.status?.allocatable, name) ?? '0') === 0,
    )
  if (missing === undefined) return missingDevices(caches, node, claim)
  return {
    reason: 'ResourceNotRegistered',
    message: `Resource ${missing[0]} is requested but the Node offers none yet`,
  }
}

function missingDevices({ resourceSlices }: Caches, node: Node, claim: NodeClaim): Obstacle | undefined {
  const drivers = claim.metadata.annotations?.[annotations.requestedDraDrivers] ?? ''
  // ResourceSlices are cached only where the API server serves them.
  if (resourceSlices?.isSynced !== true || drivers === '') return undefined
  const slices = resourceSlices.byIndex(indexes.byNode, node.metadata.name)
  const missing = unpublishedDriver(drivers, slices)
  if (missing === undefined) return undefined
  return {
    reason: 'DRADriverPoolsNotPublished',
    message: `Driver ${missing} has not published all devices of a pool on the Node yet`,
  }
}

/**
 * The first driver that has not published all devices of any of its pools on a node (lifecycle.md 3.4).
 * @param drivers comma-separated, as in annotation `karpenter.sh/requested-dra-drivers`.
 */
function unpublishedDriver(drivers: string, slices: readonly ResourceSlice[]): string | undefined {
  const published = new Set(completePools(slices).map(({ driver }) => driver))
  return drivers
    .split(',')
    .map((driver) => driver.trim())
    .find((driver) => driver !== '' && !published.has(driver))
}

interface DevicePool {
  readonly driver: string
  readonly generation: number
  readonly expected: number
  readonly found: number
}

/** Pools of which all slices of the latest generation are published. */
function completePools(slices: readonly ResourceSlice[]): readonly DevicePool[] {
  const pools = new Map<string, DevicePool>()
  for (const { spec } of slices) {
    const { driver, pool } = spec
    const key = JSON.stringify([driver, pool.name])
    const known = pools.get(key)
    if (known !== undefined && known.generation > pool.generation) continue
    const before = known?.generation === pool.generation ? known.found : 0
    pools.set(key, {
      driver,
      generation: pool.generation,
      expected: pool.resourceSliceCount,
      found: before + 1,
    })
  }
  return [...pools.values()].filter(({ expected, found }) => expected > 0 && found === expected)
}
