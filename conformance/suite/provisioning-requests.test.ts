/** ProvisioningRequests as Kueue makes them, in both modes, on a real control plane (gangs.md, R0). */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, before, describe, test } from 'node:test'
import { kinds } from '@tenon/api'
import { createKubeClient, loadKubeConfig } from '@tenon/kube'
import { SystemClock } from '@tenon/runtime'
import { ClusterAutoscalerProcess } from '../src/cluster-autoscaler-process.ts'
import { ExoscaleMirror } from '../src/exoscale-mirror.ts'
import { Cluster, sharedControlPlane, type TestObject, until } from './cluster.ts'
import { annotationKeys, checkClass, installWorkloads, KueueWorkload } from './kueue-stand-in.ts'
import { freePort } from './prometheus-server.ts'
import { Controller, crdsYaml } from './tenon.ts'

const karpenter = 'karpenter.sh/v1'
const poolLabel = 'karpenter.sh/nodepool'
const requestApi = 'autoscaling.x-k8s.io/v1'
const clock = new SystemClock()
/** Shorter than the ten minutes of the default. */
const bookingSeconds = 15

let controlPlane: Awaited<ReturnType<typeof sharedControlPlane>>
let cluster: Cluster
let folder: string

before(async () => {
  controlPlane = await sharedControlPlane()
  cluster = new Cluster(controlPlane.kubeconfigPath)
  folder = mkdtempSync(join(tmpdir(), 'tenon-requests-'))
  kubectl(['apply', '--server-side', '--force-conflicts', '-f', '-'], crdsYaml())
  kubectl(['wait', '--for=condition=Established', '-f', '-', '--timeout=20s'], crdsYaml())
  await installWorkloads(cluster)
})

after(async () => {
  await cluster.delete('apiextensions.k8s.io/v1', 'CustomResourceDefinition', 'workloads.kueue.x-k8s.io')
  rmSync(folder, { recursive: true, force: true })
  await controlPlane.stop()
})

function kubectl(args: readonly string[], input = ''): string {
  return execFileSync(
    join(controlPlane.binDir, 'kubectl'),
    ['--kubeconfig', controlPlane.kubeconfigPath, ...args],
    { input, stdio: ['pipe', 'pipe', 'inherit'], encoding: 'utf8' },
  )
}

/** What the garbage collector has left of a Workload's requests and templates. */
async function leftOf(name: string): Promise<readonly string[]> {
  const found = [
    ...(await cluster.list(requestApi, 'ProvisioningRequest', 'default')),
    ...(await cluster.list('v1', 'PodTemplate', 'default')),
  ]
  return found.flatMap(({ metadata }) =>
    (metadata?.name ?? '').includes(`${name}-prov-`) ? [metadata?.name ?? ''] : [],
  )
}

