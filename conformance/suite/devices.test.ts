/** Pods that claim devices on a real control plane: its scheduler allocates what nodes were launched for (devices.md 3). */
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, before, describe, test } from 'node:test'
import { execFileSync } from 'node:child_process'
import { Cluster, elapsed, sharedControlPlane, type TestObject, until } from './cluster.ts'
import { Controller, crdsYaml } from './tenon.ts'

const karpenter = 'karpenter.sh/v1'
const resource = 'resource.k8s.io/v1'
const kwok = 'karpenter.kwok.sh/v1alpha1'
const driver = 'gpu.example.com'
const poolLabel = 'karpenter.sh/nodepool'
const deviceDelay = 'simulation.karpenter.kwok.sh/device-delay'
const templates = ['whole', 'selected', 'any', 'impossible'] as const
type Template = (typeof templates)[number]

/** The scheduler gives away the first device that does: the one that only some claims can take comes last. */
const models = ['l4', 'l4', 'a100', 'h100']
const offerings = [{ zone: 'zone-a', capacityType: 'on-demand', price: 1 }]
const aType = { architecture: 'amd64', operatingSystems: ['linux'], resources: { cpu: '8', memory: '32Gi' } }
/** The cheaper type has no device. */
const types = [
  { ...aType, name: 'plain', offerings },
  {
    ...aType,
    name: 'gpu',
    offerings: [{ ...offerings[0], price: 4 }],
    resourceSliceTemplates: [
      {
        driver,
        pool: 'gpus',
        devices: models.map((model, index) => ({
          name: `gpu-${index}`,
          attributes: { model: { string: model } },
        })),
      },
    ],
  },
]

const hasModel = (model: string) => ({
  selectors: [{ cel: { expression: `device.attributes['${driver}'].model == '${model}'` } }],
})

/** A whole device of a class, one with an attribute, the first alternative that there is, and one that no type has. */
const requests: Readonly<Record<Template, object>> = {
  whole: { exactly: { deviceClassName: 'gpu' } },
  selected: { exactly: { deviceClassName: 'gpu', ...hasModel('h100') } },
  any: {
    firstAvailable: [
      { name: 'best', deviceClassName: 'gpu', ...hasModel('b200') },
      { name: 'old', deviceClassName: 'gpu', ...hasModel('l4') },
    ],
  },
  impossible: { exactly: { deviceClassName: 'gpu', ...hasModel('b200') } },
}

function aTemplate(name: Template): TestObject {
  return {
    apiVersion: resource,
    kind: 'ResourceClaimTemplate',
    metadata: { name, namespace: 'default' },
    spec: { spec: { devices: { requests: [{ name: 'gpu', ...requests[name] }] } } },
  }
}

function aPod(name: string, template: Template): TestObject {
  const claims = [{ name: 'device' }]
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default', labels: { app: 'devices' } },
    spec: {
      terminationGracePeriodSeconds: 0,
      nodeSelector: { [poolLabel]: 'devices' },
      resourceClaims: [{ name: 'device', resourceClaimTemplateName: template }],
      containers: [
        {
          name: 'main',
          image: 'registry.k8s.io/pause:3.10',
          resources: { requests: { cpu: '500m', memory: '512Mi' }, claims },
        },
      ],
    },
  }
}

interface Result {
  readonly request: string
  readonly pool: string
  readonly device: string
}

