/** The text of the status ConfigMap (cluster-autoscaler.md 7.1). Pure. */
import type { GroupHold } from '@tenon/provider'
import { rfc3339 } from '@tenon/runtime'
import { stringify } from 'yaml'
import type { GroupReport, NodeCounts, RunningReport, StatusReport } from './status-report.ts'

const longestMessage = 500
const cutMark = '<truncated>'
/** Maximum listed faults, and holds; the rest is counted. */
const mostFaults = 10

/** Remembers when each status last changed. */
export class StatusTransitions {
  #since = new Map<string, { readonly status: string; readonly atMs: number }>()
  #next = new Map<string, { readonly status: string; readonly atMs: number }>()

  /** When the part got its `status`; now, if it has changed. */
  sinceMs(part: string, status: string, nowMs: number): number {
    const known = this.#since.get(part)
    const entry = known?.status === status ? known : { status, atMs: nowMs }
    this.#next.set(part, entry)
    return entry.atMs
  }

  /** Forgets parts that were not used since the last call. */
  commit(): void {
    this.#since = this.#next
    this.#next = new Map()
  }
}

/** Go's time format: `2023-11-24 04:28:19.546 +0000 UTC`. */
export function goTime(ms: number): string {
  const [date = '', time = ''] = new Date(ms).toISOString().slice(0, -1).split('T')
  return `${date} ${time.replace(/\.?0+$/, '')} +0000 UTC`
}

/** The YAML under the key `status`. */
export function statusDocument(report: StatusReport, nowMs: number, transitions: StatusTransitions): string {
  const head = {
    time: goTime(nowMs),
    autoscalerStatus: report.kind === 'running' ? 'Running' : 'Initializing',
  }
  const document =
    report.kind === 'running'
      ? { ...head, ...runningParts(report, nowMs, transitions) }
      : { ...head, ...(report.message !== '' && { message: report.message }) }
  if (report.kind === 'running') transitions.commit()
  // YAML 1.1 parsers would read a bare date as a timestamp.
  return stringify(document, { indentSeq: false, lineWidth: 0, sortMapEntries: true, version: '1.1' })
}

type Times = (
  part: string,
  status: string,
) => {
  readonly lastProbeTime: string
  readonly lastTransitionTime: string
}

function runningParts(report: RunningReport, nowMs: number, transitions: StatusTransitions): object {
  const { cluster, groups } = report
  const times: Times = (part, status) => ({
    lastProbeTime: rfc3339(nowMs),
    lastTransitionTime: rfc3339(transitions.sinceMs(part, status, nowMs)),
  })
  const message = messageOf(report)
  const health = healthWord(cluster.isHealthy)
  const scaleUp = cluster.isScalingUp ? 'InProgress' : 'NoActivity'
  return {
    ...(message !== '' && { message }),
    clusterWide: {
      health: { status: health, nodeCounts: countsPart(cluster.counts), ...times('health', health) },
      scaleUp: { status: scaleUp, ...times('scaleUp', scaleUp) },
      scaleDown: scaleDownPart(cluster.candidates, 'scaleDown', times),
    },
    ...(groups.length > 0 && {
      nodeGroups: groups.map((group) => groupPart(group, whyNotScaled(group.id, report), times)),
    }),
    ...leftOutPart(report),
    ...(report.quotas.length > 0 && {
      capacityQuotas: report.quotas.map((quota) => ({ ...quota, message: cutMessage(quota.message) })),
    }),
  }
}

/** Faults of what is no group, such as an object with a malformed annotation. */
function leftOutPart({ groups, faults }: RunningReport): object {
  const ids = new Set(groups.map(({ id }) => id))
  const leftOut = [...faults].filter(([id]) => !ids.has(id))
  if (leftOut.length === 0) return {}
  return { leftOut: leftOut.map(([name, reason]) => ({ name, message: cutMessage(reason) })) }
}

/** Why a group is not scaled, or not shrunk; empty if it is. */
function whyNotScaled(id: string, { faults, holds }: RunningReport): string {
  const [fault, hold] = [faults.get(id), holds.get(id)]
  if (fault !== undefined) return `not scaled now: ${cutMessage(fault)}`
  if (hold === undefined) return ''
  return `not ${hold.forbids === 'all' ? 'changed' : 'shrunk'} now: ${cutMessage(hold.reason)}`
}

function groupPart(group: GroupReport, message: string, times: Times): object {
  const { id, counts, targetSize, minSize, maxSize, candidates } = group
  const health = healthWord(group.isHealthy)
  const scaleUp = scaleUpWord(group)
  return {
    name: id,
    ...(message !== '' && { message }),
    health: {
      status: health,
      nodeCounts: countsPart(counts),
      cloudProviderTarget: targetSize,
      minSize,
      maxSize,
      ...times(`health/${id}`, health),
    },
    scaleUp: { status: scaleUp, backoffInfo: backoffPart(group), ...times(`scaleUp/${id}`, scaleUp) },
    scaleDown: scaleDownPart(candidates, `scaleDown/${id}`, times),
  }
}

function countsPart(counts: NodeCounts): object {
  const { registered, ready, notStarted, suspended, beingDeleted, unready, resourceUnready } = counts
  return {
    registered: {
      total: registered,
      ready,
      notStarted,
      suspended,
      ...(beingDeleted > 0 && { beingDeleted }),
      unready: { total: unready, resourceUnready },
    },
    longUnregistered: counts.longUnregistered,
    unregistered: counts.unregistered,
  }
}

function scaleDownPart(candidates: number, part: string, times: Times): object {
  const status = candidates > 0 ? 'CandidatesPresent' : 'NoCandidates'
  return { status, ...(candidates > 0 && { candidates }), ...times(part, status) }
}

function scaleUpWord({ isScalingUp, isHealthy, backoff }: GroupReport): string {
  if (isScalingUp) return 'InProgress'
  if (!isHealthy) return 'Unhealthy'
  return backoff === undefined ? 'NoActivity' : 'Backoff'
}

function backoffPart({ backoff }: GroupReport): object {
  return backoff === undefined ? {} : { errorCode: backoff.code, errorMessage: cutMessage(backoff.message) }
}

function healthWord(isHealthy: boolean): string {
  return isHealthy ? 'Healthy' : 'Unhealthy'
}

function messageOf({ message, faults, holds }: RunningReport): string {
  const held = (forbids: GroupHold['forbids']) =>
    [...holds].flatMap(([id, hold]) => (hold.forbids === forbids ? [[id, hold.reason] as const] : []))
  return [
    message,
    listOf('not scaled now', [...faults]),
    listOf('not changed now', held('all')),
    listOf('not shrunk now', held('shrinking')),
  ]
    .filter((text) => text !== '')
    .join('; ')
}

/** Groups with reasons; empty if there are none. */
function listOf(title: string, reasons: readonly (readonly [id: string, reason: string])[]): string {
  if (reasons.length === 0) return ''
  const shown = reasons.slice(0, mostFaults).map(([id, reason]) => `${id}: ${cutMessage(reason)}`)
  const rest = reasons.length - shown.length
  return `${title}: ${shown.join('; ')}${rest > 0 ? `; and ${rest} more` : ''}`
}

function cutMessage(message: string): string {
  if (message.length <= longestMessage) return message
  return `${message.slice(0, longestMessage - cutMark.length)}${cutMark}`
}
