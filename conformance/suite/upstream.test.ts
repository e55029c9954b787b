/** What upstream-style suites assert of a controller on a real cluster (operations.md 13.2). */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, before, describe, test } from 'node:test'
import {
  aDeployment,
  Cluster,
  conditionOf,
  sharedControlPlane,
  type TestObject,
  until,
  untilInitialized,
} from './cluster.ts'
import { Controller, crdsYaml } from './tenon.ts'

const karpenter = 'karpenter.sh/v1'
const kwok = 'karpenter.kwok.sh/v1alpha1'
const admission = 'admissionregistration.k8s.io/v1'
const discovery = { 'testing/cluster': 'unspecified' }
/** Of a template with the discovery label, the node class below and the default expiry (api.md 9.5). */
const hashOfPool = '1699557759471965344'
const hashKeys = ['karpenter.sh/nodepool-hash', 'karpenter.sh/nodepool-hash-version'] as const
const podCount = 100
const refusal = 'refuse-registration'

function aPool(name: string, labels: Readonly<Record<string, string>> = {}): TestObject {
  return {
    apiVersion: karpenter,
    kind: 'NodePool',
    metadata: { name, labels: discovery },
    spec: {
      disruption: { consolidationPolicy: 'WhenEmpty', consolidateAfter: '1s', budgets: [{ nodes: '100%' }] },
      template: {
        metadata: { labels: { ...discovery, ...labels } },
        spec: {
          nodeClassRef: { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'default' },
          requirements: [
            { key: 'kubernetes.io/os', operator: 'In', values: ['linux'] },
            { key: 'karpenter.sh/capacity-type', operator: 'In', values: ['on-demand'] },
            { key: 'karpenter.kwok.sh/instance-size', operator: 'Lt', values: ['32'] },
          ],
        },
      },
    },
  }
}

/** Pods of which no two share a node. */
function oneEach(name: string, replicas: number): TestObject {
  const object = aDeployment({ name, replicas, cpu: '100m', memory: '64Mi' })
  const term = { labelSelector: { matchLabels: { app: name } }, topologyKey: 'kubernetes.io/hostname' }
  const affinity = { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] } }
  return withPodSpec(object, { affinity })
}

function withPodSpec(deployment: TestObject, more: object, annotations: object = {}): TestObject {
  const { template, ...spec } = deployment.spec as {
    readonly template: { readonly metadata: object; readonly spec: object }
  }
  const metadata = { ...template.metadata, annotations }
  return {
    ...deployment,
    spec: { ...spec, template: { metadata, spec: { ...template.spec, ...more } } },
  }
}

