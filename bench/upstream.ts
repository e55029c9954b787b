/**
 * Cases of the upstream performance suite on a real control plane with nodes simulated by kwok, compared with
 * the thresholds of that suite (operations.md 13.3).
 *
 *   node bench/upstream.ts [--only CASE] [--pods N] [--json]
 *
 * Every case gets a new control plane. `P95 MiB` and `cores` are the controller's alone, sampled every 5 s over
 * the phase; `min` counts until nothing changes any more. The rest of the cluster shares the host, so times
 * mean little on a busy one. `--pods` plays smaller cases; thresholds are those of full ones.
 */
import { karpenterKinds, kinds, labels, type NodePool, parseResource, type Resources } from '@tenon/api'
import { SystemClock } from '@tenon/runtime'
import { deployment, ofApp, proofKinds } from '../conformance/src/scheduling-proof/objects.ts'
import { benchArguments } from './arguments.ts'
import { followReady, onStand, type Stand } from './control-plane/stand.ts'
import { type Case, cases, type Change, type Phase, shapes, type Threshold } from './upstream/cases.ts'
import { type Samples, sampled } from './upstream/sampler.ts'

const giveUpMs = 60 * 60_000
const pollMs = 250
/** A phase is over when nothing has changed for this long, which is not counted. */
const quietMs = 45_000
const discovery = 'testing/drifted'

const pool: NodePool = {
  apiVersion: 'karpenter.sh/v1',
  kind: 'NodePool',
  metadata: { name: 'default' },
  spec: {
    disruption: {
      consolidationPolicy: 'WhenEmptyOrUnderutilized',
      consolidateAfter: '10s',
      budgets: [{ nodes: '100%' }],
    },
    limits: { cpu: '10000', memory: '40000Gi' },
    template: {
      spec: {
        nodeClassRef: { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'default' },
        expireAfter: 'Never',
        requirements: [
          { key: labels.os, operator: 'In', values: ['linux'] },
          { key: labels.capacityType, operator: 'In', values: ['on-demand'] },
          { key: 'karpenter.kwok.sh/instance-size', operator: 'Lt', values: ['32'] },
        ],
      },
    },
  },
}

interface Row extends Samples {
  readonly case: string
  readonly phase: string
  readonly nodes: number
  readonly cpuPercent: number
  readonly memoryPercent: number
  readonly threshold: Threshold
  /** Figures that exceed their threshold. */
  readonly over: readonly string[]
}

const values = benchArguments(
  'upstream',
  'Cases of the upstream performance suite on a real control plane.',
  {
    only: { type: 'string', help: 'one case' },
    pods: { type: 'string', help: 'plays smaller cases' },
    json: { type: 'boolean', help: 'one JSON document for each phase' },
  },
)
const chosen = cases.filter(({ name }) => values.only === undefined || values.only === name)
if (chosen.length === 0) fail(`--only ${values.only}: give ${cases.map(({ name }) => name).join(' or ')}`)
const podsAsked = values.pods === undefined ? undefined : Number(values.pods)
if (podsAsked !== undefined && !(Number.isInteger(podsAsked) && podsAsked > 0))
  fail(`--pods ${values.pods}: use an integer above 0`)

const clock = new SystemClock()
if (!values.json) line('case / phase', 'P95 MiB', 'cores', 'min', 'cpu %', 'memory %', 'nodes')
for (const each of chosen) {
  const sized = podsAsked === undefined ? each : { ...each, pods: podsAsked }
  await onStand({ clock, pool }, (stand) => play(sized, stand))
}

async function play(what: Case, stand: Stand): Promise<void> {
  const stop = new AbortController()
  try {
    const isReady = await followReady(stand.client, clock, stop.signal)
    let share = 0
    for (const phase of what.phases) {
      if (phase.change.kind === 'scale') ({ share } = phase.change)
      const wanted = replicasOf(what, share).reduce((sum, each) => sum + each, 0)
      const samples = await sampled(clock, stand.controller, async () => {
        await apply(what, phase.change, stand)
        return await quiet(stand, phase.change, () => isReady.size === wanted)
      })
      print(await rowOf(what, phase, samples, stand))
    }
  } finally {
    stop.abort()
  }
}

/** Pods of each Deployment at a fraction of the full case. */
function replicasOf({ deployments, pods }: Case, share: number): readonly number[] {
  return Array.from({ length: deployments }, (_, index) =>
    Math.round((Math.floor(pods / deployments) + (index < pods % deployments ? 1 : 0)) * share),
  )
}

