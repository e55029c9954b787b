import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import type { NodePool, Pod } from '@tenon/api'
import { TraceFile, type TraceRecord } from '@tenon/ask'
import { runCommand } from './command.test-support.ts'

const startMs = Date.UTC(2026, 0, 1)
const minuteMs = 60_000

const pool: NodePool = {
  apiVersion: 'karpenter.sh/v1',
  kind: 'NodePool',
  metadata: { name: 'default', uid: 'pool', generation: 1 },
  spec: {
    template: {
      spec: {
        nodeClassRef: { group: 'example.com', kind: 'ExampleNodeClass', name: 'default' },
        requirements: [],
        expireAfter: 'Never',
      },
    },
    disruption: { consolidateAfter: '1m' },
  },
}

const shape: Pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    name: 'web',
    namespace: 'default',
    labels: { app: 'web' },
    ownerReferences: [
      { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web', uid: 'set', controller: true },
    ],
  },
  spec: { containers: [{ name: 'app', image: 'recorded', resources: { requests: { cpu: '1' } } }] },
}

/** An hour of one node of four cores, on which two pods run, and a third one for half of it. */
const anHour: readonly TraceRecord[] = [
  { kind: 'session', atMs: startMs, program: 'tenon test', source: 'https://example.com' },
  { kind: 'object', atMs: startMs, object: pool },
  {
    kind: 'nodeCame',
    atMs: startMs - minuteMs,
    node: 'a',
    id: 'node-a',
    labels: {
      'karpenter.sh/nodepool': 'default',
      'karpenter.sh/capacity-type': 'on-demand',
      'node.kubernetes.io/instance-type': 'm.4',
      'topology.kubernetes.io/zone': 'zone-a',
      'kubernetes.io/arch': 'amd64',
      'kubernetes.io/os': 'linux',
    },
    capacity: { cpu: '4', memory: '16Gi', pods: '110' },
    allocatable: { cpu: '4', memory: '16Gi', pods: '110' },
    pricePerHour: 0.2,
  },
  { kind: 'shape', shape: 0, pod: shape },
  { kind: 'podCame', atMs: startMs - minuteMs, pod: 0, shape: 0, name: 'web-0', id: '0', node: 'a' },
  { kind: 'podCame', atMs: startMs - minuteMs, pod: 1, shape: 0, name: 'web-1', id: '1', node: 'a' },
  { kind: 'alive', atMs: startMs },
  { kind: 'podCame', atMs: startMs + 10 * minuteMs, pod: 2, shape: 0, name: 'web-2', id: '2' },
  { kind: 'podEnded', atMs: startMs + 40 * minuteMs, pod: 2 },
  { kind: 'alive', atMs: startMs + 60 * minuteMs },
]

async function aFolder(t: TestContext, records: readonly TraceRecord[] = anHour): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'tenon-replay-'))
  t.after(() => rm(folder, { recursive: true }))
  const file = await TraceFile.create(join(folder, 'hour.tnr'))
  for (const record of records) file.write(record)
  await file.close()
  return folder
}

test('EXP-17 replay prints what was paid beside each variant, and what it assumes', async (t) => {
  const cwd = await aFolder(t)
  await writeFile(join(cwd, 'prices.json'), '{"m.4": 0.1}')
  const args = ['replay', 'hour.tnr', '--price-file', 'prices.json']
  const { code, out, err } = await runCommand(args, { cwd })
  assert.equal(code, 0, err)
  assert.equal(
    out,
    `VARIANT       PRICE   OF RECORDED   PENDING MEDIAN   PENDING P99   EVICTIONS   LAUNCHES   PEAK NODES
as recorded   0.20    100.0%        -                -             0           0          1
replayed      0.20    100.0%        5s               5s            0           0          1
prices.json   0.10    50.0%         5s               5s            0           0          1

1.0 h of https://example.com from 2026-01-01T00:00:00Z; prices are in the unit of the recorded catalogue.
Assumed: the types that were seen on nodes can be bought, and no others.
Assumed: nodes are Ready 60s after their launch, pods 5s after they are bound (--node-boot, --pod-start).
`,
  )
})

test('EXP-17 a price that nobody knows is told, and is not 0', async (t) => {
  const unpriced = anHour.map((record) => {
    if (record.kind !== 'nodeCame') return record
    const { pricePerHour: _price, ...rest } = record
    return rest
  })
  const cwd = await aFolder(t, unpriced)
  const { out } = await runCommand(['replay', 'hour.tnr'], { cwd })
  assert.match(out, /^as recorded +unknown +- /m)
  assert.match(out, /^replayed +unknown +- /m)
  assert.match(out, /The price of 1 recorded nodes is not known/)
  assert.match(out, /The price of 1 instances of replayed is not known \(--price-file\)/)
})

test('EXP-17 replay of the same file and seed prints the same, as JSON too', async (t) => {
  const cwd = await aFolder(t)
  const args = ['replay', 'hour.tnr', '-o', 'json', '--seed', '3']
  const first = await runCommand(args, { cwd })
  assert.deepEqual(await runCommand(args, { cwd }), first)
  const { kind, variants } = JSON.parse(first.out) as { kind: string; variants: { cost: number }[] }
  assert.equal(kind, 'ReplayReport')
  assert.equal(variants.length, 1)
  assert.equal(variants[0]?.cost.toFixed(4), '0.2000')
})

test('EXP-30 replay names the file that is none, and the one that is not there', async (t) => {
  const cwd = await aFolder(t)
  await writeFile(join(cwd, 'other.tnr'), 'hello')
  const other = await runCommand(['replay', 'other.tnr'], { cwd })
  assert.equal(other.code, 1)
  assert.match(other.err, /other\.tnr: this is no recording/)
  const missing = await runCommand(['replay', 'missing.tnr'], { cwd })
  assert.equal(missing.code, 1)
  assert.match(missing.err, /cannot read missing\.tnr: ENOENT/)
})

test('EXP-16 record does not write over a file', async (t) => {
  const cwd = await aFolder(t)
  const { code, err } = await runCommand(['record', '-o', 'hour.tnr'], { cwd })
  assert.equal(code, 1)
  assert.match(err, /hour\.tnr exists: go on with --append, or use another name/)
})
