import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parse } from 'yaml'
import { goTime, statusDocument, StatusTransitions } from './status-document.ts'
import type { GroupReport, NodeCounts, RunningReport } from './status-report.ts'

const startMs = Date.parse('2026-01-01T00:00:00Z')

const noNodes: NodeCounts = {
  registered: 0,
  ready: 0,
  notStarted: 0,
  suspended: 0,
  beingDeleted: 0,
  unready: 0,
  resourceUnready: 0,
  longUnregistered: 0,
  unregistered: 0,
}

function group(fields: Partial<GroupReport> = {}): GroupReport {
  return {
    id: 'pool-a',
    isHealthy: true,
    counts: { ...noNodes, registered: 3, ready: 3 },
    targetSize: 3,
    minSize: 1,
    maxSize: 10,
    isScalingUp: false,
    candidates: 0,
    ...fields,
  }
}

function report(fields: Partial<RunningReport> = {}): RunningReport {
  return {
    kind: 'running',
    message: '',
    cluster: {
      isHealthy: true,
      counts: { ...noNodes, registered: 3, ready: 3 },
      isScalingUp: false,
      candidates: 0,
    },
    groups: [group()],
    faults: new Map(),
    holds: new Map(),
    quotas: [],
    ...fields,
  }
}

interface Part {
  readonly status: string
  readonly lastTransitionTime: string
  readonly lastProbeTime: string
  readonly backoffInfo?: { readonly errorCode?: string; readonly errorMessage?: string }
}

interface Parsed {
  readonly message?: string
  readonly clusterWide: { readonly health: Part; readonly scaleUp: Part; readonly scaleDown: Part }
  readonly nodeGroups: readonly {
    readonly message?: string
    readonly health: Part
    readonly scaleUp: Part
    readonly scaleDown: Part
  }[]
  readonly leftOut?: readonly { readonly name: string; readonly message: string }[]
}

function parsed(value: RunningReport, nowMs = startMs, transitions = new StatusTransitions()): Parsed {
  return parse(statusDocument(value, nowMs, transitions)) as Parsed
}

test('the document has the members that tools know, in the order in which Go writes them', () => {
  const counts = {
    ...noNodes,
    registered: 6,
    ready: 3,
    notStarted: 1,
    beingDeleted: 1,
    unready: 1,
    resourceUnready: 1,
    unregistered: 2,
  }
  const value = report({ groups: [group({ counts, candidates: 2 })] })
  assert.equal(
    statusDocument(value, startMs + 19_546, new StatusTransitions()),
    `autoscalerStatus: Running
clusterWide:
  health:
    lastProbeTime: "2026-01-01T00:00:19Z"
    lastTransitionTime: "2026-01-01T00:00:19Z"
    nodeCounts:
      longUnregistered: 0
      registered:
        notStarted: 0
        ready: 3
        suspended: 0
        total: 3
        unready:
          resourceUnready: 0
          total: 0
      unregistered: 0
    status: Healthy
  scaleDown:
    lastProbeTime: "2026-01-01T00:00:19Z"
    lastTransitionTime: "2026-01-01T00:00:19Z"
    status: NoCandidates
  scaleUp:
    lastProbeTime: "2026-01-01T00:00:19Z"
    lastTransitionTime: "2026-01-01T00:00:19Z"
    status: NoActivity
nodeGroups:
- health:
    cloudProviderTarget: 3
    lastProbeTime: "2026-01-01T00:00:19Z"
    lastTransitionTime: "2026-01-01T00:00:19Z"
    maxSize: 10
    minSize: 1
    nodeCounts:
      longUnregistered: 0
      registered:
        beingDeleted: 1
        notStarted: 1
        ready: 3
        suspended: 0
        total: 6
        unready:
          resourceUnready: 1
          total: 1
      unregistered: 2
    status: Healthy
  name: pool-a
  scaleDown:
    candidates: 2
    lastProbeTime: "2026-01-01T00:00:19Z"
    lastTransitionTime: "2026-01-01T00:00:19Z"
    status: CandidatesPresent
  scaleUp:
    backoffInfo: {}
    lastProbeTime: "2026-01-01T00:00:19Z"
    lastTransitionTime: "2026-01-01T00:00:19Z"
    status: NoActivity
time: 2026-01-01 00:00:19.546 +0000 UTC
`,
  )
})

test('times are printed as Go prints them', () => {
  assert.equal(goTime(startMs), '2026-01-01 00:00:00 +0000 UTC')
  assert.equal(goTime(startMs + 10), '2026-01-01 00:00:00.01 +0000 UTC')
})

