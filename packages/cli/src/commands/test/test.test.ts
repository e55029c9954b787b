import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { stringify } from 'yaml'
import type { Io } from '../../io.ts'
import { runTest, type TestFlags } from './run.ts'

const nodeClass = {
  apiVersion: 'karpenter.kwok.sh/v1alpha1',
  kind: 'KWOKNodeClass',
  metadata: { name: 'default' },
}

function pool(name: string, requirements: readonly object[] = [], spec: object = {}): object {
  const nodeClassRef = { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'default' }
  const linux = { key: 'kubernetes.io/os', operator: 'In', values: ['linux'] }
  return {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodePool',
    metadata: { name },
    spec: { template: { spec: { nodeClassRef, requirements: [linux, ...requirements] } }, ...spec },
  }
}

function testCase(
  name: string,
  when: readonly object[],
  expect: object,
  objects: readonly object[] = [pool('default')],
): object {
  return {
    apiVersion: 'tenon.sh/v1alpha1',
    kind: 'TestCase',
    metadata: { name },
    given: { objects: [nodeClass, ...objects] },
    when,
    expect,
  }
}

const web = { pods: { name: 'web', count: 4, requests: { cpu: '1', memory: '1Gi' } } }

class Stage {
  readonly folder: string
  out = ''
  err = ''

  constructor(folder: string) {
    this.folder = folder
  }

  static async open(t: TestContext): Promise<Stage> {
    const folder = await mkdtemp(join(tmpdir(), 'tenon-test-'))
    t.after(() => rm(folder, { recursive: true }))
    return new Stage(folder)
  }

  async write(name: string, ...objects: readonly object[]): Promise<void> {
    await writeFile(join(this.folder, name), objects.map((each) => stringify(each)).join('---\n'))
  }

  async run(flags: Partial<TestFlags> = {}, ...paths: readonly string[]): Promise<number> {
    this.out = ''
    this.err = ''
    const io: Io = {
      env: {},
      cwd: this.folder,
      out: (text) => (this.out += text),
      err: (text) => (this.err += text),
      isTerminal: false,
      input: () => Promise.resolve(''),
      size: () => ({ columns: 80, rows: 24 }),
      interrupted: new AbortController().signal,
    }
    return await runTest(io, paths.length === 0 ? ['.'] : paths, { output: 'text', ...flags })
  }
}

test('EXP-19 a hundred cases run, the same twice, in less than ten seconds of this thread', async (t) => {
  const stage = await Stage.open(t)
  const cases = Array.from({ length: 100 }, (_, at) =>
    testCase(`case ${at}`, [{ pods: { ...web.pods, count: 1 + (at % 9) } }], {
      running: 'all',
      nodePools: ['default'],
      nodesAtMost: 3,
    }),
  )
  await stage.write('all.tenon-test.yaml', ...cases)
  const start = process.cpuUsage()
  assert.equal(await stage.run({ output: 'json' }), 0, stage.out.slice(0, 2000))
  const { user } = process.cpuUsage(start)
  const first = stage.out
  assert.equal(await stage.run({ output: 'json' }), 0)
  assert.equal(stage.out, first)
  assert.ok(user < 10_000_000, `${user / 1e6} s`)
})

