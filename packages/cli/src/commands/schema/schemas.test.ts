/** What commands print for programs, held against the published schemas (ask.md 1). */
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import type { KubeObject } from '@tenon/api'
import {
  readTraceFile,
  redacted,
  type Snapshot,
  snapshotLines,
  TraceFile,
  type TraceRecord,
  writeSnapshot,
} from '@tenon/ask'
import { aClaimedNode, aPending, aPool, aRunning, aType, Draw, randomCluster } from '@tenon/ask/test-clusters'
import type { JournalEntry } from '@tenon/operator'
import { SeededRandom } from '@tenon/runtime'
import { runCommand } from '../../testing/command.test-support.ts'
import { objectOf } from '../journal/entry-table.ts'
import { render } from '../preflight/render.ts'
import { assertMatches, assertPrinted } from '../../testing/printed.test-support.ts'
import { schemas } from './schemas.ts'

/** More of them with TENON_SCHEMA_CLUSTERS, for a run by hand. */
const clusters = Number(process.env['TENON_SCHEMA_CLUSTERS'] ?? 12)
const takenAt = '2026-11-26T11:00:00Z'

async function folderOf(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'tenon-schema-'))
  t.after(() => rm(folder, { recursive: true }))
  return folder
}

const entry = (kind: JournalEntry['kind'], more: Partial<JournalEntry> = {}): JournalEntry => ({
  kind,
  id: `entry-${kind}`,
  at: '2026-11-26T11:30:00.123Z',
  reason: 'Underutilized',
  message: 'replace: [busy] -> [1 replacement]',
  nodeClaims: ['claim-busy'],
  nodes: ['busy'],
  ...more,
})

/** A random cluster with nodes of ours, on which something runs, and a journal. */
function clusterOf(draw: Draw): Snapshot {
  const cluster = randomCluster(draw)
  const own = aPool('own', {
    disruption: {
      consolidateAfter: '30s',
      budgets: [{ nodes: '10%' }, { nodes: '0', schedule: '0 9 * * *', duration: '8h' }],
    },
    ...(draw.chance(50) && { limits: { cpu: '100', memory: '1Ti' } }),
  })
  const type = aType('own-type', 4, draw.chance(30) ? { price: undefined } : {})
  const [node, claim] = aClaimedNode('busy', own, type)
  const changed = (object: KubeObject | undefined): readonly KubeObject[] => {
    if (object === undefined) return []
    if (draw.chance(60)) return [object]
    const conditions = [
      { type: 'Launched', status: 'True', reason: 'Launched', message: '', lastTransitionTime: takenAt },
      {
        type: 'Registered',
        status: 'Unknown',
        reason: 'Waits',
        message: 'no Node',
        lastTransitionTime: takenAt,
      },
      {
        type: 'Drifted',
        status: 'True',
        reason: 'NodePoolDrifted',
        message: '',
        lastTransitionTime: takenAt,
      },
    ]
    return [{ ...object, ...(draw.chance(50) && { status: { providerID: 'my://busy', conditions } }) }]
  }
  const runs = aRunning(aPending('runs', { cpu: '1' }), 'busy')
  const protects = {
    ...runs.metadata,
    annotations: { 'karpenter.sh/do-not-disrupt': draw.of(['true', '1h']) },
  }
  const [first, ...others] = cluster.catalogues
  return {
    ...cluster,
    objects: [
      ...cluster.objects,
      own,
      ...(node === undefined ? [] : [node]),
      ...changed(claim),
      draw.chance(50) ? runs : { ...runs, metadata: protects },
    ],
    catalogues: [
      { nodePools: [], ...first, instanceTypes: [...(first?.instanceTypes ?? []), type] },
      ...others,
      { nodePools: ['own'], instanceTypes: [type], defaults: { labels: {}, taints: [] } },
    ],
    journal: [
      entry('launch', {
        pods: { count: 1, names: ['default/runs'] },
        pricePerHour: { after: 1 },
        currency: 'EUR',
      }),
      entry('move', { pricePerHour: { before: 1, after: 0.5 }, replacements: ['next'], decision: 'd' }),
      entry('removal', { nodeClaims: ['claim-was'], nodes: ['was'], nodePool: 'own', observed: true }),
    ],
  }
}

async function printedOf(folder: string, args: readonly string[]): Promise<readonly string[]> {
  const { out, err, code } = await runCommand([...args, '-o', 'json'], { cwd: folder })
  assert.ok(code === 0, `tenon ${args.join(' ')}: ${err}`)
  return assertPrinted(out)
}