describe('in the Karpenter mode', () => {
  let controller: Controller
  const logOf = (): string => readFileSync(join(folder, 'controller.log'), 'utf8')

  before(async () => {
    controller = new Controller(controlPlane.kubeconfigPath, join(folder, 'controller.log'), {
      DISABLE_LEADER_ELECTION: 'true',
      FEATURE_GATES: 'GroupScheduling=true',
      PROVISIONING_REQUEST_BOOKING_DURATION: `${bookingSeconds}s`,
    })
    const apiVersion = 'karpenter.kwok.sh/v1alpha1'
    await cluster.create({ apiVersion, kind: 'KWOKNodeClass', metadata: { name: 'requests' }, spec: {} })
    for (const pool of ['whole', 'left', 'right', 'short', 'free', 'gone']) await cluster.create(aPool(pool))
    controller.start()
  })

  afterEach((context) => {
    if ('passed' in context && !context.passed)
      process.stderr.write(logOf().split('\n').slice(-40).join('\n'))
  })

  after(async () => {
    try {
      for (const pool of ['whole', 'left', 'right', 'short', 'free', 'gone'])
        await cluster.delete(karpenter, 'NodePool', pool)
      await until('all nodes are gone', 120, async () => (await cluster.list('v1', 'Node')).length === 0)
    } finally {
      await controller.end('SIGTERM')
      await cluster.delete('karpenter.kwok.sh/v1alpha1', 'KWOKNodeClass', 'requests')
    }
  })

  /** A pool of nodes with eight cores, whose empty nodes go after a few seconds. */
  function aPool(name: string): TestObject {
    return {
      apiVersion: karpenter,
      kind: 'NodePool',
      metadata: { name },
      spec: {
        disruption: {
          consolidationPolicy: 'WhenEmpty',
          consolidateAfter: '8s',
          budgets: [{ nodes: '100%' }],
        },
        template: {
          spec: {
            nodeClassRef: { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'requests' },
            requirements: [
              { key: 'node.kubernetes.io/instance-type', operator: 'In', values: ['c-8x-amd64-linux'] },
              { key: 'karpenter.sh/capacity-type', operator: 'In', values: ['on-demand'] },
            ],
          },
        },
      },
    }
  }

  const on = (pool: string) => ({ [poolLabel]: pool })
  const claimsOf = (pool: string) => cluster.list(karpenter, 'NodeClaim', undefined, `${poolLabel}=${pool}`)

  test('GNG-41 a workload of ten pods gets all its nodes before it starts, takes them, and no further one comes', async () => {
    const podSets = [{ name: 'main', count: 10, cpu: '7', nodeSelector: on('whole') }]
    const workload = await KueueWorkload.submit(cluster, 'whole', { podSets })
    assert.equal(await workload.settled(90), 'Ready')
    assert.ok(
      workload.messages.some((text) => /^It takes 10 nodes: \d+ launched, \d+ ready$/.test(text)),
      workload.messages.join(' | '),
    )
    assert.equal(await workload.state('Accepted'), 'True/Accepted')
    assert.equal(await workload.state('Provisioned'), 'True/CapacityIsProvisioned')
    const claims = await claimsOf('whole')
    assert.equal(claims.length, 10)
    assert.ok(
      claims.every(({ status }) =>
        status?.conditions?.some(({ type, status: value }) => type === 'Initialized' && value === 'True'),
      ),
    )
    await workload.pods()
    await until('all pods have a node', 30, async () => (await workload.boundPods()) === 10)
    await workload.untilState('BookingExpired', 'True/CapacityBookingConsumed', 20)
    assert.equal((await claimsOf('whole')).length, 10)
    await workload.end()
    await until('nothing of it is left', 40, async () => (await leftOf('whole')).length === 0)
  })

  test('GNG-42 pod sets that need different NodePools get nodes together', async () => {
    const workload = await KueueWorkload.submit(cluster, 'both', {
      podSets: [
        { name: 'launcher', count: 1, cpu: '1', nodeSelector: on('left') },
        { name: 'workers', count: 3, cpu: '7', nodeSelector: on('right') },
      ],
    })
    assert.equal(await workload.settled(60), 'Ready')
    assert.deepEqual([(await claimsOf('left')).length, (await claimsOf('right')).length], [1, 3])
    await workload.end()
  })

  test('GNG-50 a request that failed is followed by attempt 2, and nothing of attempt 1 is left', async () => {
    kubectl(['patch', 'nodepool', 'short', '--type=merge', '-p', '{"spec":{"limits":{"nodes":"1"}}}'])
    await clock.sleep(1000)
    const workload = await KueueWorkload.submit(cluster, 'again', {
      podSets: [{ name: 'main', count: 3, cpu: '7', nodeSelector: on('short') }],
      parameters: { noRetry: 'true' },
      backoffLimitCount: 20,
    })
    await until('the first attempt has failed', 60, async () => {
      const state = await workload.state('Failed')
      assert.equal((await claimsOf('short')).length, 0)
      return state === 'True/CapacityIsNotFound'
    })
    const first = workload.requestName
    kubectl(['patch', 'nodepool', 'short', '--type=merge', '-p', '{"spec":{"limits":{"nodes":"10"}}}'])
    assert.equal(await workload.settled(60), 'Ready')
    assert.ok(workload.attempt >= 2)
    assert.equal((await claimsOf('short')).length, 3)
    await until('the first attempt is gone', 30, async () =>
      (await leftOf('again')).every((name) => !name.includes(first)),
    )
    await workload.end()
  })

  test('GNG-46 GNG-47 GNG-49 room that is there goes to one of two, is kept with nothing on it, and then goes', async () => {
    const seed = await KueueWorkload.submit(cluster, 'seed', {
      podSets: [{ name: 'main', count: 1, cpu: '7', nodeSelector: on('free') }],
    })
    assert.equal(await seed.settled(60), 'Ready')
    await seed.pods()
    await seed.untilState('BookingExpired', 'True/CapacityBookingConsumed', 30)
    const check = (name: string, parameters?: Readonly<Record<string, string>>) =>
      KueueWorkload.submit(cluster, name, {
        className: checkClass,
        podSets: [{ name: 'main', count: 1, cpu: '4', nodeSelector: on('free') }],
        ...(parameters && { parameters }),
      })
    const refused = await check('once', { noRetry: 'true' })
    await refused.untilState('Failed', 'True/CapacityIsNotFound', 30)
    await refused.end()
    // The pod of the first workload goes, and its node is empty: two want it.
    const [one, other] = [await check('one'), await check('other')]
    await one.untilState('Provisioned', 'False/CapacityIsNotFound', 30)
    await one.end()
    await other.end()
    await seed.end()
    // Of requests of one second the one goes first whose name does.
    const next = await check('first')
    const late = await check('late')
    await next.untilState('Provisioned', 'True/CapacityIsFound', 30)
    await late.untilState('Provisioned', 'False/CapacityIsNotFound', 30)
    const [held, ...others] = await claimsOf('free')
    assert.deepEqual(others, [])
    // Without the booking an empty node goes after eight seconds.
    await clock.sleep(11_000)
    assert.equal((await claimsOf('free'))[0]?.metadata?.uid, held?.metadata?.uid)
    // Pods of a request that only checks never get a node, with the annotations of older Kueue as well.
    await late.pods(1, annotationKeys.before)
    await next.untilState('BookingExpired', 'True/CapacityReservationTimeExpired', bookingSeconds + 10)
    assert.ok((await claimsOf('free')).length <= 1)
    await late.end()
    await until('the empty node goes', 40, async () => (await claimsOf('free')).length === 0)
    await next.end()
  })

  test('GNG-49 pods whose request is gone are like any others', async () => {
    const workload = await KueueWorkload.submit(cluster, 'gone', {
      podSets: [{ name: 'main', count: 1, cpu: '7', nodeSelector: on('gone') }],
    })
    assert.equal(await workload.settled(60), 'Ready')
    await cluster.delete(requestApi, 'ProvisioningRequest', workload.requestName, 'default')
    await until('its node is given back', 60, async () => (await claimsOf('gone')).length === 0)
    await workload.pods(1, annotationKeys.before)
    await until('the pod has a node', 60, async () => (await workload.boundPods()) === 1)
    await workload.end()
  })
})

