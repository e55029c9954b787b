/** The figures of random clusters (ADO-4). All thousand, which take two minutes of CPU: `REPORT_CLUSTERS=1000`. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kinds, type KubeObject, type NodePool, type Pod, type PodDisruptionBudget } from '@tenon/api'
import { SeededRandom } from '@tenon/runtime'
import { ofKind } from '../cost/priced.ts'
import type { Snapshot } from '../snapshot/snapshot.ts'
import { aClaimedNode, aRunning, Draw, randomCluster } from '../testing/clusters.test-support.ts'
import { type ClusterReport, clusterReport, reportedDimensions } from './report.ts'

const clusters = Number(process.env['REPORT_CLUSTERS'] ?? 200)
/** A study waits for turns of the event loop, which others can use. */
const atOnce = 10
/** Sums of the same prices in another order. */
const tiny = 1e-9

/** A random cluster whose pods run on nodes of random types, with all that keeps nodes from being removed. */
function runningCluster(draw: Draw): Snapshot {
  const snapshot = randomCluster(draw)
  const [catalogue] = snapshot.catalogues
  const types = catalogue?.instanceTypes ?? []
  const pools = snapshot.objects.filter(({ kind }) => kind === 'NodePool') as NodePool[]
  const fleet = Array.from({ length: draw.below(6) }, (_, at) => {
    const [pool, type] = [pools[draw.below(pools.length)], types[draw.below(types.length)]]
    return pool === undefined || type === undefined ? [] : aClaimedNode(`fleet-${at}`, pool, type)
  }).flat()
  const objects = [...snapshot.objects, ...fleet]
  const nodes = ofKind({ objects }, kinds.node)
  const placed = objects.map((object): KubeObject => {
    const node = nodes[draw.below(nodes.length + 1)]
    if (object.kind !== 'Pod' || node === undefined) return object
    const pod = aRunning(object as Pod, node.metadata.name)
    if (!draw.chance(25)) return pod
    return { ...pod, metadata: { ...pod.metadata, annotations: { 'karpenter.sh/do-not-disrupt': 'true' } } }
  })
  const budget: PodDisruptionBudget = {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: 'all', namespace: 'default' },
    spec: { selector: { matchLabels: { app: 'app-0' } }, maxUnavailable: draw.below(2) },
  }
  return { ...snapshot, objects: [...placed, ...(draw.chance(30) ? [budget] : [])] }
}

function assertAddsUp({ cost, now, plans, obstacles }: ClusterReport, seed: string): void {
  for (const by of reportedDimensions) {
    const { groups, idlePerHour, totalPerHour, unpriced } = cost[by]
    const parts = groups.reduce((sum, each) => sum + each.requestedPerHour + each.idlePerHour, idlePerHour)
    assert.ok(
      Math.abs(parts - totalPerHour) < tiny,
      `${seed}: the parts by ${by} are ${parts} of ${totalPerHour}`,
    )
    assert.ok(Math.abs(totalPerHour - now.price.pricePerHour) < tiny, `${seed}: one total`)
    assert.equal(unpriced.length, now.price.unpriced, seed)
  }
  if (plans === undefined) {
    assert.ok(obstacles.every(({ pricePerHour }) => pricePerHour === undefined))
    return
  }
  const { byMoves, fromNothing } = plans
  assert.ok(byMoves.price.pricePerHour <= now.price.pricePerHour + tiny, `${seed}: moves cost more`)
  assert.ok(
    fromNothing.price.pricePerHour <= byMoves.price.pricePerHour + tiny,
    `${seed}: nothing costs more`,
  )
  for (const { price } of [byMoves, fromNothing]) assert.equal(price.unpriced, now.price.unpriced, seed)
  for (const { pricePerHour } of obstacles) assert.ok(pricePerHour === undefined || pricePerHour >= 0, seed)
}

test('ADO-4 in a thousand random clusters parts add up to totals, and from nothing never costs more than as it is', async () => {
  let [cheaper, blocked] = [0, 0]
  const check = async (at: number): Promise<void> => {
    const seed = `report-${at}`
    const snapshot = runningCluster(new Draw(new SeededRandom(seed)))
    const report = await clusterReport(snapshot, { usage: undefined, serverVersion: undefined })
    assertAddsUp(report, seed)
    const { plans, now } = report
    if (plans === undefined) return
    if (plans.fromNothing.price.pricePerHour < now.price.pricePerHour) cheaper++
    if (plans.fromNothing.price.pricePerHour < plans.byMoves.price.pricePerHour) blocked++
  }
  for (let first = 0; first < clusters; first += atOnce)
    await Promise.all(
      Array.from({ length: Math.min(atOnce, clusters - first) }, (_, at) => check(first + at)),
    )
  // Otherwise the clusters would show nothing.
  assert.ok(cheaper > clusters / 10, `${cheaper} are cheaper from nothing`)
  assert.ok(blocked > clusters / 100, `${blocked} are kept from it`)
})