test('every field that explain, simulate and cost print about random clusters is in their schemas', async (t) => {
  const folder = await folderOf(t)
  const file = join(folder, 'cluster.jsonl')
  const printed = new Set<string>()
  for (let seed = 1; seed <= clusters; seed++) {
    const cluster = clusterOf(new Draw(new SeededRandom(seed)))
    await writeSnapshot(file, cluster)
    const ask = async (...args: string[]): Promise<void> => {
      for (const kind of await printedOf(folder, [...args, '-s', file])) printed.add(kind)
    }
    await ask('explain', 'pods', '-A')
    await ask('explain', 'pod', 'runs')
    await ask('explain', 'nodes')
    await ask('explain', 'nodeclaims')
    await ask('explain', 'nodepools')
    await ask('explain', 'node', 'was')
    const pending = cluster.objects.find(({ kind, metadata }) => kind === 'Pod' && metadata.name !== 'runs')
    if (pending !== undefined && seed % 4 === 0) await ask('explain', 'pod', pending.metadata.name)
    await ask('simulate', '--delete', 'nodepool/own')
    for (const by of ['nodepool', 'namespace', 'owner', 'type', 'zone']) await ask('cost', '--by', by)
  }
  assert.deepEqual([...printed].toSorted(), [
    'CostReport',
    'NodeClaimExplanation',
    'NodeExplanation',
    'NodePoolExplanation',
    'PodExplanation',
    'Simulation',
  ])
})

test('a simulation of a change of a NodePool, played, is as its schema says', async (t) => {
  const folder = await folderOf(t)
  const pool = aPool('own', { disruption: { consolidateAfter: '30s', budgets: [{ nodes: '50%' }] } })
  const type = aType('own-type', 4)
  const cluster = clusterOf(new Draw(new SeededRandom(4)))
  await writeSnapshot(join(folder, 'cluster.jsonl'), {
    ...cluster,
    objects: [...cluster.objects.slice(0, 2), pool, ...aClaimedNode('a', pool, type)],
  })
  const edited = aPool('own', {}, { requirements: [{ key: 'team', operator: 'In', values: ['red'] }] })
  await writeFile(join(folder, 'pool.yaml'), JSON.stringify({ ...edited, status: undefined }))
  const args = ['simulate', '-f', 'pool.yaml', '--for', '10m', '-s', 'cluster.jsonl']
  const { out } = await runCommand([...args, '-o', 'json'], { cwd: folder })
  const { budgets, played } = JSON.parse(out) as { budgets: readonly object[]; played: object }
  assert.deepEqual(assertPrinted(out), ['Simulation'])
  assert.equal(budgets.length, 1)
  assert.ok(played)
})

test('every line of a snapshot, redacted or not, is as its schema says', () => {
  for (let seed = 1; seed <= clusters; seed++) {
    const cluster = clusterOf(new Draw(new SeededRandom(seed)))
    const decision = {
      nodeClaim: 'claim-busy',
      nodePool: 'own',
      cause: 'price',
      message: 'm',
      at: takenAt,
    } as const
    const obstacle = { cause: 'budget', message: 'none', until: takenAt } as const
    const whole: Snapshot = {
      ...cluster,
      nodeDecisions: [decision, { ...decision, node: 'busy', others: [obstacle] }],
    }
    for (const snapshot of [whole, redacted(whole, 'key')])
      for (const line of snapshotLines(snapshot)) assertMatches('Snapshot', JSON.parse(line))
  }
})

const entryKinds: Readonly<Record<JournalEntry['kind'], true>> = {
  decision: true,
  launch: true,
  launched: true,
  registered: true,
  initialized: true,
  move: true,
  refusal: true,
  removal: true,
  removed: true,
  failure: true,
  brake: true,
  rollout: true,
  spend: true,
  seen: true,
}

test('every kind of journal entry is as its schema says', () => {
  for (const kind of Object.keys(entryKinds) as readonly JournalEntry['kind'][]) {
    assertMatches('JournalEntry', objectOf(entry(kind)))
    const more = { pods: { count: 2, names: ['a/b'] }, nodePool: 'own', observed: true } as const
    assertMatches('JournalEntry', objectOf(entry(kind, { ...more, pricePerHour: {}, decision: 'd' })))
  }
})

test('records of a recording, and what a replay of it prints, are as their schemas say', async (t) => {
  const folder = await folderOf(t)
  const atMs = Date.UTC(2026, 0, 1)
  const { metadata, ...pod } = aPending('web', { cpu: '1' })
  const shape = { ...pod, metadata: { ...metadata, name: 'web' } }
  const amounts = { cpu: '4', memory: '16Gi', pods: '110' }
  const records: readonly TraceRecord[] = [
    { kind: 'session', atMs, program: 'tenon test', source: 'https://example.com' },
    { kind: 'object', atMs, object: aPool('own') },
    { kind: 'catalogue', atMs, catalogues: [{ nodePools: ['own'], instanceTypes: [aType('own-type', 4)] }] },
    { kind: 'nodeCame', atMs, node: 'a', id: 'a', labels: {}, capacity: amounts, allocatable: amounts },
    { kind: 'shape', shape: 0, pod: shape },
    { kind: 'podCame', atMs, pod: 0, shape: 0, name: 'web-0', id: '0', node: 'a' },
    { kind: 'gap', atMs: atMs + 60_000, fromMs: atMs, because: 'the watch was cut' },
    { kind: 'podMoved', atMs: atMs + 60_000, pod: 0, id: '1' },
    { kind: 'podEnded', atMs: atMs + 120_000, pod: 0 },
    { kind: 'nodeGone', atMs: atMs + 120_000, node: 'a' },
    {
      kind: 'objectGone',
      atMs: atMs + 120_000,
      apiVersion: 'v1',
      objectKind: 'Pod',
      namespace: 'a',
      name: 'b',
    },
    { kind: 'alive', atMs: atMs + 600_000 },
  ]
  const file = await TraceFile.create(join(folder, 'hour.tnr'))
  for (const record of records) file.write(record)
  await file.close()
  const read = await readTraceFile(join(folder, 'hour.tnr'))
  assert.ok('records' in read)
  assert.deepEqual(
    read.records.map(({ kind }) => kind),
    records.map(({ kind }) => kind),
  )
  for (const record of read.records) assertMatches('Trace', record)
  const args = ['replay', 'hour.tnr', '--compatibility', 'karpenter']
  assert.deepEqual(await printedOf(folder, args), ['ReplayReport'])
})