describe('an upstream-style suite', () => {
  let controlPlane: Awaited<ReturnType<typeof sharedControlPlane>>
  let cluster: Cluster
  let controller: Controller
  let folder: string

  before(async () => {
    controlPlane = await sharedControlPlane()
    cluster = new Cluster(controlPlane.kubeconfigPath)
    folder = mkdtempSync(join(tmpdir(), 'tenon-upstream-'))
    // On a host so busy that a lease runs out, ending would be right, and is not what is asked here.
    const environment = { DISABLE_LEADER_ELECTION: 'true' }
    controller = new Controller(controlPlane.kubeconfigPath, join(folder, 'controller.log'), environment)
    const kubectl = (...args: readonly string[]) =>
      execFileSync(
        join(controlPlane.binDir, 'kubectl'),
        ['--kubeconfig', controlPlane.kubeconfigPath, ...args],
        { input: crdsYaml(), stdio: ['pipe', 'ignore', 'inherit'] },
      )
    kubectl('apply', '--server-side', '--force-conflicts', '-f', '-')
    // Not all there are: those of other suites may be on their way out.
    kubectl('wait', '--for=condition=Established', '-f', '-', '--timeout=20s')
    await cluster.create({
      apiVersion: kwok,
      kind: 'KWOKNodeClass',
      metadata: { name: 'default', labels: discovery },
      spec: {},
    })
    await cluster.create(aPool('default'))
    controller.start()
  })

  afterEach((context) => {
    if ('passed' in context && !context.passed) process.stderr.write(endOfLog())
  })

  function endOfLog(): string {
    return `${readFileSync(join(folder, 'controller.log'), 'utf8').split('\n').slice(-40).join('\n')}\n`
  }

  after(async () => {
    try {
      await clear()
    } catch (error) {
      process.stderr.write(endOfLog())
      throw error
    } finally {
      await controller.end('SIGTERM')
      rmSync(folder, { recursive: true, force: true })
      await controlPlane.stop()
    }
  })

  /** Other suites on the same control plane find nothing of this one. */
  async function clear(): Promise<void> {
    for (const name of ['each', 'guarded', 'refused'])
      await cluster.delete('apps/v1', 'Deployment', name, 'default')
    for (const name of ['default', 'refused']) await cluster.delete(karpenter, 'NodePool', name)
    await until('all claims and nodes are gone', 180, async () => {
      controller.assertRunning()
      const lists = await Promise.all([cluster.list(karpenter, 'NodeClaim'), cluster.list('v1', 'Node')])
      return lists.every((list) => list.length === 0)
    })
    await cluster.delete(kwok, 'KWOKNodeClass', 'default')
    for (const kind of ['ValidatingAdmissionPolicyBinding', 'ValidatingAdmissionPolicy'])
      await cluster.delete(admission, kind, refusal)
  }

  async function running(app: string, count: number, seconds: number): Promise<TestObject[]> {
    return until(`${count} pods of ${app} run`, seconds, async () => {
      controller.assertRunning()
      const found = await cluster.list('v1', 'Pod', 'default', `app=${app}`)
      return found.filter((pod) => conditionOf(pod, 'Ready') === 'True').length === count && found
    })
  }

  test('OPS-84 OPS-87 a hundred pods of which no two share a node get a hundred nodes with the discovery label', async () => {
    await cluster.create(oneEach('each', podCount))
    const pods = await running('each', podCount, 180)
    const nodes = await cluster.list('v1', 'Node')
    const claims = await cluster.list(karpenter, 'NodeClaim')
    assert.equal(nodes.length, podCount)
    assert.equal(claims.length, podCount)
    assert.equal(new Set(pods.map(({ spec }) => spec?.nodeName)).size, podCount)
    for (const { metadata } of [...nodes, ...claims])
      assert.equal(metadata?.labels?.['testing/cluster'], 'unspecified', metadata?.name)
  })

  test('OPS-81 NodePool and NodeClaims carry the v3 hash of the template', async () => {
    const pool = await cluster.get(karpenter, 'NodePool', 'default')
    const claims = await cluster.list(karpenter, 'NodeClaim')
    assert.ok(claims.length > 0)
    for (const object of [pool, ...claims])
      assert.deepEqual(
        hashKeys.map((key) => object?.metadata?.annotations?.[key]),
        [hashOfPool, 'v3'],
        object?.metadata?.name,
      )
  })

  test('OPS-82 the node of a deleted NodeClaim is tainted within 3 s while its pods are still there', async () => {
    const guarded = withPodSpec(
      aDeployment({ name: 'guarded', replicas: 1, cpu: '10', memory: '1Gi' }),
      {},
      { 'karpenter.sh/do-not-disrupt': 'true' },
    )
    await cluster.create(guarded)
    const [pod] = await running('guarded', 1, 60)
    const nodeName = pod?.spec?.nodeName ?? ''
    const claims = await untilInitialized(cluster, 30)
    const claim = claims.find(({ status }) => status?.nodeName === nodeName)
    assert.ok(claim?.metadata?.name, `no NodeClaim has node ${nodeName}`)
    await cluster.delete(karpenter, 'NodeClaim', claim.metadata.name)
    await until('the node is tainted', 3, async () => {
      const node = await cluster.get('v1', 'Node', nodeName)
      const taints = (node?.spec?.['taints'] ?? []) as readonly {
        readonly key: string
        readonly effect: string
      }[]
      return taints.some(({ key, effect }) => key === 'karpenter.sh/disrupted' && effect === 'NoSchedule')
    })
    const still = await cluster.get('v1', 'Pod', pod?.metadata?.name ?? '', 'default')
    assert.equal(still?.metadata?.deletionTimestamp, undefined)
    await cluster.delete('apps/v1', 'Deployment', 'guarded', 'default')
    await until('the node is gone', 60, async () => (await cluster.get('v1', 'Node', nodeName)) === undefined)
  })

  test('a node that an admission policy refuses leaves its claim launched and not registered', async () => {
    await cluster.create(refusingPolicy)
    await cluster.create(refusingBinding)
    await until('the policy is in force', 20, async () => {
      const probe = {
        apiVersion: 'v1',
        kind: 'Node',
        metadata: { name: 'probe', labels: { registration: 'fail' } },
      }
      const isRefused = await cluster.create(probe).then(
        () => false,
        () => true,
      )
      if (!isRefused) await cluster.delete('v1', 'Node', 'probe')
      return isRefused
    })
    await cluster.create(aPool('refused', { registration: 'fail' }))
    const nodeSelector = { registration: 'fail' }
    await cluster.create(
      aDeployment({ name: 'refused', replicas: 1, cpu: '100m', memory: '64Mi', nodeSelector }),
    )
    const claim = await until('the claim is launched', 60, async () => {
      const found = await cluster.list(karpenter, 'NodeClaim')
      return found.find(
        (each) =>
          each.metadata?.labels?.['karpenter.sh/nodepool'] === 'refused' &&
          conditionOf(each, 'Launched') === 'True',
      )
    })
    await until('the controller has given up', 30, async () => {
      controller.assertRunning()
      return /creating the simulated node failed.*"attempt":4/.test(
        readFileSync(join(folder, 'controller.log'), 'utf8'),
      )
    })
    const now = await cluster.get(karpenter, 'NodeClaim', claim.metadata?.name ?? '')
    assert.ok(now)
    assert.equal(conditionOf(now, 'Registered'), 'Unknown')
    assert.deepEqual(await cluster.list('v1', 'Node', undefined, 'registration=fail'), [])
  })

  test('OPS-86 through all of it the controller has not been restarted', () => {
    controller.assertRunning()
    const log = readFileSync(join(folder, 'controller.log'), 'utf8')
    assert.equal(log.split('\n').filter((line) => line.includes('"message":"starting"')).length, 1)
  })
})

const refusingPolicy: TestObject = {
  apiVersion: admission,
  kind: 'ValidatingAdmissionPolicy',
  metadata: { name: refusal },
  spec: {
    failurePolicy: 'Fail',
    matchConstraints: {
      resourceRules: [
        { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE', 'UPDATE'], resources: ['nodes'] },
      ],
    },
    validations: [
      {
        expression:
          "!has(object.metadata.labels) || !('registration' in object.metadata.labels) || object.metadata.labels['registration'] != 'fail'",
      },
    ],
  },
}
const refusingBinding: TestObject = {
  apiVersion: admission,
  kind: 'ValidatingAdmissionPolicyBinding',
  metadata: { name: refusal },
  spec: { policyName: refusal, validationActions: ['Deny'] },
}
