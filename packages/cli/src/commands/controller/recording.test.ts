import assert from 'node:assert/strict'
import { mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { kinds, nodeClaimCrd, nodeOverlayCrd, nodePoolCrd, type Pod, type ResourceType } from '@tenon/api'
import { CatalogueProvider, readTraceFile, recordingOf, type TraceRecord } from '@tenon/ask'
import { aPool, aSnapshot, aType } from '@tenon/ask/test-clusters'
import { createCredentials, type SimulatedCloud, startDevCluster } from '@tenon/devcluster'
import { createCacheRegistry, createKubeClient } from '@tenon/kube'
import { defaultSettings, InlineDecider, Operator } from '@tenon/operator'
import { eventLoopTurns, SeededRandom, silentLogger, VirtualClock } from '@tenon/runtime'
import { keepRecording } from './recording.ts'

const startMs = Date.UTC(2026, 0, 1)
const mostBytes = 6_000

const crdKind: ResourceType = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  kind: 'CustomResourceDefinition',
  plural: 'customresourcedefinitions',
  namespaced: false,
}
const crds = { nodepools: nodePoolCrd, nodeclaims: nodeClaimCrd, nodeoverlays: nodeOverlayCrd }

const pod = (index: number): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  // Names that do not compress.
  metadata: { name: `web-${index}-${(index * 2_654_435_761) % 4_294_967_296}`, namespace: 'default' },
  spec: {
    schedulerName: 'by-hand',
    containers: [{ name: 'app', image: 'app', resources: { requests: { cpu: `${100 + index}m` } } }],
  },
})

test('EXP-16 a recording of a controller that is full is put aside, and the next one begins whole', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'tenon-recording-'))
  const clock = new VirtualClock(startMs, 1)
  const random = new SeededRandom(1)
  const logger = silentLogger
  const cluster = startDevCluster<SimulatedCloud>({
    clock,
    random: random.fork('cluster'),
    logger,
    credentials: await createCredentials(clock.now()),
    gitVersion: 'v1.36.0',
    simulator: { prepare: () => undefined, start: () => ({ stop: () => undefined }) },
  })
  for (const [plural, definition] of Object.entries(crds))
    cluster.server.local.create(crdKind, {
      ...definition,
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: crdKind.kind,
      metadata: { name: `${plural}.karpenter.sh` },
    })
  const snapshot = aSnapshot([aPool('default')], [aType('small', 1)])
  const client = createKubeClient({ transport: cluster.transport, clock, userAgent: 'test' })
  const operator = new Operator({
    kubernetes: {
      client,
      registry: createCacheRegistry({ client, clock, logger, random }),
      events: { record: () => undefined },
    },
    provider: new CatalogueProvider({ ...snapshot, cloud: { ...snapshot.cloud, nodeClasses: [] } }),
    runtime: { clock, random, logger },
    decider: new InlineDecider(clock),
    settings: { ...defaultSettings, clusterStateObservability: false },
  })
  const ended = new AbortController()
  const path = join(folder, 'cluster.tnr')
  t.after(async () => {
    ended.abort(new Error('the test is over'))
    await Promise.race([operator.stop(), clock.advance(1000)])
    cluster.stop()
    await rm(folder, { recursive: true })
  })
  const observing = operator.observe(ended.signal)
  await clock.advanceUntil(() => operator.waitingFor.length === 0, 60_000)
  await observing
  const { transport } = cluster
  const recording = keepRecording(
    {
      path,
      server: 'https://example.com',
      transport,
      operator,
      runtime: { clock, random, logger },
      mostBytes,
    },
    ended.signal,
  )
  const isAside = (): Promise<boolean> =>
    stat(`${path}.1`).then(
      () => true,
      () => false,
    )
  let pods = 0
  // Files are written in real time, whatever the clock says.
  for (let minute = 0; minute < 60 && !(await isAside()); minute++) {
    for (let each = 0; each < 10; each++) cluster.server.local.create(kinds.pod, pod(pods++))
    await clock.advance(60_000)
    await eventLoopTurns.next()
  }
  assert.ok(await isAside(), `${pods} pods`)
  for (let minute = 0; minute < 3; minute++) {
    await clock.advance(60_000)
    for (let turn = 0; turn < 50; turn++) await eventLoopTurns.next()
  }
  cluster.server.local.create(kinds.pod, pod(pods++))
  await clock.advance(120_000)
  ended.abort(new Error('enough'))
  await Promise.race([recording, clock.advance(60_000)])
  await recording
  const recordsIn = async (file: string): Promise<readonly TraceRecord[]> => {
    const read = await readTraceFile(file)
    assert.ok('records' in read)
    assert.equal(read.end.kind, 'whole')
    return read.records
  }
  assert.ok((await stat(`${path}.1`)).size >= mostBytes)
  assert.ok((await stat(path)).size > 0)
  const came = (records: readonly TraceRecord[]): number =>
    records.filter(({ kind }) => kind === 'podCame').length
  const [aside, next] = [await recordsIn(`${path}.1`), await recordsIn(path)]
  assert.ok(came(aside) > 0 && came(aside) < pods)
  // What was there when the second one began is in it, so that it can be replayed by itself.
  assert.equal(came(next), pods)
  assert.ok(!('message' in recordingOf(aside)) && !('message' in recordingOf(next)))
})
