import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, before, describe, test } from 'node:test'
import { aDeployment, Cluster, conditionOf, sharedControlPlane, type TestObject, until } from './cluster.ts'
import { Controller, crdsYaml } from './tenon.ts'

const karpenter = 'karpenter.sh/v1'
const kwok = 'karpenter.kwok.sh/v1alpha1'
const sizes = [
  { name: 'small', replicas: 20, cpu: '100m', memory: '128Mi' },
  { name: 'medium', replicas: 15, cpu: '500m', memory: '1Gi' },
  { name: 'large', replicas: 10, cpu: '1500m', memory: '2Gi' },
  { name: 'wide', replicas: 5, cpu: '3', memory: '10Gi' },
] as const
const podCount = sizes.reduce((sum, size) => sum + size.replicas, 0)

const nodeClass: TestObject = {
  apiVersion: kwok,
  kind: 'KWOKNodeClass',
  metadata: { name: 'default' },
  spec: {},
}
const nodePool: TestObject = {
  apiVersion: karpenter,
  kind: 'NodePool',
  metadata: { name: 'default' },
  spec: {
    disruption: { consolidationPolicy: 'WhenEmpty', consolidateAfter: '1s', budgets: [{ nodes: '100%' }] },
    template: {
      spec: {
        expireAfter: 'Never',
        nodeClassRef: { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'default' },
        requirements: [
          { key: 'kubernetes.io/os', operator: 'In', values: ['linux'] },
          { key: 'karpenter.sh/capacity-type', operator: 'In', values: ['on-demand'] },
        ],
      },
    },
  },
}

describe('tenon controller --provider kwok', () => {
  let controlPlane: Awaited<ReturnType<typeof sharedControlPlane>>
  let cluster: Cluster
  let controller: Controller
  let folder: string

  before(async () => {
    controlPlane = await sharedControlPlane()
    cluster = new Cluster(controlPlane.kubeconfigPath)
    folder = mkdtempSync(join(tmpdir(), 'tenon-scale-'))
    controller = new Controller(controlPlane.kubeconfigPath, join(folder, 'controller.log'))
    applyCrds()
    await cluster.create(nodeClass)
    await cluster.create(nodePool)
  })

  afterEach((context) => {
    if ('passed' in context && !context.passed) process.stderr.write(endOfLog())
  })

  after(async () => {
    await controller.end('SIGTERM')
    rmSync(folder, { recursive: true, force: true })
    await controlPlane.stop()
  })

  function applyCrds(): void {
    const kubectl = (args: string[], input?: string) =>
      execFileSync(
        join(controlPlane.binDir, 'kubectl'),
        ['--kubeconfig', controlPlane.kubeconfigPath, ...args],
        {
          input: input ?? '',
          stdio: ['pipe', 'ignore', 'inherit'],
        },
      )
    kubectl(['apply', '-f', '-'], crdsYaml())
    // Not all there are: those of other suites may be on their way out.
    kubectl(['wait', '--for=condition=Established', '-f', '-', '--timeout=20s'], crdsYaml())
  }

  function endOfLog(): string {
    return `${readFileSync(join(folder, 'controller.log'), 'utf8').split('\n').slice(-40).join('\n')}\n`
  }

  async function scale(replicas: (size: (typeof sizes)[number]) => number): Promise<void> {
    for (const size of sizes) {
      const metadata = { name: size.name, namespace: 'default' }
      const spec = { replicas: replicas(size) }
      await cluster.patch({ apiVersion: 'apps/v1', kind: 'Deployment', metadata, spec })
    }
  }

  function pods(): Promise<TestObject[]> {
    return cluster.list('v1', 'Pod', 'default', 'app')
  }

  async function allRunning(): Promise<TestObject[]> {
    return until('all pods run', 90, async () => {
      controller.assertRunning()
      const found = await pods()
      return found.length === podCount && found.every((pod) => conditionOf(pod, 'Ready') === 'True') && found
    })
  }

  /** Every node is the node of exactly one claim, and the other way round. */
  async function assertClaimsMatchNodes(): Promise<void> {
    const nodes = await cluster.list('v1', 'Node')
    const claims = await cluster.list(karpenter, 'NodeClaim')
    const ofClaims = claims.map((claim) => claim.status?.providerID ?? '').toSorted(byText)
    const ofNodes = nodes.map((node) => node.spec?.providerID ?? '').toSorted(byText)
    assert.deepEqual(ofClaims, ofNodes)
    assert.equal(new Set(ofNodes).size, ofNodes.length, 'no instance belongs to two claims')
  }

  async function assertNothingLeft(): Promise<void> {
    await until('all pods, NodeClaims and Nodes are gone', 90, async () => {
      controller.assertRunning()
      const lists = [pods(), cluster.list(karpenter, 'NodeClaim'), cluster.list('v1', 'Node')]
      return (await Promise.all(lists)).every((list) => list.length === 0)
    })
  }

  test('50 pods of mixed sizes run on nodes launched for NodeClaims; at zero all of it goes', async () => {
    controller.start()
    for (const size of sizes) await cluster.create(aDeployment(size))
    const running = await allRunning()

    const claims = await until('all claims are Ready', 30, async () => {
      const found = await cluster.list(karpenter, 'NodeClaim')
      return found.every((claim) => conditionOf(claim, 'Ready') === 'True') && found
    })
    await assertClaimsMatchNodes()
    const owned = new Set(claims.map((claim) => claim.status?.nodeName))
    assert.ok(
      running.every((pod) => owned.has(pod.spec?.nodeName)),
      'every pod is on the node of a claim',
    )
    const nodes = await cluster.list('v1', 'Node')
    for (const node of nodes) {
      assert.equal(node.metadata?.labels?.['karpenter.sh/capacity-type'], 'on-demand')
      assert.equal(node.metadata?.labels?.['kubernetes.io/os'], 'linux')
    }

    await scale(() => 0)
    await assertNothingLeft()
  })

  test('killed in the middle of a scale-up and started again, it loses and doubles nothing', async () => {
    await scale((size) => size.replicas)
    await until('the scale-up is under way', 30, async () => {
      return (await cluster.list(karpenter, 'NodeClaim')).length > 0
    })
    await controller.end('SIGKILL')
    controller.start()

    await allRunning()
    await until('all claims are Ready', 60, async () => {
      const found = await cluster.list(karpenter, 'NodeClaim')
      return found.every((claim) => conditionOf(claim, 'Ready') === 'True')
    })
    await assertClaimsMatchNodes()
  })

  test('killed in the middle of a scale-down it finishes after its restart', async () => {
    await allRunning()
    await scale(() => 0)
    await until('the scale-down is under way', 60, async () => {
      return (await cluster.list('v1', 'Node')).some((node) => node.metadata?.deletionTimestamp !== undefined)
    }).catch(() => {
      // Nodes may all go between two looks; then there is nothing left to interrupt.
    })
    await controller.end('SIGKILL')
    controller.start()
    await assertNothingLeft()
  })

  test('the NodePool and its class can be deleted: no finalizer is stuck', async () => {
    await cluster.delete(karpenter, 'NodePool', 'default')
    await cluster.delete(kwok, 'KWOKNodeClass', 'default')
    await until('both are gone', 30, async () => {
      const pool = await cluster.get(karpenter, 'NodePool', 'default')
      return pool === undefined && (await cluster.get(kwok, 'KWOKNodeClass', 'default')) === undefined
    })
    for (const size of sizes) await cluster.delete('apps/v1', 'Deployment', size.name, 'default')
  })
})

function byText(one: string, other: string): number {
  return one < other ? -1 : Number(one > other)
}
