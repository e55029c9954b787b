import assert from 'node:assert/strict'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { KubeObject, Pod } from '@tenon/api'
import { defaultSettings, emptyMemory, type Settings } from '@tenon/operator'
import { SeededRandom } from '@tenon/runtime'
import { readSnapshot, writeSnapshot } from './file.ts'
import { aPending } from '../testing/clusters.test-support.ts'
import { readSnapshotText, snapshotLines } from './lines.ts'
import type { Snapshot } from './snapshot.ts'

const snapshot: Snapshot = {
  takenAtMs: Date.parse('2026-11-26T12:00:00Z'),
  program: 'tenon 1.0.0',
  origin: { kind: 'controller', identity: 'node_1', isLeading: true },
  cloud: {
    name: 'my-cloud',
    nodeClasses: [
      { group: 'my.cloud', version: 'v1', kind: 'MyNodeClass', plural: 'mynodeclasses', namespaced: false },
    ],
    wellKnownLabels: ['my.cloud/size'],
    repairPolicies: [],
    priceUnit: 'EUR',
  },
  settings: { ...defaultSettings, initializationTimeoutMs: Number.POSITIVE_INFINITY },
  objects: [
    { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p"\n\u2028é', namespace: 'default', uid: 'u' } },
    { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n' } },
  ],
  catalogues: [
    {
      nodePools: ['default'],
      kubeletVersion: 'v1.36.0',
      instanceTypes: [
        {
          name: 'small',
          requirements: [],
          offerings: [{ requirements: [], pricePerHour: undefined, available: true }],
          capacity: { cpu: 1000 },
          overhead: { kubeReserved: {}, systemReserved: {}, evictionThreshold: {} },
        },
      ],
    },
    { nodePools: ['other'], instanceTypes: undefined, problem: 'the cloud does not answer' },
  ],
  memory: { ...emptyMemory, marked: ['my://1'], pausedUntilMs: { default: 5 } },
  nodeDecisions: [
    { nodeClaim: 'c', nodePool: 'default', cause: 'price', message: 'No.', at: '2026-11-26T11:59:00Z' },
  ],
  journal: [
    {
      id: 'e',
      at: '2026-11-26T11:00:00Z',
      kind: 'move',
      reason: 'Underutilized',
      message: 'delete: [n]',
      nodes: ['n'],
      nodeClaims: ['c'],
      pricePerHour: { before: 1, after: 0 },
      currency: 'EUR',
    },
  ],
}

const text = [...snapshotLines(snapshot)].join('\n')

async function folder(t: TestContext): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'tenon-snapshot-'))
  t.after(() => rm(path, { recursive: true }))
  return path
}

function problemOf(changed: string): string {
  const read = readSnapshotText(changed)
  assert.ok('problem' in read)
  return `${read.problem.line}: ${read.problem.message}`
}

test('a snapshot is read as it was written, plain and compressed', async (t) => {
  const path = await folder(t)
  for (const name of ['a.jsonl', 'a.jsonl.gz']) {
    await writeSnapshot(join(path, name), snapshot)
    const read = await readSnapshot(join(path, name))
    assert.ok('ok' in read)
    // An unknown price has no word in JSON, and needs none.
    assert.deepEqual(JSON.parse(JSON.stringify(read.ok)), JSON.parse(JSON.stringify(snapshot)))
    assert.equal(read.ok.settings.initializationTimeoutMs, Number.POSITIVE_INFINITY)
  }
  assert.deepEqual((await readdir(path)).toSorted(), ['a.jsonl', 'a.jsonl.gz'], 'nothing else is left')
})

test('WNT-39 a snapshot keeps how kube-scheduler scores nodes, unless that cannot be', () => {
  const fitScoring: Settings['fitScoring'] = {
    type: 'RequestedToCapacityRatio',
    resources: [{ name: 'cpu', weight: 2 }],
    shape: [
      { utilization: 0, score: 0 },
      { utilization: 100, score: 10 },
    ],
  }
  const scoringIn = (settings: object) => {
    const lines = snapshotLines({ ...snapshot, settings: { ...defaultSettings, ...settings } })
    const read = readSnapshotText([...lines].join('\n'))
    assert.ok('ok' in read)
    return read.ok.settings.fitScoring
  }
  assert.deepEqual(scoringIn({ fitScoring }), fitScoring)
  for (const wrong of [
    null,
    7,
    { type: 'Most' },
    { type: 'MostAllocated', resources: [{ name: 'cpu', weight: 0 }] },
  ])
    assert.equal(scoringIn({ fitScoring: wrong }), undefined)
})

test('PGE-1 refusals of NodeClaims that cannot be are left out of a snapshot, the others are read', () => {
  const good = { message: 'no', untilMs: 5 }
  const given = {
    none: null,
    text: 'no',
    empty: {},
    endless: { message: 'no', untilMs: 9e15 },
    wordless: { untilMs: 5 },
    good,
  }
  const refusedClaims = JSON.parse(JSON.stringify(given)) as Snapshot['memory']['refusedClaims']
  const lines = [...snapshotLines({ ...snapshot, memory: { ...snapshot.memory, refusedClaims } })]
  const read = readSnapshotText(lines.join('\n'))
  assert.ok('ok' in read)
  assert.deepEqual(read.ok.memory.refusedClaims, { good })
})