async function apply(what: Case, change: Change, { client }: Stand): Promise<void> {
  if (change.kind === 'drift') {
    const metadata = { labels: { [discovery]: 'yes' } }
    await client.patch(karpenterKinds.nodePool, { name: 'default' }, { spec: { template: { metadata } } })
    return
  }
  const known = new Set((await client.list(proofKinds.deployment)).map(({ metadata }) => metadata.name))
  for (const [index, replicas] of replicasOf(what, change.share).entries()) {
    const name = `${what.name.toLowerCase()}-${index}`
    if (known.has(name)) {
      const key = { namespace: 'default', name }
      await client.patch(proofKinds.deployment, key, { spec: { replicas } })
      continue
    }
    const requests = shapes[index % shapes.length] ?? shapes[0]
    const spread = {
      topologySpreadConstraints: [
        {
          maxSkew: 1,
          topologyKey: labels.hostname,
          whenUnsatisfiable: 'DoNotSchedule',
          labelSelector: ofApp(name),
        },
      ],
    } as const
    const spec = what.isSpread ? { spec: spread } : {}
    const { type, object } = deployment(replicas, { namespace: 'default', name, requests, ...spec })
    await client.create(type, object)
  }
}

/** Waits until all pods are Ready, all claims have the current template, and nodes no longer change. */
async function quiet(
  { client, controller }: Stand,
  change: Change,
  areReady: () => boolean,
): Promise<{ readonly endedMs: number }> {
  const start = clock.monotonic()
  let nodes = ''
  let sinceMs = start
  for (;;) {
    controller.assertRunning()
    const claims = await client.list(karpenterKinds.nodeClaim)
    const names = claims
      .map(({ metadata }) => metadata.name)
      .toSorted()
      .join()
    const isSettled =
      claims.every(({ metadata }) => metadata.deletionTimestamp === undefined) &&
      (change.kind !== 'drift' || claims.every(({ metadata }) => metadata.labels?.[discovery] === 'yes'))
    const now = clock.monotonic()
    if (!areReady() || !isSettled || names !== nodes) {
      nodes = names
      sinceMs = now
    }
    if (now - sinceMs >= quietMs) return { endedMs: sinceMs }
    if (now - start > giveUpMs) throw new Error('the cluster has not come to rest in an hour')
    await clock.sleep(pollMs)
  }
}

async function rowOf(what: Case, { name, threshold }: Phase, samples: Samples, stand: Stand): Promise<Row> {
  const nodes = await stand.client.list(kinds.node)
  const pods = await stand.client.list(kinds.pod)
  const asked = total(
    pods.flatMap(({ spec }) => spec.containers.map(({ resources }) => resources?.requests ?? {})),
  )
  const offered = total(nodes.map(({ status }) => status?.allocatable ?? {}))
  const percent = (resource: string) => (100 * (asked[resource] ?? 0)) / (offered[resource] ?? Number.NaN)
  const figures = { ...samples, cpuPercent: percent('cpu'), memoryPercent: percent('memory') }
  const over = [
    ...(figures.memoryMiB > threshold.memoryMiB ? ['memory'] : []),
    ...(figures.cpuCores > threshold.cpuCores ? ['cores'] : []),
    ...(figures.seconds / 60 > (threshold.minutes ?? Number.POSITIVE_INFINITY) ? ['time'] : []),
    ...(figures.cpuPercent < (threshold.cpuPercent ?? 0) ? ['cpu used'] : []),
    ...(figures.memoryPercent < (threshold.memoryPercent ?? 0) ? ['memory used'] : []),
  ]
  return { case: what.name, phase: name, nodes: nodes.length, ...figures, threshold, over }
}

function total(lists: readonly Readonly<Record<string, string>>[]): Resources {
  const sums: Record<string, number> = {}
  for (const list of lists)
    for (const [resource, quantity] of Object.entries(list))
      sums[resource] = (sums[resource] ?? 0) + parseResource(resource, quantity)
  return sums
}

function print(row: Row): void {
  if (values.json) {
    process.stdout.write(`${JSON.stringify(row)}\n`)
    return
  }
  const { threshold } = row
  line(
    `${row.case} ${row.phase}`,
    row.memoryMiB.toFixed(0),
    row.cpuCores.toFixed(2),
    (row.seconds / 60).toFixed(1),
    row.cpuPercent.toFixed(0),
    row.memoryPercent.toFixed(0),
    String(row.nodes),
  )
  line(
    '  threshold',
    `<= ${threshold.memoryMiB}`,
    `<= ${threshold.cpuCores}`,
    threshold.minutes === undefined ? '' : `<= ${threshold.minutes}`,
    threshold.cpuPercent === undefined ? '' : `> ${threshold.cpuPercent}`,
    threshold.memoryPercent === undefined ? '' : `> ${threshold.memoryPercent}`,
    row.over.length === 0 ? 'held' : `over: ${row.over.join(', ')}`,
  )
}

function line(first: string, ...cells: readonly string[]): void {
  process.stdout.write(`${first.padEnd(32)}${cells.map((cell) => cell.padStart(10)).join('')}\n`)
}

function fail(message: string): never {
  console.error(`upstream: ${message}`)
  process.exit(1)
}