test('EXP-19 each kind of expectation fails with what was expected, and what came out', async (t) => {
  const stage = await Stage.open(t)
  const zone = { key: 'topology.kubernetes.io/zone', operator: 'In', values: ['test-zone-a'] }
  const tainted = {
    template: {
      spec: {
        nodeClassRef: { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'default' },
        requirements: [],
        taints: [{ key: 'gpu', effect: 'NoSchedule' }],
      },
    },
  }
  await stage.write(
    'a.tenon-test.yaml',
    testCase('running', [web], { running: 'all' }, [pool('gpu', [], tainted)]),
    testCase('pools', [web], { nodePools: ['other'] }),
    testCase('types', [web], { instanceTypes: ['x'] }),
    testCase('nodes', [web], { nodesAtMost: 0 }),
    testCase('price', [web], { pricePerHourAtMost: 0.0001 }),
    testCase('zones', [web], { zonesBalanced: true }, [pool('default', [zone])]),
    testCase('pending', [web], { pending: [{ pod: 'web', reason: 'untoleratedTaints' }] }),
    testCase('disruption', [web], { noDisruption: true }),
  )
  assert.equal(await stage.run(), 1)
  const lines = stage.out.split('\n')
  const after = (name: string): string => lines[lines.indexOf(`FAIL ${name}`) + 1]?.trim() ?? ''
  assert.equal(after('running'), 'expect.running: expected 4 of 4 pods run; 0 run')
  assert.match(stage.out, /NodePool gpu: the pod does not tolerate gpu/)
  assert.match(stage.out, /It would run if you tolerate gpu/)
  assert.equal(after('pools'), 'expect.nodePools: expected only other; default')
  assert.match(after('types'), /^expect\.instanceTypes: expected only x; /)
  assert.match(after('nodes'), /^expect\.nodesAtMost: expected at most 0 nodes; [1-9]/)
  assert.match(after('price'), /^expect\.pricePerHourAtMost: expected at most 0\.0001 per hour; 0\.\d+/)
  assert.equal(
    after('zones'),
    'expect.zonesBalanced: expected zones that differ by one pod at most; test-zone-a: 4',
  )
  assert.equal(after('pending'), 'expect.pending: expected web waits because of untoleratedTaints; it runs')
  assert.match(after('disruption'), /no time passes in this case/)
  assert.equal(lines.at(-2), '8 cases, 8 failed, 0 could not be run')
})

test('what is lost, priced, edited and scaled counts; time passes at the end', async (t) => {
  const stage = await Stage.open(t)
  const lost = { lose: { zone: 'test-zone-a' } }
  const onlyA = pool('default', [
    { key: 'topology.kubernetes.io/zone', operator: 'In', values: ['test-zone-a'] },
  ])
  await stage.write(
    'b.tenon-test.yaml',
    testCase('a lost zone', [lost, web], { running: 0 }, [onlyA]),
    testCase('an edited pool', [{ apply: { objects: [pool('default')] } }, lost, web], { running: 'all' }, [
      onlyA,
    ]),
    testCase('more replicas', [web, { scale: { workload: 'replicaset/default/web', replicas: 6 } }], {
      running: 6,
    }),
    testCase('minutes of rest', [web, { pass: '10m' }], { noDisruption: true, running: 'all' }),
  )
  assert.equal(await stage.run(), 0, stage.out)
})

test('a case that cannot be read names its field and exits with 2; the others run', async (t) => {
  const stage = await Stage.open(t)
  await stage.write(
    'c.tenon-test.yaml',
    { ...testCase('misspelt', [web], {}), expect: { nodes: 3 } },
    testCase('a step of nothing', [{}], {}),
    testCase('good', [web], { running: 'all' }),
  )
  assert.equal(await stage.run(), 2)
  assert.match(stage.out, /FAIL misspelt\n {5}expect\.nodes: unknown field; use running, nodePools/)
  assert.match(stage.out, /FAIL a step of nothing\n {5}when\[0\]: a step has one field/)
  assert.match(stage.out, /ok {3}good\n/)
  await assert.rejects(stage.run({}, 'missing'), /missing/)
})

test('EXP-20 results as JUnit and TAP, observed values written, and an example that passes', async (t) => {
  const stage = await Stage.open(t)
  await stage.write(
    'd.tenon-test.yaml',
    testCase('observed', [web], {}),
    testCase('failed', [web], { nodesAtMost: 0 }),
  )
  assert.equal(await stage.run({ output: 'tap', junit: 'report.xml', update: true }), 1)
  assert.match(
    stage.out,
    /^TAP version 14\n1\.\.2\nok 1 - observed\nnot ok 2 - failed\n# expect\.nodesAtMost/,
  )
  const report = await readFile(join(stage.folder, 'report.xml'), 'utf8')
  assert.match(report, /<testsuites name="tenon test" tests="2" failures="1" errors="0"/)
  assert.match(
    await readFile(join(stage.folder, 'd.tenon-test.yaml'), 'utf8'),
    /expect:\n {2}running: all\n {2}nodePools:\n {4}- default/,
  )
  await stage.write('pool.yaml', nodeClass, pool('mine'))
  assert.equal(await stage.run({}, 'init', 'pool.yaml'), 0)
  await writeFile(join(stage.folder, 'e.tenon-test.yaml'), stage.out)
  assert.equal(await stage.run({}, 'e.tenon-test.yaml'), 0, stage.out)
})