describe('pods that claim devices', () => {
  let controlPlane: Awaited<ReturnType<typeof sharedControlPlane>>
  let cluster: Cluster
  let controller: Controller
  let folder: string
  /** Every NodeClaim that was ever seen. */
  const seen = new Set<string>()

  const kubectl = (args: readonly string[], input = ''): string =>
    execFileSync(
      join(controlPlane.binDir, 'kubectl'),
      ['--kubeconfig', controlPlane.kubeconfigPath, ...args],
      { input, stdio: ['pipe', 'pipe', 'inherit'], encoding: 'utf8' },
    )
  const logOf = (): string => readFileSync(join(folder, 'controller.log'), 'utf8')

  before(async () => {
    controlPlane = await sharedControlPlane()
    cluster = new Cluster(controlPlane.kubeconfigPath)
    folder = mkdtempSync(join(tmpdir(), 'tenon-devices-'))
    const typesPath = join(folder, 'types.json')
    writeFileSync(typesPath, JSON.stringify(types))
    controller = new Controller(controlPlane.kubeconfigPath, join(folder, 'controller.log'), {
      DISABLE_LEADER_ELECTION: 'true',
      INSTANCE_TYPES_FILE_PATH: typesPath,
    })
    kubectl(['apply', '--server-side', '--force-conflicts', '-f', '-'], crdsYaml())
    kubectl(['wait', '--for=condition=Established', '-f', '-', '--timeout=20s'], crdsYaml())
    await cluster.create({
      apiVersion: kwok,
      kind: 'KWOKNodeClass',
      metadata: { name: 'devices', annotations: { [deviceDelay]: '15s' } },
      spec: {},
    })
    await cluster.create({
      apiVersion: resource,
      kind: 'DeviceClass',
      metadata: { name: 'gpu' },
      spec: { selectors: [{ cel: { expression: `device.driver == '${driver}'` } }] },
    })
    for (const name of templates) await cluster.create(aTemplate(name))
    await cluster.create({
      apiVersion: karpenter,
      kind: 'NodePool',
      metadata: { name: 'devices' },
      spec: {
        disruption: {
          consolidationPolicy: 'WhenEmpty',
          consolidateAfter: '2s',
          budgets: [{ nodes: '100%' }],
        },
        template: {
          spec: {
            nodeClassRef: { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'devices' },
            requirements: [{ key: 'kubernetes.io/os', operator: 'In', values: ['linux'] }],
          },
        },
      },
    })
    // For a moment after a kind is established its objects cannot be listed.
    await until('NodeClaims can be listed', 20, async () => {
      return await nodeClaims().then(
        () => true,
        () => false,
      )
    })
    controller.start()
  })

  afterEach((context) => {
    if ('passed' in context && !context.passed)
      process.stderr.write(logOf().split('\n').slice(-40).join('\n'))
  })

  after(async () => {
    try {
      for (const pod of await pods()) await cluster.delete('v1', 'Pod', pod.metadata?.name ?? '', 'default')
      await cluster.delete(karpenter, 'NodePool', 'devices')
      await until('all nodes are gone', 120, async () => {
        controller.assertRunning()
        return (await cluster.list('v1', 'Node', undefined, `${poolLabel}=devices`)).length === 0
      })
    } finally {
      await controller.end('SIGTERM')
      await cluster.delete(kwok, 'KWOKNodeClass', 'devices')
      await cluster.delete(resource, 'DeviceClass', 'gpu')
      for (const name of templates) await cluster.delete(resource, 'ResourceClaimTemplate', name, 'default')
      kubectl(['delete', 'resourceslices', '--all', '--wait=false'])
      rmSync(folder, { recursive: true, force: true })
      await controlPlane.stop()
    }
  })

  const pods = () => cluster.list('v1', 'Pod', 'default', 'app=devices')
  const nodeClaims = async () => {
    const claims = await cluster.list(karpenter, 'NodeClaim', undefined, `${poolLabel}=devices`)
    for (const { metadata } of claims) seen.add(metadata?.name ?? '')
    return claims
  }

  /** Waits for pods, and looks at the NodeClaims all along. */
  const untilRunning = async (...names: readonly string[]) =>
    await until(`${names.join(', ')} run`, 120, async () => {
      controller.assertRunning()
      await nodeClaims()
      const found = await pods()
      return names.every((name) =>
        found.some(({ metadata, status }) => metadata?.name === name && status?.phase === 'Running'),
      )
    })

  /** What the pod was given; each node has a pool of its own. */
  async function given(name: string): Promise<Result | undefined> {
    const claims = await cluster.list(resource, 'ResourceClaim', 'default')
    const own = claims.find(({ metadata }) => metadata?.ownerReferences?.some((owner) => owner.name === name))
    const { allocation } = (own?.status ?? {}) as {
      readonly allocation?: { readonly devices: { readonly results: readonly Result[] } }
    }
    return allocation?.devices.results[0]
  }

  test('BUF-39 claims of three kinds get one node, which counts once its driver has published', async (t) => {
    const time = elapsed()
    for (const name of ['whole', 'selected', 'any'] as const) await cluster.create(aPod(name, name))
    const claim = await until('a NodeClaim is registered and waits for the driver', 60, async () => {
      const [made] = await nodeClaims()
      const waits = made?.status?.conditions?.some(
        (condition) =>
          condition.type === 'Initialized' &&
          'reason' in condition &&
          condition.reason === 'DRADriverPoolsNotPublished',
      )
      return waits && made
    })
    t.diagnostic(`the node waited for its driver after ${Math.round(time())} ms`)
    assert.equal(claim.metadata?.annotations?.['karpenter.sh/requested-dra-drivers'], driver)
    assert.equal(claim.metadata.labels?.['node.kubernetes.io/instance-type'], 'gpu')
    // The controller holds the simulated drivers, too: both start anew, and nothing is launched for it.
    await controller.end('SIGKILL')
    controller.start()
    await untilRunning('whole', 'selected', 'any')
    t.diagnostic(`all pods ran after ${Math.round(time())} ms`)
    await until('the NodeClaim is Initialized', 60, async () => {
      const [made] = await nodeClaims()
      return made?.status?.conditions?.some(({ type, status }) => type === 'Initialized' && status === 'True')
    })
    assert.equal(seen.size, 1, [...seen].join(', '))
    const [whole, selected, any] = [await given('whole'), await given('selected'), await given('any')]
    assert.deepEqual([selected?.request, selected?.device], ['gpu', 'gpu-3'])
    assert.equal(any?.request, 'gpu/old')
    assert.equal(new Set([whole?.device, selected?.device, any.device]).size, 3)
    await cluster.patch({
      apiVersion: kwok,
      kind: 'KWOKNodeClass',
      metadata: { name: 'devices', annotations: { [deviceDelay]: '3s' } },
    })
  })

  test('BUF-44 a pod with a claim that no type can meet gets no node, and hears why', async () => {
    await cluster.create(aPod('impossible', 'impossible'))
    const told = await until('the pod hears of it', 60, async () => {
      await nodeClaims()
      const events = (await cluster.list('v1', 'Event', 'default')) as readonly (TestObject & {
        readonly involvedObject?: { readonly name?: string }
        readonly reason?: string
        readonly message?: string
        readonly reportingComponent?: string
      })[]
      return events.find(
        ({ involvedObject, reason, reportingComponent }) =>
          involvedObject?.name === 'impossible' &&
          reason === 'FailedScheduling' &&
          reportingComponent !== 'default-scheduler',
      )
    })
    assert.match(told.message ?? '', /device/i)
    await cluster.delete('v1', 'Pod', 'impossible', 'default')
    assert.equal(seen.size, 1, [...seen].join(', '))
  })

  test('BUF-45 BUF-53 a free device is used first; what is missing gets one more node', async () => {
    await cluster.create(aPod('fourth', 'whole'))
    await untilRunning('fourth')
    assert.equal(seen.size, 1, [...seen].join(', '))
    await cluster.create(aPod('fifth', 'whole'))
    await cluster.create(aPod('sixth', 'selected'))
    await untilRunning('fifth', 'sixth')
    assert.equal(seen.size, 2, [...seen].join(', '))
    const results = await Promise.all(
      ['whole', 'selected', 'any', 'fourth', 'fifth', 'sixth'].map(async (name) => await given(name)),
    )
    const devices = results.map((result) => `${result?.pool} ${result?.device}`)
    assert.equal(new Set(devices).size, 6, devices.join(', '))
  })

  test('BUF-92 devices that pods leave are used again without a new node, and nodes without pods go', async () => {
    await cluster.delete('v1', 'Pod', 'selected', 'default')
    await until('its claim is gone', 30, async () => (await given('selected')) === undefined)
    await cluster.create(aPod('seventh', 'selected'))
    await untilRunning('seventh')
    assert.equal(seen.size, 2, [...seen].join(', '))
    for (const name of ['fifth', 'sixth', 'seventh', 'fourth', 'any'])
      await cluster.delete('v1', 'Pod', name, 'default')
    await until('one node is left', 120, async () => (await nodeClaims()).length === 1)
    assert.equal(seen.size, 2, [...seen].join(', '))
  })
})
