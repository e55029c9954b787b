/** What depends on the version of Kubernetes, on a real control plane of that version (docs/design/0012). */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, before, describe, test } from 'node:test'
import { kinds } from '@tenon/api'
import { createCacheRegistry, createKubeClient, loadKubeConfig } from '@tenon/kube'
import { SeededRandom, silentLogger, SystemClock, type Transport } from '@tenon/runtime'
import { goModules, pinnedVersion } from '../src/components.ts'
import { Cluster, elapsed, sharedControlPlane, type TestObject, until } from './cluster.ts'
import { Controller, crdsYaml } from './tenon.ts'

const karpenter = 'karpenter.sh/v1'
const kwok = 'karpenter.kwok.sh/v1alpha1'
const pool = 'versions'
const poolLabel = 'karpenter.sh/nodepool'
const driver = 'gpu.example.com'
const slowDriver = 'fabric.example.com'
const gpu = 'example.com/gpu'
const offerings = [{ zone: 'zone-a', capacityType: 'on-demand', price: 1 }]
const aType = { architecture: 'amd64', operatingSystems: ['linux'], resources: { cpu: '4', memory: '16Gi' } }
/** The cheaper type has no device. */
const types = [
  { ...aType, name: 'plain', offerings },
  {
    ...aType,
    name: 'gpu',
    offerings: [{ ...offerings[0], price: 4 }],
    resourceSliceTemplates: [
      { driver, pool: 'gpus', devices: Array.from({ length: 5 }, (_, index) => ({ name: `gpu-${index}` })) },
    ],
  },
  {
    ...aType,
    name: 'prepared',
    offerings: [{ ...offerings[0], price: 5 }],
    // Attached once a node is chosen: the scheduler binds when the conditions are True.
    resourceSliceTemplates: [
      {
        driver: slowDriver,
        pool: 'fabric',
        devices: [
          {
            name: 'fabric-0',
            bindingConditions: ['example.com/attached'],
            bindingFailureConditions: ['example.com/failed'],
          },
        ],
      },
    ],
  },
]

/** A pod for nodes of the pool; without requests it asks for half a CPU. */
function aPod(
  name: string,
  spec: object = {},
  requests: object = { cpu: '500m' },
  namespace = 'default',
): TestObject {
  const limits = Object.fromEntries(Object.entries(requests).filter(([key]) => key.includes('/')))
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace, labels: { app: pool } },
    spec: {
      terminationGracePeriodSeconds: 0,
      nodeSelector: { [poolLabel]: pool },
      containers: [{ name: 'main', image: 'registry.k8s.io/pause:3.10', resources: { requests, limits } }],
      ...spec,
    },
  }
}

function requestsOf(claim: TestObject | undefined): Readonly<Record<string, string>> {
  const { requests = {} } = (claim?.spec?.['resources'] ?? {}) as {
    readonly requests?: Readonly<Record<string, string>>
  }
  return requests
}

