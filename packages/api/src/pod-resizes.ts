import type { PodStatus } from './objects.ts'

/** Whether the kubelet has rejected an in-place resize as infeasible: the pod will not get what its spec requests. */
export function isResizeInfeasible(status: PodStatus | undefined): boolean {
  return (status?.conditions ?? []).some(
    ({ type, reason }) => type === 'PodResizePending' && reason === 'Infeasible',
  )
}
