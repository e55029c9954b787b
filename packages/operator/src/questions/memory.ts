/** What decisions depend on and no Kubernetes object stores, for replays of a recorded operator. */
import type { LaunchScope, NodeClaim, Resources } from '@tenon/api'
import type { ClusterState } from '../state/cluster-state.ts'
import type { Refusal } from '../state/pods/claim-refusals.ts'
import type { BufferSource } from '../state/pods/buffer-pods.ts'
import type { GroupRound } from '../state/pods/pod-groups.ts'
import type { PodPlan } from '../state/pods/pod-plans.ts'
import type { Prediction } from '../state/pods/predictions.ts'

interface RememberedPlan extends Pick<PodPlan, 'madeMs' | 'steering' | 'target'> {
  readonly uid: string
}

/** Plain data, so that it can be stored as JSON. */
export interface OperatorMemory {
  /** Provider IDs of nodes that commands are removing. */
  readonly marked: readonly string[]
  /** Created claims that the caches do not show yet. */
  readonly unseenClaims: readonly NodeClaim[]
  readonly plans: readonly RememberedPlan[]
  /** Share of each NodePool's limits that claims being created take. */
  readonly reserved: Readonly<Record<string, Resources>>
  /** The same of each CapacityQuota. Undefined in older recordings. */
  readonly reservedOfQuotas?: Readonly<Record<string, Resources>>
  /** By NodePool, until when nothing is launched because its nodes did not take pods; Unix milliseconds. */
  readonly pausedUntilMs: Readonly<Record<string, number>>
  /** By UID of the pod, why the API server refuses its NodeClaims. */
  readonly refusedClaims: Readonly<Record<string, Refusal>>
  /** Offerings that one launch tries for all others. */
  readonly offeringsOnTrial: readonly LaunchScope[]
  readonly buffers: readonly BufferSource[]
  /** UIDs of buffer pods by the provider ID of their node. */
  readonly bufferRooms: Readonly<Record<string, readonly string[]>>
  /** Requests that VerticalPodAutoscalers will set. Undefined in older recordings. */
  readonly predictions?: readonly Prediction[]
  /** API versions of the PodGroup kinds that are read. */
  readonly groupVersions: readonly string[]
  /** Next step for PodGroups whose NodeClaims were released, by UID. */
  readonly groupRounds: Readonly<Record<string, GroupRound>>
  /** Whether pods are nominated for the nodes they are planned for. */
  readonly isSteering: boolean
}

export const emptyMemory: OperatorMemory = {
  marked: [],
  unseenClaims: [],
  plans: [],
  reserved: {},
  reservedOfQuotas: {},
  predictions: [],
  pausedUntilMs: {},
  refusedClaims: {},
  offeringsOnTrial: [],
  buffers: [],
  bufferRooms: {},
  groupVersions: [],
  groupRounds: {},
  isSteering: true,
}

/** The part that is in the state. */
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
  | 'reservedOfQuotas'
  | 'pausedUntilMs'
  | 'refusedClaims'
>

/** @param pools names of the NodePools. */
export function rememberedBy(
  state: Pick<
    ClusterState,
    | 'buffers'
    | 'claimRefusals'
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
    reservedOfQuotas: state.limitReservations.ofQuotas(),
    pausedUntilMs: byPool((pool) => {
      const leftMs = state.readinessPauses.leftMs(pool)
      return leftMs > 0 ? nowMs + leftMs : undefined
    }),
    refusedClaims: Object.fromEntries(state.claimRefusals.all()),
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

/** Restores a memory. The caches must be filled, and unseen claims be among their objects. */
export function recall(
  state: Pick<
    ClusterState,
    | 'buffers'
    | 'claimRefusals'
    | 'limitReservations'
    | 'mark'
    | 'plans'
    | 'podGroups'
    | 'predictions'
    | 'readinessPauses'
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
  for (const [quota, amounts] of Object.entries(memory.reservedOfQuotas ?? {}))
    state.limitReservations.restoreOfQuota(quota, amounts)
  for (const [uid, refusal] of Object.entries(memory.refusedClaims)) state.claimRefusals.restore(uid, refusal)
  for (const [pool, untilMs] of Object.entries(memory.pausedUntilMs))
    state.readinessPauses.restore(pool, untilMs)
}