test('CAS-100 a start says Initializing and nothing of the cluster', () => {
  const initializing = { kind: 'initializing', message: '' } as const
  assert.equal(
    statusDocument(initializing, startMs, new StatusTransitions()),
    'autoscalerStatus: Initializing\ntime: 2026-01-01 00:00:00 +0000 UTC\n',
  )
  const empty = statusDocument(report({ groups: [] }), startMs, new StatusTransitions())
  assert.ok(!empty.includes('nodeGroups'))
})

test('CAS-101 a transition time changes with the status only, a probe time each time', () => {
  const transitions = new StatusTransitions()
  const at = (minutes: number, value: RunningReport) => parsed(value, startMs + minutes * 60_000, transitions)
  at(0, report())
  const scaling = report({ groups: [group({ isScalingUp: true })] })
  const second = at(5, scaling).nodeGroups[0]
  assert.equal(second?.health.lastTransitionTime, '2026-01-01T00:00:00Z')
  assert.equal(second.health.lastProbeTime, '2026-01-01T00:05:00Z')
  assert.equal(second.scaleUp.lastTransitionTime, '2026-01-01T00:05:00Z')
  const third = at(6, scaling)
  assert.equal(third.nodeGroups[0]?.scaleUp.lastTransitionTime, '2026-01-01T00:05:00Z')
  assert.equal(third.clusterWide.scaleUp.lastTransitionTime, '2026-01-01T00:00:00Z')
  // A group that was away begins anew.
  at(7, report({ groups: [] }))
  assert.equal(at(8, scaling).nodeGroups[0]?.health.lastTransitionTime, '2026-01-01T00:08:00Z')
})

test('CAS-102 scaling up goes before unhealthy, that before backed off', () => {
  const backoff = { code: 'timeout', message: 'm'.repeat(600) }
  const scaleUp = (fields: Partial<GroupReport>) =>
    parsed(report({ groups: [group(fields)] })).nodeGroups[0]?.scaleUp
  assert.equal(scaleUp({ backoff, isHealthy: false, isScalingUp: true })?.status, 'InProgress')
  assert.equal(scaleUp({ backoff, isHealthy: false })?.status, 'Unhealthy')
  const backedOff = scaleUp({ backoff })
  assert.equal(backedOff?.status, 'Backoff')
  assert.equal(backedOff.backoffInfo?.errorCode, 'timeout')
  const { errorMessage = '' } = backedOff.backoffInfo
  assert.equal(errorMessage.length, 500)
  assert.ok(errorMessage.endsWith('m<truncated>'))
  const short = 'm'.repeat(500)
  assert.equal(scaleUp({ backoff: { code: 'c', message: short } })?.backoffInfo?.errorMessage, short)
  assert.equal(scaleUp({})?.status, 'NoActivity')
})

test('groups that cannot be scaled are told with the reason, ten of them', () => {
  const faults = new Map(
    Array.from({ length: 12 }, (_, at) => [`pool-${at}`, 'the cloud answered 500'] as const),
  )
  const { message } = parsed(report({ message: 'hello', faults }))
  assert.match(
    message ?? '',
    /^hello; not scaled now: pool-0: the cloud answered 500; .*pool-9: .*; and 2 more$/,
  )
  assert.equal(parsed(report()).message, undefined)
})

test('CAG-54 CAG-55 groups that are held are told with the reason', () => {
  const holds = new Map([
    ['a', { forbids: 'shrinking', reason: 'MachineDeployment a is rolling out' }],
    ['b', { forbids: 'all', reason: 'Cluster b is paused' }],
  ] as const)
  assert.equal(
    parsed(report({ holds })).message,
    'not changed now: b: Cluster b is paused; not shrunk now: a: MachineDeployment a is rolling out',
  )
})

test('CAG-15 CAG-54 a group tells why it is held or faulty, and what is no group why it is left out', () => {
  const holds = new Map([['a', { forbids: 'all', reason: 'Cluster c is paused' }]] as const)
  const faults = new Map([
    ['b', 'the cloud answered 500'],
    ['c', 'annotation max-size is "many"'],
  ])
  const groups = ['a', 'b', 'd'].map((id) => group({ id }))
  const { leftOut, nodeGroups } = parsed(report({ faults, groups, holds }))
  assert.deepEqual(
    nodeGroups.map(({ message }) => message),
    ['not changed now: Cluster c is paused', 'not scaled now: the cloud answered 500', undefined],
  )
  assert.deepEqual(leftOut, [{ name: 'c', message: 'annotation max-size is "many"' }])
})

test('texts of the cloud do not break the document', () => {
  const message = 'a: b\n- "c"\t# d\u0000'
  const value = report({ groups: [group({ id: 'constructor', backoff: { code: 'no', message } })] })
  assert.equal(parsed(value).nodeGroups[0]?.scaleUp.backoffInfo?.errorMessage, message)
})
