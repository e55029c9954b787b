/** The third stage: the Node can take pods (lifecycle.md 3.4). */
import type { Clock, Logger } from '@tenon/runtime'
import type { KubeClient } from '@tenon/kube'
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
import { type Caches, indexes } from '../../state/caches.ts'
import { startupTaintKind } from '../../state/nodes/state-node.ts'
import { isNodeReady } from '../../state/nodes/state-node.ts'
import type { ClaimDraft, LifecycleStage, StageResult } from './stage.ts'
import type { ClaimJournal } from '../../journal/claim-journal.ts'
import type { ClusterState } from '../../state/cluster-state.ts'

interface InitializationParts {
  readonly client: Pick<KubeClient, 'patch'>
  readonly caches: DeviceCaches
  readonly state: Pick<ClusterState, 'nodeOf' | 'taintsOfCloud'>
  readonly clock: Clock
  readonly logger: Logger
  readonly claimJournal: ClaimJournal
}

/** Devices are published as ResourceSlices, where these are served. */
type DeviceCaches = Pick<Caches, 'resourceSlices'>

interface Obstacle {
  readonly reason: string
  readonly message: string
}

/** Marks the claim and its Node initialized once nothing is missing any more. */
export function initialization(parts: InitializationParts): LifecycleStage {
  return { run: (draft) => initialize(parts, draft) }
}

async function initialize(deps: InitializationParts, draft: ClaimDraft): Promise<StageResult> {
  const { claimJournal, clock, state, client, logger } = deps
  const { claim, conditions } = draft
  if (!conditions.isUnknown('Initialized')) {
    return {
      kind: 'continue',
      draft: { ...draft, conditions: conditions.restamp('Initialized', clock.now()) },
    }
  }
  if (!conditions.isTrue('Registered')) return { kind: 'continue', draft }
  const node = draft.node ?? state.nodeOf(claim)
  const obstacle = node === undefined ? nodeNotFound : obstacleOf(deps, node, claim)
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

const nodeNotFound: Obstacle = { reason: 'NodeNotFound', message: 'Node not registered with the cluster' }

/** Whether nothing keeps the Node, as it will be, from being initialized. */
export function isComplete(seen: Seen, node: Node, claim: NodeClaim): boolean {
  return obstacleOf(seen, node, claim) === undefined
}

/** What else decides on it. */
interface Seen {
  readonly caches: DeviceCaches
  readonly state: Pick<ClusterState, 'taintsOfCloud'>
}

function obstacleOf({ caches, state }: Seen, node: Node, claim: NodeClaim): Obstacle | undefined {
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

/** Devices count only when pods with resource claims are served at all. */
function missingDevices(caches: DeviceCaches, node: Node, claim: NodeClaim): Obstacle | undefined {
  const drivers = claim.metadata.annotations?.[annotations.requestedDraDrivers] ?? ''
  if (caches.resourceSlices?.isSynced !== true || drivers === '') return undefined
  const slices = caches.resourceSlices.byIndex(indexes.byNode, node.metadata.name)
  const missing = unpublishedDriver(drivers, slices)
  if (missing === undefined) return undefined
  return {
    reason: 'DRADriverPoolsNotPublished',
    message: `Driver ${missing} has not published all devices of a pool on the Node yet`,
  }
}

/**
 * The first of the drivers that has not published all devices of any pool of its on a node
 * (lifecycle.md 3.4); undefined once all have.
 * @param drivers comma-separated, as in annotation `karpenter.sh/requested-dra-drivers`.
 * @param slices of that node.
 */
function unpublishedDriver(drivers: string, slices: readonly ResourceSlice[]): string | undefined {
  const published = new Set(completePools(slices).map(({ driver }) => driver))
  return drivers
    .split(',')
    .map((driver) => driver.trim())
    .find((driver) => driver !== '' && !published.has(driver))
}

interface Pool {
  readonly driver: string
  readonly generation: number
  readonly expected: number
  readonly found: number
}

/** Pools whose latest generation is there as a whole. */
function completePools(slices: readonly ResourceSlice[]): readonly Pool[] {
  const pools = new Map<string, Pool>()
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
