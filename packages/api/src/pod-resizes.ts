import type { PodStatus } from './objects.ts'

/** Whether a kubelet has refused a resize in place for good: what the spec asks for will not come. */
export function isResizeInfeasible(status: PodStatus | undefined): boolean {
  return (status?.conditions ?? []).some(
    ({ type, reason }) => type === 'PodResizePending' && reason === 'Infeasible',
  )
}
