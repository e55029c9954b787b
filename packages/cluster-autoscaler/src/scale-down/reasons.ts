/** Why a node is not removed (cluster-autoscaler.md 6.2 to 6.5), as data; names as in metrics. */
import type { Pod } from '@tenon/api'
import { nameOf } from '../pods/pod-traits.ts'
import type { LimitedResource } from '../model.ts'
import type { BlockingReason } from './drain/rules.ts'
import { renderUtilization, type Utilization } from './nodes/utilization.ts'

export type UnremovableReason =
  | { readonly kind: 'UnexpectedError'; readonly message: string }
  | { readonly kind: 'NotAutoscaled' }
  /** The cloud reports that its group must not shrink at present. */
  | { readonly kind: 'NodeGroupHeld'; readonly groupId: string; readonly reason: string }
  | { readonly kind: 'NodeGroupMinSizeReached'; readonly groupId: string; readonly minSize: number }
  /** Its removal failed in a recent simulation, for this reason. */
  | { readonly kind: 'RecentlyUnremovable'; readonly untilMs: number; readonly since: UnremovableReason }
  | { readonly kind: 'CurrentlyBeingDeleted' }
  | { readonly kind: 'ScaleDownDisabledAnnotation' }
  | { readonly kind: 'ScaleDownUnreadyDisabled' }
  | { readonly kind: 'NotUnderutilized'; readonly utilization: Utilization; readonly threshold: number }
  | { readonly kind: 'BlockedByPod'; readonly pod: Pod; readonly reason: BlockingReason }
  | { readonly kind: 'NoPlaceToMovePods'; readonly pod: Pod }
  /** Its group had a recent scale-up, deletion or failure. */
  | { readonly kind: 'NotUnneededOtherReason'; readonly groupId: string; readonly untilMs: number }
  | { readonly kind: 'NotUnneededLongEnough'; readonly forMs: number; readonly neededMs: number }
  | { readonly kind: 'NotUnreadyLongEnough'; readonly forMs: number; readonly neededMs: number }
  | { readonly kind: 'MinimalResourceLimitExceeded'; readonly resource: LimitedResource }
  | { readonly kind: 'BlockedByOnCompletionPod'; readonly pod: Pod }

export interface UnremovableNode {
  readonly nodeName: string
  readonly reason: UnremovableReason
}

const blockingWords: Readonly<Record<BlockingReason, string>> = {
  ControllerNotFound: 'its controller does not exist',
  MinReplicasReached: 'its controller has fewer replicas than --min-replica-count',
  NotReplicated: 'no controller would create it again',
  UnmovableKubeSystemPod: 'it is in kube-system and no PodDisruptionBudget selects it',
  NotSafeToEvictAnnotation: 'its annotation safe-to-evict is "false"',
  LocalStorageRequested: 'it has local storage',
  KeptForRequest: 'it stands for room that a ProvisioningRequest keeps',
  NotEnoughPdb: 'a PodDisruptionBudget lets none of its pods go',
}

/** The reason as text, for logs and explanations. */
export function renderReason(reason: UnremovableReason): string {
  switch (reason.kind) {
    case 'UnexpectedError':
      return reason.message
    case 'NotAutoscaled':
      return 'it is in no node group'
    case 'NodeGroupHeld':
      return `its node group ${reason.groupId} is held: ${reason.reason}`
    case 'NodeGroupMinSizeReached':
      return `its node group ${reason.groupId} would fall below its minimum of ${reason.minSize}`
    case 'RecentlyUnremovable':
      return `not looked at again before ${new Date(reason.untilMs).toISOString()}: ${renderReason(reason.since)}`
    case 'CurrentlyBeingDeleted':
      return 'it is being deleted'
    case 'ScaleDownDisabledAnnotation':
      return 'its annotation scale-down-disabled is "true"'
    case 'ScaleDownUnreadyDisabled':
      return 'it is not ready, and --scale-down-unready-enabled is false'
    case 'NotUnderutilized':
      return `its utilization (${renderUtilization(reason.utilization)}) is above the threshold ${reason.threshold}`
    case 'BlockedByPod':
      return `pod ${nameOf(reason.pod)} may not be moved: ${blockingWords[reason.reason]}`
    case 'NoPlaceToMovePods':
      return `pod ${nameOf(reason.pod)} fits on no other node`
    case 'NotUnneededOtherReason':
      return `its node group ${reason.groupId} is left alone until ${new Date(reason.untilMs).toISOString()}`
    case 'NotUnneededLongEnough':
      return `not needed for ${seconds(reason.forMs)} s, which must be more than ${seconds(reason.neededMs)} s`
    case 'NotUnreadyLongEnough':
      return `not ready and not needed for ${seconds(reason.forMs)} s, which must be more than ${seconds(reason.neededMs)} s`
    case 'MinimalResourceLimitExceeded':
      return `the cluster would fall below its minimum of ${reason.resource}`
    case 'BlockedByOnCompletionPod':
      return `it waits until pod ${nameOf(reason.pod)} has ended`
  }
}

function seconds(ms: number): number {
  return Math.floor(ms / 1000)
}
