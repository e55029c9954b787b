import { humanDuration } from '@tenon/api'
import { perObject } from '@tenon/runtime'
import type { TableColumn } from '../../contract.ts'
import { ageColumn, column, type Loose, nameColumn, orElse } from './cells.ts'

interface PodSummary {
  readonly ready: number
  readonly total: number
  readonly status: string
  readonly restarts: number
  /** End of the last run of the container that restarted last; NaN without one. */
  readonly lastRestartMs: number
}

/** READY, STATUS and RESTARTS; computed once per stored object. */
const summaryOf = perObject((pod: Loose): PodSummary => {
  const spec: Loose = pod['spec'] ?? {}
  const status: Loose = pod['status'] ?? {}
  const inits = initSummary(spec, status)
  let reason = orElse(status['reason'], orElse(status['phase'], 'Unknown'))
  if (hasCondition(status, 'PodScheduled', 'SchedulingGated')) reason = 'SchedulingGated'
  const mains = containerSummary(status)
  const total = (spec['containers']?.length ?? 0) + inits.sidecars
  let restarts = mains.restarts + inits.sidecarRestarts
  let lastRestartMs = latest(mains.lastRestartMs, inits.sidecarLastRestartMs)
  if (inits.reason !== undefined) {
    reason = inits.reason
    restarts = inits.restarts
    lastRestartMs = inits.lastRestartMs
  } else if (mains.reason !== undefined) {
    reason = mains.reason
    if (reason === 'Completed' && mains.running) {
      reason = hasTrueCondition(status, 'Ready') ? 'Running' : 'NotReady'
    }
  }
  reason = deletionReason(pod, status) ?? reason
  return { ready: mains.ready + inits.readySidecars, total, status: reason, restarts, lastRestartMs }
})

function deletionReason(pod: Loose, status: Loose): string | undefined {
  if (pod['metadata']?.deletionTimestamp === undefined) return undefined
  if (status['reason'] === 'NodeLost') return 'Unknown'
  const ended = status['phase'] === 'Succeeded' || status['phase'] === 'Failed'
  return ended ? undefined : 'Terminating'
}

function hasCondition(status: Loose, type: string, reason: string): boolean {
  return (status['conditions'] ?? []).some((one: Loose) => one['type'] === type && one['reason'] === reason)
}

function hasTrueCondition(status: Loose, type: string): boolean {
  return (status['conditions'] ?? []).some((one: Loose) => one['type'] === type && one['status'] === 'True')
}

function latest(a: number, b: number): number {
  if (Number.isNaN(a)) return b
  return Number.isNaN(b) ? a : Math.max(a, b)
}

function lastEnd(container: Loose): number {
  return Date.parse(container['lastState']?.terminated?.finishedAt ?? '')
}

interface ContainerSummary {
  ready: number
  restarts: number
  lastRestartMs: number
  running: boolean
  reason: string | undefined
}

function containerSummary(status: Loose): ContainerSummary {
  const summary: ContainerSummary = {
    ready: 0,
    restarts: 0,
    lastRestartMs: Number.NaN,
    running: false,
    reason: undefined,
  }
  // The first container with a problem decides the status, so go from last to first.
  for (const container of (status['containerStatuses'] ?? []).toReversed()) {
    summary.restarts += container.restartCount ?? 0
    summary.lastRestartMs = latest(summary.lastRestartMs, lastEnd(container))
    const { waiting, terminated, running } = container.state ?? {}
    if (waiting?.reason) summary.reason = waiting.reason
    else if (terminated) summary.reason = terminationReason(terminated)
    else if (container.ready && running) {
      summary.running = true
      summary.ready++
    }
  }
  return summary
}

function terminationReason(terminated: Loose): string {
  if (terminated['reason']) return terminated['reason']
  return terminated['signal'] ? `Signal:${terminated['signal']}` : `ExitCode:${terminated['exitCode']}`
}

interface InitSummary {
  sidecars: number
  readySidecars: number
  sidecarRestarts: number
  sidecarLastRestartMs: number
  restarts: number
  lastRestartMs: number
  reason: string | undefined
}

function initSummary(spec: Loose, status: Loose): InitSummary {
  const containers: readonly Loose[] = spec['initContainers'] ?? []
  const sidecars = new Set(
    containers.filter((one) => one['restartPolicy'] === 'Always').map((one) => one['name']),
  )
  const summary: InitSummary = {
    sidecars: sidecars.size,
    readySidecars: 0,
    sidecarRestarts: 0,
    sidecarLastRestartMs: Number.NaN,
    restarts: 0,
    lastRestartMs: Number.NaN,
    reason: undefined,
  }
  const statuses: readonly Loose[] = status['initContainerStatuses'] ?? []
  for (const [index, container] of statuses.entries()) {
    const isSidecar = sidecars.has(container['name'])
    summary.restarts += container['restartCount'] ?? 0
    summary.lastRestartMs = latest(summary.lastRestartMs, lastEnd(container))
    if (isSidecar) {
      summary.sidecarRestarts += container['restartCount'] ?? 0
      summary.sidecarLastRestartMs = latest(summary.sidecarLastRestartMs, lastEnd(container))
    }
    const { terminated, waiting } = container['state'] ?? {}
    if (terminated && terminated.exitCode === 0) continue
    if (isSidecar && container['started'] === true) {
      if (container['ready']) summary.readySidecars++
      continue
    }
    if (terminated) summary.reason = `Init:${terminationReason(terminated)}`
    else if (waiting?.reason && waiting.reason !== 'PodInitializing')
      summary.reason = `Init:${waiting.reason}`
    else summary.reason = `Init:${index}/${containers.length}`
    return hasTrueCondition(status, 'Initialized') ? { ...summary, reason: undefined } : summary
  }
  return summary
}

function restartsCell(pod: Loose, nowMs: number): string {
  const { restarts, lastRestartMs } = summaryOf(pod)
  if (restarts === 0 || Number.isNaN(lastRestartMs)) return String(restarts)
  return `${restarts} (${humanDuration(nowMs - lastRestartMs)} ago)`
}

function readinessGates(pod: Loose): string {
  const gates: readonly Loose[] = pod['spec']?.readinessGates ?? []
  if (gates.length === 0) return '<none>'
  const met = gates.filter((gate) => hasTrueCondition(pod['status'] ?? {}, gate['conditionType']))
  return `${met.length}/${gates.length}`
}

export const podColumns: readonly TableColumn[] = [
  nameColumn,
  column('Ready', 'string', (pod) => `${summaryOf(pod).ready}/${summaryOf(pod).total}`),
  column('Status', 'string', (pod) => summaryOf(pod).status),
  column('Restarts', 'string', restartsCell),
  ageColumn,
  column(
    'IP',
    'string',
    (pod) => orElse(pod['status']?.podIPs?.[0]?.ip ?? pod['status']?.podIP, '<none>'),
    1,
  ),
  column('Node', 'string', (pod) => orElse(pod['spec']?.nodeName, '<none>'), 1),
  column('Nominated Node', 'string', (pod) => orElse(pod['status']?.nominatedNodeName, '<none>'), 1),
  column('Readiness Gates', 'string', readinessGates, 1),
]
