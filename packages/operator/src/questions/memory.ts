/** What an operator knows that no object tells, as far as decisions depend on it. */
import type { LaunchScope, NodeClaim, Resources } from '@tenon/api'
import type { ClusterState } from '../state/cluster-state.ts'
import type { BufferSource } from '../state/pods/buffer-pods.ts'
import type { GroupRound } from '../state/pods/pod-groups.ts'
import type { PodPlan } from '../state/pods/pod-plans.ts'
import type { Prediction } from '../state/pods/predictions.ts'

/** A pod's plan. What the pod asked for is not part of it. */
interface RememberedPlan extends Pick<PodPlan, 'madeMs' | 'steering' | 'target'> {
  readonly uid: string
}

/** Plain data: it survives a way through JSON. */
export interface OperatorMemory {
  /** Provider IDs of the instances that commands are about to remove. */
  readonly marked: readonly string[]
  /** Claims that were created and that no list has shown yet. */
  readonly unseenClaims: readonly NodeClaim[]
  readonly plans: readonly RememberedPlan[]
  /** By NodePool what claims on their way take of its limits. */
  readonly reserved: Readonly<Record<string, Resources>>
  /** By NodePool until when nothing is launched, as its nodes did not take pods; Unix milliseconds. */
  readonly pausedUntilMs: Readonly<Record<string, number>>
  /** Offerings of which one launch is to find out whether they can be bought again. */
  readonly offeringsOnTrial: readonly LaunchScope[]
  /** What CapacityBuffers keep room for, and how many pods of each on which instance, by its provider ID. */
  readonly buffers: readonly BufferSource[]
  readonly bufferRooms: Readonly<Record<string, readonly string[]>>
  /** What VerticalPodAutoscalers will have pods ask for. Absent in what was written before they were read. */
  readonly predictions?: readonly Prediction[]
  /** API versions of the kinds PodGroup that are read. */
  readonly groupVersions: readonly string[]
  /** What is decided next about PodGroups of which NodeClaims were released, by UID. */
  readonly groupRounds: Readonly<Record<string, GroupRound>>
  /** Whether pods are steered to the nodes they are planned for. */
  readonly isSteering: boolean
}

/** Remembers nothing, and steers pods. */
export const emptyMemory: OperatorMemory = {
  marked: [],
  unseenClaims: [],
  plans: [],
  reserved: {},
  pausedUntilMs: {},
  offeringsOnTrial: [],
  buffers: [],
  bufferRooms: {},
  groupVersions: [],
  groupRounds: {},
  isSteering: true,
}

/** What state holds of a memory. */
type Remembered = Pick<
  OperatorMemory,
  | 'bufferRooms'
  | 'buffers'
  | 'groupRounds'
  | 'marked'
  | 'unseenClaims'
  | 'plans'
  | 'predictions'
  | 'reserved'
  | 'pausedUntilMs'
>

/** @param pools names of the NodePools. */
export function rememberedBy(
  state: Pick<
    ClusterState,
    | 'buffers'
    | 'limitReservations'
    | 'marked'
    | 'plans'
    | 'podGroups'
    | 'predictions'
    | 'readinessPauses'
    | 'seeded'
  >,
  pools: readonly string[],
  nowMs: number,
): Remembered {
  const byPool = <T>(valueOf: (pool: string) => T | undefined): Record<string, T> =>
    Object.fromEntries(
      pools.flatMap((pool) => {
        const value = valueOf(pool)
        return value === undefined ? [] : [[pool, value]]
      }),
    )
  return {
    marked: [...state.marked()],
    unseenClaims: [...state.seeded()],
    plans: Array.from(state.plans.entries(), ([uid, { target, madeMs, steering }]) => ({
      uid,
      target,
      madeMs,
      steering,
    })),
    reserved: byPool((pool) => {
      const amounts = state.limitReservations.of(pool)
      return Object.values(amounts).some((amount) => amount > 0) ? amounts : undefined
    }),
    pausedUntilMs: byPool((pool) => {
      const leftMs = state.readinessPauses.leftMs(pool)
      return leftMs > 0 ? nowMs + leftMs : undefined
    }),
    predictions: state.predictions.all(),
    groupRounds: Object.fromEntries(state.podGroups.rounds),
    buffers: state.buffers.sources(),
    bufferRooms: Object.fromEntries(
      Array.from(state.buffers.kept(), ([host, rooms]) => [
        host,
        rooms.flatMap(({ pods }) => pods.map(({ metadata }) => metadata.uid ?? '')),
      ]),
    ),
  }
}

/** Puts what was remembered into a state whose caches are filled. Unseen claims have to be among its objects. */
export function recall(
  state: Pick<
    ClusterState,
    'buffers' | 'limitReservations' | 'mark' | 'plans' | 'podGroups' | 'predictions' | 'readinessPauses'
  >,
  memory: Remembered,
): void {
  for (const providerID of memory.marked) state.mark(providerID)
  for (const { uid, ...plan } of memory.plans) state.plans.restore(uid, plan)
  for (const prediction of memory.predictions ?? []) state.predictions.put(prediction)
  for (const [uid, round] of Object.entries(memory.groupRounds)) state.podGroups.setRound(uid, round)
  for (const source of memory.buffers) state.buffers.put(source)
  const hosts = Object.entries(memory.bufferRooms).flatMap(([host, uids]) =>
    uids.map((uid) => [uid, host] as const),
  )
  state.buffers.decided(state.buffers.all(), new Map(hosts), 0)
  state.buffers.known()
  for (const [pool, amounts] of Object.entries(memory.reserved))
    state.limitReservations.restore(pool, amounts)
  for (const [pool, untilMs] of Object.entries(memory.pausedUntilMs))
    state.readinessPauses.restore(pool, untilMs)
}
