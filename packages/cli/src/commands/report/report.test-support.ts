/** Reports without a cluster. */
import type { ObstacleKind, RiskKind } from '@tenon/ask/report'
import type { PrintedCostTable, PrintedReport } from './printed.ts'
import type { PrintedShadow } from './shadow.ts'

/** A name that no object can have, and a snapshot file may. */
export const hostile = `</title><script>document.title='owned'</script><img src=x onerror=alert(1)>|\`"'`

const obstacles: readonly ObstacleKind[] = ['nodePool', 'budget', 'doNotDisrupt', 'daemons', 'noRequests']
const risks: readonly RiskKind[] = ['noType', 'oldNode', 'versionSkew']

/** A report with every part, and `count` objects of each kind. */
export function aReport(name = 'checkout', count = 12): PrintedReport {
  const names = Array.from({ length: count }, (_, at) => `${name}-${at}`)
  const table: PrintedCostTable = {
    groups: names.map((each, at) => ({
      name: each,
      instances: 3,
      pods: 12,
      unpriced: at === 0 ? 3 : 0,
      ...(at > 0 && { perMonth: 100.5, idlePerMonth: 50.25 }),
    })),
    idlePerMonth: 12.5,
  }
  const money = { perHour: 1.5, perMonth: 1095 }
  const plan = {
    nodes: 20,
    removed: 10,
    evictions: 120,
    price: { perHour: 1, perMonth: 730 },
    savedPerMonth: 365,
    added: [],
  }
  return {
    takenAt: '2026-11-26T12:00:00Z',
    source: `Facts of 2026-11-26T12:00:00Z, from the objects of https://${name}.`,
    currency: 'EUR',
    autoscalers: [{ kind: 'clusterAutoscaler', by: `Deployment kube-system/${name}` }],
    notRead: ['volumeattachments'],
    unreadable: [`Node ${name} (spec must be a map)`],
    now: {
      nodes: 30,
      pods: 360,
      price: money,
      idle: money,
      cpu: { requested: 2, allocatable: 8 },
      memory: { requested: 0, allocatable: 0 },
    },
    unpriced: [{ name, type: name }, { name }],
    cost: { nodepool: table, type: table, namespace: table, owner: table },
    plans: { byMoves: plan, fromNothing: plan },
    obstacles: obstacles.map((kind, at) => ({
      kind,
      ...(at < 4 && { perMonth: 1000 / (at + 1) }),
      nodes: 10,
      pods: 40,
      items: names.slice(0, 20).map((each) => ({ name: each, nodes: 2, pods: 4 })),
      itemCount: count,
    })),
    isUsageKnown: false,
    risks: risks.map((kind) => ({
      kind,
      items: names.slice(0, 20).map((each) => ({ name: each, detail: '94 % of cpu' })),
      itemCount: count,
    })),
    next: [
      {
        title: 'Let Tenon decide beside what runs, and carry out nothing',
        file: { name: 'values.yaml', text: 'provider: kwok\nsettings:\n  observeOnly: true\n' },
        commands: ['tenon preflight', 'helm install tenon charts/tenon --values values.yaml'],
      },
    ],
  }
}

/** A comparison with every part, and `count` cases and pods. */
export function aShadow(name = 'checkout', count = 12): PrintedShadow {
  const at = '2026-01-01T00:00:00Z'
  const names = Array.from({ length: count }, (_, index) => `${name}-${index}`)
  return {
    takenAt: at,
    source: `the controller ${name}`,
    since: at,
    covered: { from: at, to: '2026-01-08T00:00:00Z', hours: 160 },
    gaps: [{ from: at, to: at }],
    gapCount: 1,
    gapHours: 8,
    restarts: 2,
    currency: 'EUR',
    cost: { other: 200, tenon: 150, difference: -50, byLaunches: -10, byMoves: -40 },
    cases: names.slice(0, 50).map((each) => ({
      kind: 'node',
      name: each,
      nodePool: name,
      instanceType: name,
      planned: [name],
      reason: 'Underutilized',
      other: 4,
      tenon: 1,
      difference: -3,
    })),
    otherCases: { count: 3, difference: 1 },
    notCompared: {
      unpricedHours: 3,
      undecidedHours: 4,
      undecidedCost: 5,
      unpricedLaunches: 6,
      otherCurrency: 7,
      types: [name],
    },
    nodeHours: { other: 320, tenon: 300 },
    launches: {
      other: 30,
      tenon: 20,
      byType: names.map((instanceType) => ({ instanceType, other: 2, tenon: 1 })),
      hadRoom: 1,
    },
    removals: { other: 20, tenon: 10, replacements: 5 },
    evictions: { other: 40, tenon: 20, unknownRemovals: 2 },
    waiting: { pods: 90, otherSeconds: 5400, tenonSeconds: 5000, podsNotCompared: 3 },
    leftPods: names.slice(0, 100).map((each) => ({ at, pod: `shop/${each}`, node: each, why: name })),
    leftPodCount: count,
    unreadableLines: 2,
  }
}
