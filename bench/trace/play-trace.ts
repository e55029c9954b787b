/** Plays a trace on virtual time, and reports progress. */
import {
  formatResources,
  kinds,
  type KubeObject,
  type NodePool,
  type Pod,
  type ResourceRequirements,
  type Resources,
} from '@tenon/api'
import { type PlayReport, type TimedChange } from '@tenon/ask'
import { Play } from '@tenon/ask/play'
import { defaultSettings, type Settings } from '@tenon/operator'
import { requestsWithSeat, type Seats, seatsOf, traceCatalogue } from './catalogue.ts'
import type { TraceInstance } from './read-trace.ts'

const dayMs = 86_400_000
const startMs = Date.UTC(2026, 0, 1)
const namespace = 'default'

/** What is played, and how. */
export interface TraceRun {
  readonly instances: readonly TraceInstance[]
  readonly days: number
  readonly compatibility: Settings['compatibility']
  readonly seed: number
  /** Called after every virtual day. */
  readonly progress: (day: number, report: PlayReport) => void
}

/** Plays the first `days` of the trace, from an empty cluster. */
export async function playTrace(run: TraceRun): Promise<PlayReport> {
  const seats = seatsOf(run.instances)
  const play = await Play.start({
    objects: [tracePool, ...owners(run.instances)],
    catalogue: traceCatalogue(seats),
    settings: { ...defaultSettings, compatibility: run.compatibility, clusterStateObservability: false },
    seed: run.seed,
    startMs,
  })
  const changes = changesOf(run.instances, seats)
  let next = 0
  for (let day = 1; day < run.days + 1; day++) {
    const untilMs = startMs + Math.min(day, run.days) * dayMs
    const from = next
    while (next < changes.length && (changes[next]?.atMs ?? 0) <= untilMs) next++
    await play.run(changes.slice(from, next), untilMs)
    run.progress(day, await play.report())
  }
  const report = await play.report()
  await play.stop()
  return report
}

const tracePool: NodePool = {
  apiVersion: 'karpenter.sh/v1',
  kind: 'NodePool',
  metadata: { name: 'default', uid: 'nodepool-default', generation: 1 },
  spec: {
    template: {
      spec: {
        nodeClassRef: { group: 'trace.example.com', kind: 'TraceNodeClass', name: 'default' },
        requirements: [],
        expireAfter: 'Never',
      },
    },
    disruption: {
      consolidateAfter: '1m',
      consolidationPolicy: 'WhenEmptyOrUnderutilized',
      budgets: [{ nodes: '10%' }],
    },
  },
}

/** The ReplicaSet of each service. */
function owners(instances: readonly TraceInstance[]): readonly KubeObject[] {
  const services = [...new Set(instances.map(({ service }) => service))].toSorted()
  return services.map((service) => {
    const podLabels = { app: service }
    const object = {
      apiVersion: 'apps/v1',
      kind: 'ReplicaSet',
      metadata: { name: service, namespace, uid: uidOf(service), generation: 1 },
      spec: {
        replicas: 0,
        selector: { matchLabels: podLabels },
        template: { metadata: { labels: podLabels }, spec: { containers: [] } },
      },
    }
    return object
  })
}

const uidOf = (service: string): string => `replicaset-${service}`

function changesOf(instances: readonly TraceInstance[], seats: Seats): readonly TimedChange[] {
  const changes = instances.flatMap((instance): TimedChange[] => {
    const { name: id, startSeconds, endSeconds } = instance
    const came: TimedChange = {
      atMs: startMs + startSeconds * 1000,
      change: { kind: 'podAdded', id, pod: podOf(instance, seats) },
    }
    if (endSeconds === undefined) return [came]
    return [came, { atMs: startMs + endSeconds * 1000, change: { kind: 'podEnded', id } }]
  })
  return changes.toSorted((a, b) => a.atMs - b.atMs)
}

function podOf(instance: TraceInstance, seats: Seats): Pod {
  const { name, service } = instance
  const podLabels = { app: service }
  const all = requestsWithSeat(instance, seats)
  return {
    apiVersion: 'v1',
    kind: kinds.pod.kind,
    metadata: {
      name,
      namespace,
      labels: podLabels,
      ownerReferences: [
        { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: service, uid: uidOf(service), controller: true },
      ],
    },
    spec: {
      containers: [{ name: 'app', image: 'app', resources: resourcesOf(all) }],
    },
  }
}

/** Extended resources need limits. */
function resourcesOf(requests: Resources): ResourceRequirements {
  const amounts = formatResources(requests)
  const extended = Object.entries(amounts).filter(([name]) => name.includes('/'))
  return { requests: amounts, limits: Object.fromEntries(extended) }
}