test('reports of tests, checks and manifests are as their schemas say', async (t) => {
  const folder = await folderOf(t)
  const nodeClassRef = { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'default' }
  const objects = [
    { apiVersion: 'karpenter.kwok.sh/v1alpha1', kind: 'KWOKNodeClass', metadata: { name: 'default' } },
    {
      apiVersion: 'karpenter.sh/v1',
      kind: 'NodePool',
      metadata: { name: 'default' },
      spec: { template: { spec: { nodeClassRef, requirements: [] } } },
    },
  ]
  const cases = [
    { when: [{ pods: { name: 'a', count: 2, requests: { cpu: '1' } } }], expect: { nodesAtMost: 0 } },
    { when: [{ pods: { name: 'a', count: 1, requests: { cpu: '9000' } } }], expect: { running: 'all' } },
    { when: [{ scale: { workload: 'deployment/none/none', replicas: 2 } }], expect: {} },
  ].map((each, at) => ({
    apiVersion: 'tenon.sh/v1alpha1',
    kind: 'TestCase',
    metadata: { name: `case ${at}` },
    given: { objects },
    ...each,
  }))
  await writeFile(
    join(folder, 'a.tenon-test.yaml'),
    cases.map((each) => JSON.stringify(each)).join('\n---\n'),
  )
  const tested = await runCommand(['test', '.', '-o', 'json'], { cwd: folder })
  assert.equal(tested.code, 2, tested.err)
  assert.deepEqual(assertPrinted(tested.out), ['TestReport'])
  await writeFile(join(folder, 'pool.yaml'), JSON.stringify({ ...objects[1], spec: { weight: 'a' } }))
  const validated = await runCommand(['validate', 'pool.yaml', '-o', 'json'], { cwd: folder })
  assert.deepEqual(assertPrinted(validated.out), ['ValidationReport'])
  const finding = { status: 'fail', message: 'it is missing', fix: 'add it' } as const
  const results = [
    { name: 'crds', summary: 'they are there', findings: [], durationMs: 1.5 },
    {
      name: 'rights',
      summary: '',
      findings: [finding, { ...finding, status: 'warn' as const }],
      durationMs: 2,
    },
  ]
  assert.deepEqual(assertPrinted(render(results, 'json')), ['PreflightReport'])
})

test('a field that a schema does not have is found', async (t) => {
  const folder = await folderOf(t)
  await writeSnapshot(join(folder, 'cluster.jsonl'), clusterOf(new Draw(new SeededRandom(1))))
  const { out } = await runCommand(['explain', 'node', 'busy', '-s', 'cluster.jsonl', '-o', 'json'], {
    cwd: folder,
  })
  const answer = JSON.parse(out) as Readonly<Record<string, unknown>>
  assert.throws(() => {
    assertPrinted(JSON.stringify({ ...answer, unheardOf: 1 }))
  }, /must NOT have additional properties.*unheardOf/)
  assert.throws(() => {
    assertPrinted(JSON.stringify({ ...answer, summary: undefined }))
  }, /must have required property 'summary'/)
})

test('tenon schema lists the kinds and prints the schema of one, and names one that is meant', async () => {
  const { out } = await runCommand(['schema'])
  assert.deepEqual(
    out
      .trimEnd()
      .split('\n')
      .slice(1)
      .map((line) => line.split(' ')[0]),
    [...schemas.keys()],
  )
  for (const kind of schemas.keys()) {
    const printed: unknown = JSON.parse((await runCommand(['schema', kind.toLowerCase()])).out)
    assert.deepEqual(printed, schemas.get(kind))
  }
  const unknown = await runCommand(['schema', 'PodExplanatoin'])
  assert.deepEqual(unknown, {
    code: 1,
    out: '',
    err: 'error: no schema is named PodExplanatoin; did you mean PodExplanation? tenon schema lists all\n',
  })
})
