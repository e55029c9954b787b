/** Pods: kubectl's columns, and what each asks for. */
import { type Pod, podRequests } from '@tenon/api'
import { framed, none, type TableOf } from './cells.ts'

export const podTable: TableOf<Pod> = (facts) =>
  framed(facts, [
    { title: 'READY', value: readyOf },
    { title: 'STATUS', value: podStatus },
    { title: 'RESTARTS', value: (pod) => String(restartsOf(pod)) },
    { title: 'CPU', value: ({ spec, status }) => `${podRequests(spec, status)['cpu'] ?? 0}m` },
    {
      title: 'MEMORY',
      value: ({ spec, status }) => `${Math.round((podRequests(spec, status)['memory'] ?? 0) / 1024 ** 2)}Mi`,
    },
    { title: 'NODE', value: ({ spec }) => spec.nodeName ?? none, isWide: true },
    { title: 'NOMINATED-NODE', value: ({ status }) => status?.nominatedNodeName ?? none, isWide: true },
  ])

interface ContainerState {
  readonly ready?: boolean
  readonly restartCount?: number
  readonly state?: {
    readonly waiting?: { readonly reason?: string }
    readonly terminated?: { readonly reason?: string; readonly exitCode?: number }
    readonly running?: object
  }
}

interface ShownStatus {
  readonly phase?: string
  readonly reason?: string
  readonly containerStatuses?: readonly ContainerState[]
  readonly initContainerStatuses?: readonly ContainerState[]
}

function statusOf({ status }: Pod): ShownStatus {
  return status ?? {}
}

function readyOf(pod: Pod): string {
  const { containerStatuses = [] } = statusOf(pod)
  return `${containerStatuses.filter(({ ready }) => ready === true).length}/${pod.spec.containers.length}`
}

function restartsOf(pod: Pod): number {
  return (statusOf(pod).containerStatuses ?? []).reduce((sum, { restartCount = 0 }) => sum + restartCount, 0)
}

/** The word that says most: of the container that waits or has failed, before that of the pod. */
export function podStatus(pod: Pod): string {
  if (pod.metadata.deletionTimestamp !== undefined) return 'Terminating'
  const { phase = 'Unknown', reason, containerStatuses = [], initContainerStatuses = [] } = statusOf(pod)
  const at = initContainerStatuses.findIndex(({ state }) => state?.terminated?.exitCode !== 0)
  const initializing = initContainerStatuses[at]
  if (phase === 'Pending' && initializing !== undefined && containerStatuses.length > 0) {
    const word = reasonOf(initializing)
    return word === undefined ? `Init:${at}/${initContainerStatuses.length}` : `Init:${word}`
  }
  const told = containerStatuses.map(reasonOf).findLast((word) => word !== undefined)
  return told ?? reason ?? phase
}

function reasonOf({ state }: ContainerState): string | undefined {
  const { waiting, terminated } = state ?? {}
  if (waiting !== undefined) return waiting.reason === 'PodInitializing' ? undefined : waiting.reason
  if (terminated === undefined) return undefined
  const { reason, exitCode } = terminated
  return reason ?? (exitCode === undefined ? undefined : `ExitCode:${exitCode}`)
}