describe('in the Cluster Autoscaler mode', () => {
  const pool = 'c0010000-0000-4000-8000-000000000001'
  const seed = {
    nodepools: [
      {
        id: pool,
        name: 'workers',
        type: 'standard.large',
        size: 1,
        joins: true as const,
        prefix: 'workers',
        labels: { pool: 'workers' },
      },
    ],
  }
  const operations = [
    'evict-sks-nodepool-members',
    'get-instance',
    'get-instance-pool',
    'get-operation',
    'get-quota',
    'list-sks-clusters',
    'scale-sks-nodepool',
  ]
  /** What charts/cluster-autoscaler grants with the flag. */
  const rights = {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: { name: 'cluster-autoscaler-requests' },
    rules: [
      {
        apiGroups: ['autoscaling.x-k8s.io'],
        resources: ['provisioningrequests'],
        verbs: ['watch', 'list', 'get', 'delete'],
      },
      { apiGroups: ['autoscaling.x-k8s.io'], resources: ['provisioningrequests/status'], verbs: ['patch'] },
      { apiGroups: [''], resources: ['podtemplates'], verbs: ['watch', 'list', 'get'] },
    ],
  }
  let mirror: ExoscaleMirror
  let autoscaler: ClusterAutoscalerProcess
  let closeAdmin: () => void

  before(async () => {
    const config = loadKubeConfig({ env: {}, kubeconfig: controlPlane.kubeconfigPath, clock })
    closeAdmin = () => {
      config.close()
    }
    const admin = createKubeClient({ transport: config.transport, clock, userAgent: 'administrator' })
    for (const { metadata } of await admin.list(kinds.node)) await admin.delete(kinds.node, metadata)
    mirror = await ExoscaleMirror.start({ admin, seed, operations })
    await until('the node is ready', 60, async () => {
      const [node] = await cluster.list('v1', 'Node')
      return node?.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True')
    })
    await cluster.create(rights)
    kubectl([
      'create',
      'clusterrolebinding',
      'cluster-autoscaler-requests',
      '--clusterrole=cluster-autoscaler-requests',
      '--serviceaccount=kube-system:cluster-autoscaler',
    ])
    autoscaler = new ClusterAutoscalerProcess({
      controlPlane,
      folder,
      args: [
        '--cloud-provider=exoscale',
        '--scan-interval=2s',
        '--scale-down-enabled=false',
        '--enable-provisioning-requests',
        '--provisioning-request-initial-backoff-time=5s',
        '--nodes=1:6:workers',
        `--address=127.0.0.1:${await freePort()}`,
      ],
      environment: mirror.environment,
    })
    autoscaler.start()
  })

  afterEach((context) => {
    if ('passed' in context && !context.passed)
      process.stderr.write(autoscaler.log().split('\n').slice(-40).join('\n'))
  })

  after(async () => {
    await autoscaler.end('SIGTERM')
    await mirror.stop()
    for (const kind of ['ClusterRoleBinding', 'ClusterRole'])
      await cluster.delete('rbac.authorization.k8s.io/v1', kind, 'cluster-autoscaler-requests')
    closeAdmin()
  })

  const on = { pool: 'workers' }

  test('GNG-50 the pool grows once by all that is missing, Provisioned is said at the call, and the pods take the nodes', async () => {
    const workload = await KueueWorkload.submit(cluster, 'train', {
      podSets: [{ name: 'main', count: 4, cpu: '3', nodeSelector: on }],
    })
    await workload.untilState('Provisioned', 'True/CapacityIsProvisioned', 60)
    assert.equal(await workload.state('Accepted'), 'True/Accepted')
    await workload.pods(undefined, annotationKeys.before)
    await until('all pods have a node', 120, async () => (await workload.boundPods()) === 4)
    await workload.untilState('BookingExpired', 'True/CapacityBookingConsumed', 20)
    assert.equal(mirror.members().length, 4)
  })

  test('GNG-50 GNG-46 what does not fit the pool gets nothing, and is tried again when there is room', async () => {
    const workload = await KueueWorkload.submit(cluster, 'large', {
      podSets: [{ name: 'main', count: 4, cpu: '3', nodeSelector: on }],
    })
    await workload.untilState('Provisioned', 'False/CapacityIsNotFound', 30)
    const check = await KueueWorkload.submit(cluster, 'check', {
      className: checkClass,
      podSets: [{ name: 'main', count: 1, cpu: '3', nodeSelector: on }],
      parameters: { noRetry: 'true' },
      backoffLimitCount: 0,
    })
    assert.equal(await check.settled(30), 'Rejected')
    await check.pods()
    await clock.sleep(6000)
    assert.equal(mirror.members().length, 4)
    assert.equal(await check.boundPods(), 0)
    await check.end()
    for (const { metadata } of await cluster.list('v1', 'Pod', 'default', 'workload=train'))
      await cluster.delete('v1', 'Pod', metadata?.name ?? '', 'default')
    await workload.untilState('Provisioned', 'True/CapacityIsFound', 60)
    assert.equal(mirror.members().length, 4)
    await workload.end()
    await until('nothing of it is left', 40, async () => (await leftOf('large')).length === 0)
  })
})
