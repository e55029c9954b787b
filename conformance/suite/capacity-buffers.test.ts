/** CapacityBuffers on a real control plane: a burst, limits, and buffers that come and go (buffers-and-dra.md 2). */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, before, describe, test } from 'node:test'
import { SystemClock } from '@tenon/runtime'
import { aDeployment, Cluster, elapsed, sharedControlPlane, type TestObject, until } from './cluster.ts'
import { Controller, crdsYaml } from './tenon.ts'

const karpenter = 'karpenter.sh/v1'
const autoscaling = 'autoscaling.x-k8s.io/v1beta1'
const clock = new SystemClock()
const poolLabel = 'karpenter.sh/nodepool'

interface Condition {
  readonly type: string
  readonly status: string
  readonly reason: string
  readonly message: string
}

/** A pool of nodes with at most eight cores. */
function aPool(name: string, spec: object = {}): TestObject {
  return {
    apiVersion: karpenter,
    kind: 'NodePool',
    metadata: { name },
    spec: {
      disruption: { consolidationPolicy: 'WhenEmpty', consolidateAfter: '2s', budgets: [{ nodes: '100%' }] },
      template: {
        spec: {
          nodeClassRef: { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'buffers' },
          requirements: [
            { key: 'kubernetes.io/os', operator: 'In', values: ['linux'] },
            { key: 'karpenter.sh/capacity-type', operator: 'In', values: ['on-demand'] },
            { key: 'karpenter.kwok.sh/instance-size', operator: 'Lt', values: ['9'] },
          ],
        },
      },
      ...spec,
    },
  }
}

/** For pods of one core on nodes of a pool. */
function aTemplate(pool: string): TestObject & { readonly template: object } {
  const resources = { requests: { cpu: '1', memory: '512Mi' } }
  return {
    apiVersion: 'v1',
    kind: 'PodTemplate',
    metadata: { name: pool, namespace: 'default' },
    template: {
      metadata: { labels: { app: 'room' } },
      spec: {
        nodeSelector: { [poolLabel]: pool },
        containers: [{ name: 'main', image: 'registry.k8s.io/pause:3.10', resources }],
      },
    },
  }
}

function aBuffer(name: string, pool: string, replicas: number): TestObject {
  return {
    apiVersion: autoscaling,
    kind: 'CapacityBuffer',
    metadata: { name, namespace: 'default' },
    spec: { podTemplateRef: { name: pool }, replicas },
  }
}