test('EXP-30 a snapshot of a later version is refused with both versions', () => {
  assert.match(
    problemOf(text.replace('"version":2', '"version":7')),
    /^1: the snapshot has version 7, and this program reads versions up to 2/,
  )
})

test('EXP-30 a snapshot that was cut off names the line at which it ends', async (t) => {
  const lines = text.split('\n')
  for (let kept = 1; kept < lines.length; kept++)
    assert.equal(
      problemOf(lines.slice(0, kept).join('\n')),
      `${kept}: the file ends after line ${kept}; the rest is missing`,
    )
  assert.match(problemOf(text.slice(0, text.length - 5)), /^9: the line is not a JSON object$/)
  assert.equal(problemOf(''), '1: the file is empty')
  const path = join(await folder(t), 'cut.gz')
  await writeSnapshot(path, snapshot)
  await writeFile(path, (await readFile(path)).subarray(0, 200))
  const read = await readSnapshot(path)
  assert.ok('problem' in read)
  assert.match(read.problem.message, /^the file cannot be unpacked: /)
})

test('what is no snapshot is refused by name', () => {
  assert.match(problemOf('{"kind":"List"}'), /this is not a Snapshot of tenon\.sh\/v1alpha1/)
  assert.match(problemOf('hello'), /^1: the line is not a JSON object$/)
  const withoutCloud = text.replace('"name":"my-cloud",', '')
  assert.match(problemOf(withoutCloud), /^1: "cloud" is missing or not a cloud$/)
})

test('a snapshot that was edited by hand is read once its sum is removed', () => {
  const edited = text.replace('"cpu":1000', '"cpu":2000')
  assert.match(problemOf(edited), /^9: the snapshot was changed after it was written; .*remove "sha256"/)
  const read = readSnapshotText(edited.replace(/,"sha256":"[0-9a-f]+"/, ''))
  assert.ok('ok' in read)
  assert.equal(read.ok.catalogues[0]?.instanceTypes?.[0]?.capacity['cpu'], 2000)
})

test('settings of another release fall back to defaults, and unknown ones are left out', () => {
  const other = text
    .replace('"batchMaxMs":10000', '"batchMaxMs":"long","soon":1')
    .replace(/,"sha256":"[0-9a-f]+"/, '')
  const read = readSnapshotText(other)
  assert.ok('ok' in read)
  assert.equal(read.ok.settings.batchMaxMs, defaultSettings.batchMaxMs)
  assert.equal('soon' in read.ok.settings, false)
})

test('any damage is a problem with its line, or changes nothing', () => {
  const random = new SeededRandom('damage')
  const bytes = Buffer.from(text)
  for (let attempt = 0; attempt < 500; attempt++) {
    const damaged = Buffer.from(bytes)
    const at = random.uint32() % damaged.length
    damaged[at] = random.uint32() % 256
    const read = readSnapshotText(damaged.toString())
    if ('ok' in read) assert.deepEqual(read, readSnapshotText(text))
    else assert.ok(read.problem.line >= 1 && read.problem.message.length > 0)
  }
})

test('EXP-30 a snapshot of version 1, in which each pod is a line by itself, is read', () => {
  const [head = '', ...rest] = text.split('\n')
  const pods = snapshot.objects.filter(({ kind }) => kind === 'Pod')
  const others = rest.filter((line) => !/^\{"(part|pod|end)":/.test(line))
  const lines = [
    head.replace('"version":2', '"version":1'),
    ...others,
    ...pods.map((object) => JSON.stringify({ object })),
  ]
  const read = readSnapshotText([...lines, JSON.stringify({ end: { lines: lines.length + 1 } })].join('\n'))
  assert.ok('ok' in read)
  const byName = (objects: readonly KubeObject[]) =>
    objects.toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
  assert.deepEqual(byName(read.ok.objects), byName(snapshot.objects))
})

test('what pods of one workload share is written once, and read as one object', () => {
  const pods = ['a', 'b', 'c'].map((name) => aPending(name, { cpu: '1' }, {}, 'web'))
  const written = [...snapshotLines({ ...snapshot, objects: pods })].join('\n')
  assert.equal(written.match(/"containers"/g)?.length, 1)
  const read = readSnapshotText(written)
  assert.ok('ok' in read)
  assert.deepEqual(JSON.parse(JSON.stringify(read.ok.objects)), JSON.parse(JSON.stringify(pods)))
  const [first, second] = read.ok.objects as Pod[]
  assert.equal(first?.spec.containers, second?.spec.containers)
})

test('a pod that names parts that are not there is refused with its line', () => {
  const parts = { metadata: 0, spec: 7 }
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a' }, spec: {} }
  const [head = ''] = text.split('\n')
  for (const line of [{ pod, parts }, { pod, parts: { conditions: [0] } }, { pod, parts: 1 }, { part: 1 }])
    assert.equal(problemOf([head, JSON.stringify(line)].join('\n')), '2: the line is not part of a snapshot')
})

test('a pod without a spec, or with a status that is none, is read as it was written', () => {
  const odd = [
    { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a' } },
    { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'b' }, spec: null, status: 'x' },
    { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'c' }, spec: {}, status: { conditions: [null] } },
  ]
  const read = readSnapshotText([...snapshotLines({ ...snapshot, objects: odd })].join('\n'))
  assert.ok('ok' in read)
  assert.deepEqual(read.ok.objects, odd)
})