describe('what depends on the version of Kubernetes', () => {
  let controlPlane: Awaited<ReturnType<typeof sharedControlPlane>>
  let cluster: Cluster
  let controller: Controller
  let folder: string
  let minor: number

  const kubectl = (args: readonly string[], input = ''): string =>
    execFileSync(
      join(controlPlane.binDir, 'kubectl'),
      ['--kubeconfig', controlPlane.kubeconfigPath, ...args],
      { input, encoding: 'utf8' },
    )
  const logOf = () => readFileSync(join(folder, 'controller.log'), 'utf8')
  const nodeClaims = () => cluster.list(karpenter, 'NodeClaim', undefined, `${poolLabel}=${pool}`)
  const nodes = () => cluster.list('v1', 'Node', undefined, `${poolLabel}=${pool}`)
  const podNow = (name: string) => cluster.get('v1', 'Pod', name, 'default')
  const untilRunning = (name: string) =>
    until(`${name} runs`, 90, async () => {
      controller.assertRunning()
      const pod = await podNow(name)
      return pod?.status?.phase === 'Running' && pod
    })
  const untilEmpty = () => until('all nodes are gone', 120, async () => (await nodes()).length === 0)
  const deletePods = async (...names: readonly string[]) => {
    for (const name of names) await cluster.delete('v1', 'Pod', name, 'default')
  }
  /** What Tenon says of a pod that it does not serve. */
  const reasonOf = (name: string) =>
    until(`Tenon says why ${name} waits`, 60, async () => {
      const events = (await cluster.list('v1', 'Event', 'default')) as readonly (TestObject & {
        readonly involvedObject?: { readonly name?: string }
        readonly message?: string
        readonly reportingComponent?: string
      })[]
      return events.find(
        ({ involvedObject, reportingComponent }) =>
          involvedObject?.name === name && reportingComponent !== 'default-scheduler',
      )?.message
    })

  /** Fails if a NodeClaim comes or goes, or is deleted, within these milliseconds. */
  const staysAsItIs = async (ms: number) => {
    const names = async () =>
      (await nodeClaims()).map(
        ({ metadata }) => `${metadata?.name} ${metadata?.deletionTimestamp === undefined}`,
      )
    const known = await names()
    const passed = elapsed()
    await until('some time passes', ms, async () => {
      controller.assertRunning()
      assert.deepEqual(await names(), known)
      return passed() > ms
    })
  }
  const nominationOf = async (name: string) =>
    ((await podNow(name))?.status as { readonly nominatedNodeName?: string } | undefined)?.nominatedNodeName

  before(async () => {
    controlPlane = await sharedControlPlane()
    cluster = new Cluster(controlPlane.kubeconfigPath)
    minor = controlPlane.minor
    folder = mkdtempSync(join(tmpdir(), 'tenon-versions-'))
    const typesPath = join(folder, 'types.json')
    writeFileSync(typesPath, JSON.stringify(types))
    controller = new Controller(controlPlane.kubeconfigPath, join(folder, 'controller.log'), {
      DISABLE_LEADER_ELECTION: 'true',
      INSTANCE_TYPES_FILE_PATH: typesPath,
    })
    kubectl(['apply', '--server-side', '--force-conflicts', '-f', '-'], crdsYaml())
    await until('the definitions are served', 20, () =>
      nodeClaims().then(
        () => true,
        () => false,
      ),
    )
    await cluster.create({ apiVersion: kwok, kind: 'KWOKNodeClass', metadata: { name: pool }, spec: {} })
    await cluster.create({
      apiVersion: karpenter,
      kind: 'NodePool',
      metadata: { name: pool },
      spec: {
        disruption: {
          consolidationPolicy: 'WhenEmpty',
          consolidateAfter: '2s',
          budgets: [{ nodes: '100%' }],
        },
        template: {
          spec: {
            nodeClassRef: { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: pool },
            requirements: [{ key: 'kubernetes.io/os', operator: 'In', values: ['linux'] }],
          },
        },
      },
    })
    controller.start()
  })

  afterEach((context) => {
    if ('passed' in context && !context.passed)
      process.stderr.write(logOf().split('\n').slice(-40).join('\n'))
  })

  after(async () => {
    try {
      kubectl(['delete', 'pods', '-l', `app=${pool}`, '--wait=false'])
      await cluster.delete(karpenter, 'NodePool', pool)
      await untilEmpty()
    } finally {
      await controller.end('SIGTERM')
      await cluster.delete(kwok, 'KWOKNodeClass', pool)
      if (minor >= 34) {
        kubectl(['delete', 'deviceclasses', '--all', '--wait=false'])
        kubectl(['delete', 'resourceslices', '--all', '--wait=false'])
      }
      rmSync(folder, { recursive: true, force: true })
      await controlPlane.stop()
    }
  })

  test('VER-38 requests of the pod level count where the server keeps them', async () => {
    await cluster.create(aPod('pod-level', { resources: { requests: { cpu: '2' } } }, { cpu: '1' }))
    await untilRunning('pod-level')
    const [claim] = await nodeClaims()
    assert.equal(requestsOf(claim)['cpu'], minor >= 34 ? '2' : '1')
  })

  test('VER-59 with the pinned etcd all caches are filled, and no request fails', () => {
    const etcd = goModules(process.env).find(({ folder: name }) => name === 'etcd')
    assert.match(etcd === undefined ? '' : pinnedVersion(etcd), /^v3\.6\./)
    const problems = logOf()
      .split('\n')
      .filter((line) => line.includes('"level":"ERROR"') || /watch|list of/.test(line))
    assert.deepEqual(problems, [])
  })

  test('VER-42 a pod that another scheduler has nominated keeps its node, until it has gone', async () => {
    const [node] = await nodes()
    const name = node?.metadata?.name ?? ''
    await cluster.create(aPod('nominated', { schedulerName: 'another' }))
    const patch = JSON.stringify({ status: { nominatedNodeName: name } })
    kubectl(['patch', 'pod', 'nominated', '--subresource=status', '--type=merge', '-p', patch])
    await deletePods('pod-level')
    await until('the pod has gone', 20, async () => (await podNow('pod-level')) === undefined)
    await staysAsItIs(12_000)
    await deletePods('nominated')
    await untilEmpty()
  })

  test('VER-54 the budget of a namespace that goes does not hold a drain', async () => {
    const namespace = 'tenon-dying'
    await cluster.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } })
    await cluster.create(aPod('guarded', {}, { cpu: '500m' }, namespace))
    await cluster.create({
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: { name: 'guard', namespace },
      spec: { maxUnavailable: 0, selector: { matchLabels: { app: pool } } },
    })
    await until('the pod runs', 90, async () => {
      const now = await cluster.get('v1', 'Pod', 'guarded', namespace)
      return now?.status?.phase === 'Running'
    })
    const [claim] = await nodeClaims()
    await cluster.delete(karpenter, 'NodeClaim', claim?.metadata?.name ?? '')
    await until('its node drains', 30, async () =>
      (await nodes()).some(({ metadata }) => metadata?.deletionTimestamp !== undefined),
    )
    await cluster.delete('v1', 'Namespace', namespace)
    await untilEmpty()
    await until('the namespace has gone', 60, async () => {
      return (await cluster.get('v1', 'Namespace', namespace)) === undefined
    })
  })

  test('VER-22 a pod whose feature no kubelet declares gets no node, and the feature is named', async (t) => {
    if (minor < 36) return t.skip('the server drops the field')
    const rule = { action: 'RestartAllContainers', exitCodes: { operator: 'In', values: [42] } }
    const container = {
      name: 'main',
      image: 'registry.k8s.io/pause:3.10',
      restartPolicy: 'Never',
      restartPolicyRules: [rule],
    }
    await cluster.create(aPod('restarting', { containers: [container] }))
    assert.match(await reasonOf('restarting'), /RestartAllContainersOnContainerExits/)
    assert.deepEqual(await nodeClaims(), [])
    await deletePods('restarting')
  })

  test('VER-10 VER-12 VER-15 extended resources get nodes with devices, by each name of their class', async (t) => {
    if (minor < 36) return t.skip('the feature is off')
    await cluster.create({
      apiVersion: 'resource.k8s.io/v1',
      kind: 'DeviceClass',
      metadata: { name: 'gpu' },
      spec: {
        extendedResourceName: gpu,
        selectors: [{ cel: { expression: `device.driver == '${driver}'` } }],
      },
    })
    await cluster.create(aPod('by-name', {}, { cpu: '500m', [gpu]: '1' }))
    await untilRunning('by-name')
    const [claim] = await nodeClaims()
    assert.equal(claim?.metadata?.annotations?.['karpenter.sh/requested-dra-drivers'], driver)
    assert.equal(claim.metadata.labels?.['node.kubernetes.io/instance-type'], 'gpu')
    assert.ok(!Object.hasOwn(requestsOf(claim), gpu), 'devices serve it')
    await cluster.create(aPod('by-class', {}, { cpu: '500m', 'deviceclass.resource.kubernetes.io/gpu': '1' }))
    await untilRunning('by-class')
    assert.equal((await nodeClaims()).length, 1)
    // An ordinary init container reuses what later containers have: four devices, where three are free.
    const asking = (name: string, count: string) => ({
      name,
      image: 'registry.k8s.io/pause:3.10',
      resources: { requests: { [gpu]: count }, limits: { [gpu]: count } },
    })
    await cluster.create(
      aPod('in-turn', {
        initContainers: [asking('first', '4')],
        containers: [asking('one', '1'), asking('two', '2')],
      }),
    )
    await until('it gets a node of its own', 60, async () => {
      controller.assertRunning()
      return (await nodeClaims()).length === 2
    })
    await until('it is bound', 60, async () => (await podNow('in-turn'))?.spec?.['nodeName'] !== undefined)
    const made = (await cluster.list('resource.k8s.io/v1', 'ResourceClaim', 'default')).find(
      ({ metadata }) => metadata?.ownerReferences?.some(({ name }) => name === 'in-turn') === true,
    )
    const { allocation } = (made?.status ?? {}) as {
      readonly allocation?: { readonly devices: { readonly results: readonly { readonly device: string }[] } }
    }
    const devices = (allocation?.devices.results ?? []).map(({ device }) => device)
    assert.equal(new Set(devices).size, 4, devices.join(', '))
    await deletePods('by-name', 'by-class', 'in-turn')
    await untilEmpty()
  })

  test('VER-43 for a pod that preempts another on its node no second node is launched, and the first stays', async () => {
    await cluster.create({
      apiVersion: 'scheduling.k8s.io/v1',
      kind: 'PriorityClass',
      metadata: { name: pool },
      value: 1000,
    } as TestObject)
    const { metadata, ...victim } = aPod('victim', { terminationGracePeriodSeconds: 120 }, { cpu: '3' })
    // The simulated kubelet knows no grace period: the finalizer keeps the pod as long.
    await cluster.create({
      ...victim,
      metadata: {
        name: 'victim',
        namespace: 'default',
        labels: metadata?.labels ?? {},
        finalizers: ['example.com/ends'],
      },
    })
    await untilRunning('victim')
    await cluster.create(aPod('preemptor', { priorityClassName: pool }, { cpu: '3' }))
    await until('the pod is nominated', 30, () => nominationOf('preemptor'))
    await staysAsItIs(20_000)
    assert.equal((await nodeClaims()).length, 1)
    kubectl(['patch', 'pod', 'victim', '--type=merge', '-p', '{"metadata":{"finalizers":null}}'])
    await untilRunning('preemptor')
    assert.equal((await nodeClaims()).length, 1)
    await deletePods('preemptor')
    await cluster.delete('scheduling.k8s.io/v1', 'PriorityClass', pool)
    await untilEmpty()
  })

  test('VER-44 a pod whose device is being attached is served; if that fails it is planned anew', async (t) => {
    if (minor < 36) return t.skip('binding conditions of devices are off')
    await cluster.create({
      apiVersion: 'resource.k8s.io/v1',
      kind: 'DeviceClass',
      metadata: { name: 'fabric' },
      spec: { selectors: [{ cel: { expression: `device.driver == '${slowDriver}'` } }] },
    })
    await cluster.create({
      apiVersion: 'resource.k8s.io/v1',
      kind: 'ResourceClaim',
      metadata: { name: 'fabric', namespace: 'default' },
      spec: { devices: { requests: [{ name: 'fabric', exactly: { deviceClassName: 'fabric' } }] } },
    })
    await cluster.create(
      aPod('attaching', { resourceClaims: [{ name: 'fabric', resourceClaimName: 'fabric' }] }),
    )
    interface ClaimStatus {
      readonly allocation?: {
        readonly devices: { readonly results: readonly { readonly pool: string; readonly device: string }[] }
      }
    }
    const allocated = () =>
      until('the device is allocated, and the pod nominated', 90, async () => {
        const claim = await cluster.get('resource.k8s.io/v1', 'ResourceClaim', 'fabric', 'default')
        const [result] = (claim?.status as ClaimStatus | undefined)?.allocation?.devices.results ?? []
        return (await nominationOf('attaching')) !== undefined && result
      })
    const report = ({ pool: from, device }: Awaited<ReturnType<typeof allocated>>, type: string) => {
      const condition = { type, status: 'True', reason: 'Test', message: '' }
      const conditions = [{ ...condition, lastTransitionTime: new Date().toISOString() }]
      const status = { devices: [{ driver: slowDriver, pool: from, device, conditions }] }
      const patch = JSON.stringify({ status })
      kubectl(['patch', 'resourceclaim', 'fabric', '--subresource=status', '--type=merge', '-p', patch])
    }
    const first = await allocated()
    assert.equal((await nodeClaims()).length, 1)
    await staysAsItIs(20_000)
    assert.equal((await podNow('attaching'))?.spec?.nodeName, undefined)
    report(first, 'example.com/failed')
    await until('the device is given back', 60, async () => {
      const claim = await cluster.get('resource.k8s.io/v1', 'ResourceClaim', 'fabric', 'default')
      return (claim?.status as { readonly devices?: unknown } | undefined)?.devices === undefined
    })
    report(await allocated(), 'example.com/attached')
    await untilRunning('attaching')
    assert.equal((await nodeClaims()).length, 1, 'the node that there is serves it')
    await deletePods('attaching')
    await cluster.delete('resource.k8s.io/v1', 'ResourceClaim', 'fabric', 'default')
    await untilEmpty()
  })

  test('VER-21 without the gate the extended resource of a class reads back empty, and nothing is launched', async (t) => {
    if (minor !== 34) return t.skip('only on 1.34 devices are served without extended resources by a gate')
    const made = await cluster.create({
      apiVersion: 'resource.k8s.io/v1',
      kind: 'DeviceClass',
      metadata: { name: 'gpu' },
      spec: {
        extendedResourceName: gpu,
        selectors: [{ cel: { expression: `device.driver == '${driver}'` } }],
      },
    })
    assert.equal(made.spec?.['extendedResourceName'], undefined)
    await cluster.create(aPod('unserved', {}, { cpu: '500m', [gpu]: '1' }))
    assert.match(await reasonOf('unserved'), new RegExp(gpu))
    assert.deepEqual(await nodeClaims(), [])
    await deletePods('unserved')
  })

  test('VER-7 a pod that claims devices hears that they need 1.34, and others are served', async (t) => {
    if (minor >= 34) return t.skip('devices are served')
    const made = await cluster.create(
      aPod('claiming', { resourceClaims: [{ name: 'gpu', resourceClaimName: 'gpu' }] }),
    )
    await cluster.create(aPod('other'))
    await untilRunning('other')
    // A server with the gate off drops the claims: then the pod is one of the others.
    if (made.spec?.['resourceClaims'] === undefined) await untilRunning('claiming')
    else assert.match(await reasonOf('claiming'), /needs Kubernetes 1\.34/)
    await deletePods('claiming', 'other')
    await untilEmpty()
  })

  test('VER-6 objects are streamed, or listed after one refused stream per kind', async () => {
    const clock = new SystemClock()
    const config = loadKubeConfig({ env: {}, kubeconfig: controlPlane.kubeconfigPath, clock })
    const asked: string[] = []
    const counting: Transport = {
      send: (request, signal) => {
        asked.push(request.path)
        return config.transport.send(request, signal)
      },
    }
    const logger = silentLogger
    const client = createKubeClient({ transport: counting, clock, userAgent: 'versions' })
    const registry = createCacheRegistry({ client, clock, logger, random: new SeededRandom('versions') })
    registry.cache(kinds.pod)
    registry.cache(kinds.node)
    const stopping = new AbortController()
    registry.start(stopping.signal)
    try {
      await registry.synced(AbortSignal.timeout(30_000))
      for (const plural of ['pods', 'nodes']) {
        const own = asked.filter((path) => path.startsWith(`/api/v1/${plural}`))
        const streams = own.filter((path) => path.includes('sendInitialEvents'))
        const lists = own.filter((path) => !path.includes('watch='))
        assert.equal(streams.length, 1, own.join('\n'))
        assert.equal(lists.length, minor >= 34 ? 0 : 1, own.join('\n'))
      }
    } finally {
      stopping.abort()
      config.close()
    }
  })

  test('VER-51 without its gate the server refuses tolerations that compare', async () => {
    const toleration = { key: 'size', operator: 'Gt', value: '3', effect: 'NoSchedule' }
    await assert.rejects(
      cluster.create(aPod('comparing', { tolerations: [toleration] })),
      /tolerations\[0\]\.operator/,
    )
  })
})
