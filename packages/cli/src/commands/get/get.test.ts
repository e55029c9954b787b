import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import type { KubeObject } from '@tenon/api'
import { type Snapshot, writeSnapshot } from '@tenon/ask'
import { type CommandOutcome, runCommand } from '../../testing/command.test-support.ts'
import { podStatus } from './tables.ts'
import { aPod, snapshot } from '../../testing/snapshot.test-support.ts'

let folder: string
let file: string

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tenon-get-'))
  file = join(folder, 'snapshot.jsonl')
  await writeSnapshot(file, snapshot)
})

after(() => rm(folder, { recursive: true }))

const get = (...args: readonly string[]): Promise<CommandOutcome> => runCommand(['get', ...args, '-s', file])

async function lines(...args: readonly string[]): Promise<readonly string[]> {
  const { code, out, err } = await get(...args)
  assert.equal(err, '')
  assert.equal(code, 0)
  return out.split('\n').map((line) => line.trimEnd())
}

test("get prints kubectl's columns, and beside them requests, prices and reasons", async () => {
  assert.deepEqual(await lines('nodes'), [
    'NAME      STATUS   ROLES    VERSION   CPU     MEMORY          EUR/HOUR    WHY-KEPT   AGE',
    'n1        Ready    <none>   v1.36.0   1.5/2   3072Mi/4096Mi   0.0500      policy     60m',
    'strange   Ready    <none>   v1.36.0   0/2     0Mi/4096Mi      <unknown>   <none>     60m',
    '',
  ])
  assert.deepEqual(await lines('nodeclaims'), [
    'NAME    TYPE    CAPACITY    ZONE   NODE   READY     EUR/HOUR   WHY-KEPT   AGE',
    'web-1   small   on-demand   z1     n1     Unknown   0.0500     policy     60m',
    '',
  ])
  assert.deepEqual(await lines('nodepool'), [
    'NAME   NODECLASS   NODES   READY     PAUSED   EUR/HOUR   AGE',
    'web    c           1       Unknown   False    0.0500     24h',
    '',
  ])
  assert.match((await lines('nodes', '-o', 'wide'))[1] ?? '', / small +on-demand +z1 +web +Not yet +60m$/)
})

test('get lists CapacityBuffers with the room that they keep and its price', async () => {
  const template = {
    spec: { containers: [{ name: 'c', resources: { requests: { cpu: '500m', memory: '1Gi' } } }] },
  }
  const buffer = (name: string, spec: object, replicas: number, status: 'False' | 'True'): KubeObject =>
    ({
      apiVersion: 'autoscaling.x-k8s.io/v1beta1',
      kind: 'CapacityBuffer',
      metadata: { name, namespace: 'shop', uid: name, creationTimestamp: '2026-11-26T11:00:00Z' },
      spec,
      status: {
        replicas,
        conditions: ['ReadyForProvisioning', 'Provisioning'].map((type) => ({ type, status })),
      },
    }) as KubeObject
  const builtAt = '2026-11-26T11:00:00Z'
  const source = { uid: 'web', namespace: 'shop', name: 'web', replicas: 2, template, builtAt }
  const kept: Snapshot = {
    ...snapshot,
    objects: [
      ...snapshot.objects,
      buffer('web', { scalableRef: { kind: 'Deployment', name: 'web' }, percentage: 50 }, 2, 'True'),
      buffer('spare', { podTemplateRef: { name: 'spare' }, replicas: 3 }, 3, 'False'),
    ],
    memory: { ...snapshot.memory, buffers: [source], bufferRooms: { 'x://n1': ['web-1', 'web-2'] } },
  }
  const other = join(folder, 'buffers.jsonl')
  await writeSnapshot(other, kept)
  const { out } = await runCommand(['get', 'cb', '-n', 'shop', '-s', other])
  assert.deepEqual(
    out.split('\n').map((line) => line.trimEnd()),
    [
      'NAME    FOR                 WANTED   KEPT   READY   PROVISIONED   EUR/HOUR   AGE',
      'spare   podtemplate/spare   3        0      False   False         0.0000     60m',
      'web     deployment/web      2        2      True    True          0.0200     60m',
      '',
    ],
  )
})