describe('capacity buffers', () => {
  let controlPlane: Awaited<ReturnType<typeof sharedControlPlane>>
  let cluster: Cluster
  let controller: Controller
  let folder: string

  const kubectl = (args: readonly string[], input = ''): string =>
    execFileSync(
      join(controlPlane.binDir, 'kubectl'),
      ['--kubeconfig', controlPlane.kubeconfigPath, ...args],
      { input, stdio: ['pipe', 'pipe', 'inherit'], encoding: 'utf8' },
    )

  before(async () => {
    controlPlane = await sharedControlPlane()
    cluster = new Cluster(controlPlane.kubeconfigPath)
    folder = mkdtempSync(join(tmpdir(), 'tenon-buffers-'))
    const environment = { DISABLE_LEADER_ELECTION: 'true' }
    controller = new Controller(controlPlane.kubeconfigPath, join(folder, 'controller.log'), environment)
    kubectl(['apply', '--server-side', '--force-conflicts', '-f', '-'], crdsYaml())
    kubectl(['wait', '--for=condition=Established', '-f', '-', '--timeout=20s'], crdsYaml())
    const apiVersion = 'karpenter.kwok.sh/v1alpha1'
    await cluster.create({ apiVersion, kind: 'KWOKNodeClass', metadata: { name: 'buffers' }, spec: {} })
    for (const pool of ['burst', 'limited', 'brief']) await cluster.create(aTemplate(pool))
    await cluster.create(aPool('burst'))
    await cluster.create(aPool('limited', { limits: { cpu: '8' } }))
    await cluster.create(aPool('brief'))
    controller.start()
  })

  afterEach((context) => {
    if ('passed' in context && !context.passed)
      process.stderr.write(logOf().split('\n').slice(-40).join('\n'))
  })

  after(async () => {
    try {
      await cluster.delete('apps/v1', 'Deployment', 'burst', 'default')
      for (const name of ['burst', 'limited', 'late', 'brief'])
        await cluster.delete(autoscaling, 'CapacityBuffer', name, 'default')
      for (const name of ['burst', 'limited', 'brief']) {
        await cluster.delete('v1', 'PodTemplate', name, 'default')
        await cluster.delete(karpenter, 'NodePool', name)
      }
      await until('all nodes are gone', 180, async () => {
        controller.assertRunning()
        return (await cluster.list('v1', 'Node')).length === 0
      })
    } finally {
      await controller.end('SIGTERM')
      await cluster.delete('karpenter.kwok.sh/v1alpha1', 'KWOKNodeClass', 'buffers')
      rmSync(folder, { recursive: true, force: true })
      await controlPlane.stop()
    }
  })

  const logOf = (): string => readFileSync(join(folder, 'controller.log'), 'utf8')

  async function conditionOf(name: string, type = 'Provisioning'): Promise<Condition | undefined> {
    controller.assertRunning()
    const buffer = await cluster.get(autoscaling, 'CapacityBuffer', name, 'default')
    const conditions = (buffer?.status?.conditions ?? []) as readonly Condition[]
    return conditions.find((condition) => condition.type === type)
  }

  async function namesOf(pool: string): Promise<readonly string[]> {
    const nodes = await cluster.list('v1', 'Node', undefined, `${poolLabel}=${pool}`)
    return nodes.map(({ metadata }) => metadata?.name ?? '')
  }

  const untilReason = (name: string, reason: string) =>
    until(`CapacityBuffer ${name} says ${reason}`, 60, async () => {
      const condition = await conditionOf(name)
      return condition?.reason === reason && condition
    })

  test('ASK-15 BUF-22 BUF-23 BUF-24 a burst as large as the buffer binds within seconds without a new node; the room is refilled', async (t) => {
    await cluster.create(aBuffer('burst', 'burst', 12))
    await untilReason('burst', 'FitsExistingCapacity')
    await until('the nodes are Ready', 60, async () => {
      const nodes = await cluster.list('v1', 'Node', undefined, `${poolLabel}=burst`)
      return nodes.every((node) =>
        node.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True'),
      )
    })
    // What the nodes join with is taken off.
    await clock.sleep(2000)
    const present = await namesOf('burst')
    assert.ok(present.length > 0)

    const nodeSelector = { [poolLabel]: 'burst' }
    const time = elapsed()
    await cluster.create(
      aDeployment({ name: 'burst', replicas: 12, cpu: '1', memory: '512Mi', nodeSelector }),
    )
    const pods = await until('all pods of the burst are bound', 30, async () => {
      const found = await cluster.list('v1', 'Pod', 'default', 'app=burst')
      return found.length === 12 && found.every(({ spec }) => spec?.nodeName !== undefined) && found
    })
    const boundMs = time()
    t.diagnostic(`12 pods were bound after ${Math.round(boundMs)} ms`)
    assert.ok(boundMs < 5000, `bound after ${boundMs} ms`)
    assert.ok(pods.every(({ spec }) => present.includes(spec?.nodeName ?? '')))

    await until('there are more nodes', 30, async () => (await namesOf('burst')).length > present.length)
    await untilReason('burst', 'FitsExistingCapacity')
    t.diagnostic(`refilled after ${Math.round(time())} ms`)
  })

  test('kubectl lists buffers by their short name, and in category autoscaling', () => {
    for (const name of ['cb', 'capacitybuffers', 'autoscaling']) {
      const [head = '', row = ''] = kubectl(['get', name, '-n', 'default']).split('\n')
      assert.match(head, /^NAME +STRATEGY +PODTEMPLATE +REPLICAS /i)
      assert.match(row, /^(capacitybuffer\S*\/)?burst +buffer\.x-k8s\.io\/active-capacity +burst +12 /)
    }
  })

  test('BUF-25 under a limit of the NodePool, and at it, statuses say what is missing, and no node exceeds it', async () => {
    const cores = async () => {
      const claims = await cluster.list(karpenter, 'NodeClaim', undefined, `${poolLabel}=limited`)
      return claims.reduce((sum, { status }) => sum + Number(status?.capacity?.['cpu'] ?? 0), 0)
    }
    await cluster.create(aBuffer('limited', 'limited', 20))
    const short = await untilReason('limited', 'RequiresNewCapacity')
    assert.equal(short.status, 'False')
    const missing = await until('the message counts what cannot be placed for good', 60, async () => {
      const { message = '' } = (await conditionOf('limited')) ?? {}
      const number = /for 0 of 20 pods, and (\d+) cannot be placed/.exec(message)?.[1]
      return (await cores()) > 0 && number
    })
    assert.ok(Number(missing) >= 12, missing)
    await cluster.create(aBuffer('late', 'limited', 2))
    const late = await untilReason('late', 'RequiresNewCapacity')
    assert.match(late.message, /for 0 of 2 pods, and 2 cannot be placed/)
    assert.equal((await conditionOf('late', 'ReadyForProvisioning'))?.status, 'True')
    await clock.sleep(3000)
    const most = await cores()
    assert.ok(most > 0 && most <= 8, `${most} cores`)
    await cluster.patch({
      apiVersion: karpenter,
      kind: 'NodePool',
      metadata: { name: 'limited' },
      spec: { limits: { cpu: '40' } },
    })
    await untilReason('limited', 'FitsExistingCapacity')
    await untilReason('late', 'FitsExistingCapacity')
    assert.ok((await cores()) <= 40)
  })

  test('BUF-36 BUF-117 buffers that come and go quickly leave no node and no NodeClaim behind', async () => {
    for (let round = 0; round < 8; round++) {
      await cluster.create(aBuffer('brief', 'brief', 4 + round))
      await clock.sleep(250 * round)
      await cluster.delete(autoscaling, 'CapacityBuffer', 'brief', 'default')
      await clock.sleep(150 * (8 - round))
    }
    await until('nothing of them is left', 90, async () => {
      controller.assertRunning()
      const claims = await cluster.list(karpenter, 'NodeClaim', undefined, `${poolLabel}=brief`)
      return claims.length === 0 && (await namesOf('brief')).length === 0
    })
  })

  test('BUF-94 without the kind VerticalPodAutoscaler nothing fails', () => {
    assert.doesNotMatch(logOf(), /vpa\.prediction/)
  })
})