test('get lists CapacityQuotas with what is used of them', async () => {
  const quota = {
    apiVersion: 'autoscaling.x-k8s.io/v1beta1',
    kind: 'CapacityQuota',
    metadata: { name: 'arm', creationTimestamp: '2026-11-26T11:00:00Z' },
    spec: {
      selector: { matchLabels: { 'kubernetes.io/arch': 'arm64' } },
      limits: { resources: { cpu: 40, memory: '80Gi', 'example.com/gpu': 2 } },
    },
    status: {
      used: { resources: { cpu: '12', memory: '32Gi', 'example.com/gpu': '0' } },
      conditions: [{ type: 'cluster-autoscaler.kubernetes.io/valid', status: 'True' }],
    },
  } as KubeObject
  const other = join(folder, 'quotas.jsonl')
  await writeSnapshot(other, { ...snapshot, objects: [...snapshot.objects, quota] })
  const { out } = await runCommand(['get', 'cq', '-o', 'wide', '-s', other])
  assert.deepEqual(
    out.split('\n').map((line) => line.trimEnd()),
    [
      'NAME   SELECTOR                   NODES    CPU     MEMORY      VALID   OTHERS                AGE',
      'arm    kubernetes.io/arch=arm64   <none>   12/40   32Gi/80Gi   True    example.com/gpu=0/2   60m',
      '',
    ],
  )
})

test('the page about get shows what it prints', async () => {
  const page = await readFile(join(import.meta.dirname, '../../../../../docs/ask/get.md'), 'utf8')
  assert.ok(page.includes((await get('nodes')).out))
})

test('EXP-29 get selects, sorts and shows as kubectl does', async () => {
  assert.deepEqual(await lines('po', '-n', 'shop', '-l', 'app=web', '-o', 'name'), ['pod/a', 'pod/b', ''])
  assert.deepEqual(await lines('po', '-A', '-o', 'name', '--field-selector', 'status.phase=Pending'), [
    'pod/waits',
    '',
  ])
  assert.deepEqual(await lines('pods', '-A', '--no-headers', '--show-labels'), [
    'jobs   ended   0/1   Running   0     500m   1024Mi   2m    app=web',
    'shop   a       0/1   Running   0     500m   1024Mi   2m    app=web',
    'shop   b       0/1   Running   0     500m   1024Mi   2m    app=web',
    'shop   waits   0/1   Pending   0     500m   1024Mi   2m    app=db',
    '',
  ])
  assert.deepEqual(
    await lines('nodes', '--sort-by', '{.metadata.labels.karpenter\\.sh/nodepool}', '-o', 'name'),
    ['node/strange', 'node/n1', ''],
  )
  assert.deepEqual(
    await lines('pods/b', '-n', 'shop', '-o', "jsonpath={.metadata.annotations['tenon\\.sh/note']}"),
    ['🦊: "x"'],
  )
  const json = JSON.parse((await get('nodes,nodepools', '-o', 'json')).out) as {
    kind: string
    items: unknown[]
  }
  assert.equal(json.kind, 'List')
  assert.equal(json.items.length, 3)
})

test('EXP-29 get tells what is not there in the words of kubectl, after what is', async () => {
  const missing = await get('node', 'n1', 'x', 'y', '-o', 'name')
  assert.deepEqual(missing, {
    code: 1,
    out: 'node/n1\n',
    err: 'Error from server (NotFound): nodes "y" not found\nError from server (NotFound): nodes "x" not found\n',
  })
  assert.deepEqual(await get('nodepool/x'), {
    code: 1,
    out: '',
    err: 'Error from server (NotFound): nodepools.karpenter.sh "x" not found\n',
  })
  assert.deepEqual(await get('pods', '-n', 'nowhere'), { code: 0, out: '', err: 'No resources found\n' })
  assert.match(
    (await get('nodes', '-o', 'go-template={{.x}}')).err,
    /^error: the output format go-template is not supported/,
  )
  assert.match((await get('nodes', '-w')).err, /a snapshot does not change/)
  const gone = await runCommand(['get', 'nodes', '-s', 'nowhere'], { cwd: folder })
  assert.equal(gone.code, 1)
  assert.match(gone.err, /^error: nowhere: ENOENT/)
})

test('the status of a pod is the word that says most', () => {
  const at = (status: object, metadata: object = {}): string => {
    const pod = aPod('a', 'n1', metadata)
    return podStatus({ ...pod, status: { ...pod.status, ...status } })
  }
  const waiting = (reason: string) => ({ state: { waiting: { reason } } })
  assert.equal(at({}), 'Running')
  assert.equal(at({ phase: 'Failed', reason: 'Evicted' }), 'Evicted')
  assert.equal(at({ containerStatuses: [waiting('CrashLoopBackOff')] }), 'CrashLoopBackOff')
  assert.equal(
    at({
      phase: 'Succeeded',
      containerStatuses: [{ state: { terminated: { reason: 'Completed', exitCode: 0 } } }],
    }),
    'Completed',
  )
  assert.equal(at({ containerStatuses: [{ state: { terminated: { exitCode: 3 } } }] }), 'ExitCode:3')
  assert.equal(at({}, { deletionTimestamp: '2026-11-26T11:59:00Z' }), 'Terminating')
  assert.equal(
    at({
      phase: 'Pending',
      initContainerStatuses: [{ state: { terminated: { exitCode: 0 } } }, { state: { running: {} } }],
      containerStatuses: [waiting('PodInitializing')],
    }),
    'Init:1/2',
  )
})
