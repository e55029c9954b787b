/** The provider for Clever Cloud on a real API server; the platform behind the NodeGroups is played by the test. */
import assert from 'node:assert/strict'
import { after, afterEach, before, beforeEach, describe, test } from 'node:test'
import {
  conditionOf,
  isConditionTrue,
  karpenterKinds,
  type KubeObject,
  kinds,
  type NodeClaim,
} from '@tenon/api'
import { isKubeError } from '@tenon/kube'
import {
  cleverNodeClassCrd,
  cleverNodeClassKind,
  type NodeGroup,
  nodeGroupKind,
  openCleverCloud,
  ownNames,
  platformLabels,
} from '@tenon/provider-clever-cloud'
import { nodeGroupCrd } from '@tenon/simulator-clever-cloud'
import {
  hashOf,
  instances,
  recordedClaim,
  recordedGroup,
  recordedNodeClass,
  recordedPool,
  registration,
} from '../../test/world/src/clever-cloud/recorded-fleet.test-support.ts'
import { deployment } from '../src/scheduling-proof/objects.ts'
import { Stand, unchanging } from '../src/takeover/stand.ts'
import { sharedControlPlane } from './cluster.ts'

const cloud = {
  crds: [cleverNodeClassCrd, nodeGroupCrd()],
  kinds: [cleverNodeClassKind, nodeGroupKind],
  open: (parts: Omit<Parameters<typeof openCleverCloud>[0], 'env'>) => openCleverCloud({ ...parts, env: {} }),
}

describe('Clever Cloud on a real control plane', () => {
  let controlPlane: Awaited<ReturnType<typeof sharedControlPlane>>
  let stand: Stand

  before(async () => {
    controlPlane = await sharedControlPlane()
  })

  beforeEach(async () => {
    stand = await Stand.open(controlPlane.kubeconfigPath, cloud)
    await stand.clear()
  })

  afterEach(async () => {
    await stand.stopOperator()
    await stand.clear()
    await stand.close()
  })

  after(async () => {
    await controlPlane.stop()
  })

  const aClass = (labels: Readonly<Record<string, string>>) => ({
    apiVersion: 'karpenter.clever-cloud.com/v1alpha1',
    kind: 'CleverNodeClass',
    metadata: { name: 'default' },
    spec: { labels },
  })

  const isReadyClass = async (): Promise<boolean> => {
    const nodeClass = await stand.admin.get(cleverNodeClassKind, { name: 'default' })
    return nodeClass !== undefined && isConditionTrue(nodeClass, 'Ready')
  }

  async function createNode(name: string, labels: Readonly<Record<string, string>>): Promise<void> {
    await stand.admin.create(kinds.node, {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name, labels, annotations: { 'kwok.x-k8s.io/node': 'fake' } },
    })
  }

  /** The fleet of recorded instances, with their nodes and two Deployments that fill them. */
  async function record(): Promise<void> {
    const { admin, clock } = stand
    const nodeClass = recordedNodeClass(clock.now())
    await admin.create(cleverNodeClassKind, nodeClass.object)
    const toStatus = { subresource: 'status' } as const
    await admin.patch(cleverNodeClassKind, { name: 'default' }, { status: nodeClass.status }, toStatus)
    const pool = await admin.create(karpenterKinds.nodePool, recordedPool())
    await admin.patch(
      karpenterKinds.nodePool,
      { name: 'default' },
      { metadata: { annotations: hashOf(pool) } },
    )
    for (const instance of instances) {
      const { name, flavor } = instance
      const { object, status } = recordedClaim(instance, pool, clock.now())
      const claim = await admin.create(karpenterKinds.nodeClaim, object)
      await admin.patch(karpenterKinds.nodeClaim, { name }, { status }, toStatus)
      await admin.create(nodeGroupKind, recordedGroup(instance, claim))
      const ready = { type: 'Ready', status: 'True', reason: 'Synced', message: '' }
      const conditions = [{ ...ready, lastTransitionTime: new Date(clock.now()).toISOString() }]
      await admin.patch(nodeGroupKind, { name }, { status: { phase: 'Synced', conditions } }, toStatus)
      const { capacity, allocatable } = status
      await createNode(`${name}-node0`, {
        [platformLabels.nodeGroup]: name,
        [platformLabels.flavor]: flavor,
        [platformLabels.role]: 'worker',
      })
      const node = { name: `${name}-node0` }
      await admin.patch(kinds.node, node, { status: { capacity, allocatable } }, toStatus)
      await admin.patch(kinds.node, node, registration(instance, claim))
    }
    await stand.until('the nodes are ready', 60, async () =>
      (await admin.list(kinds.node)).every((node) => isReportedReady(node)),
    )
    for (const [name, replicas, cpu] of [
      ['large', 1, '5500m'],
      ['web', 2, '3500m'],
    ] as const) {
      const { type, object } = deployment(replicas, {
        namespace: 'default',
        name,
        requests: { cpu, memory: '2Gi' },
      })
      await admin.create(type, object)
      await stand.until(`the pods of ${name} run`, 60, async () => {
        const pods = await admin.list(kinds.pod)
        return (
          pods.filter((pod) => pod.metadata.labels?.['app'] === name && isReportedReady(pod)).length ===
          replicas
        )
      })
    }
  }

  async function fleet(): Promise<object> {
    const { admin } = stand
    const [pools, classes, claims, groups, nodes, pods] = await Promise.all([
      admin.list(karpenterKinds.nodePool),
      admin.list(cleverNodeClassKind),
      admin.list(karpenterKinds.nodeClaim),
      admin.list(nodeGroupKind),
      admin.list(kinds.node),
      admin.list(kinds.pod),
    ])
    const kept = (objects: readonly KubeObject[]) => objects.map(unchanging)
    return {
      pools: kept(pools),
      classes: kept(classes),
      claims: kept(claims),
      groups: kept(groups),
      nodes: kept(nodes),
      pods: kept(pods),
    }
  }

  test('a fleet of the Go provider, of both generations, is adopted untouched', async (t) => {
    await record()
    const recorded = await fleet()
    await stand.startOperator()
    // Longer than consolidateAfter and the first passes of every loop.
    await stand.clock.sleep(60_000)
    assert.deepEqual(await fleet(), recorded)
    for (const claim of await stand.admin.list(karpenterKinds.nodeClaim))
      assert.notEqual(conditionOf(claim, 'Drifted')?.status, 'True', claim.metadata.name)
    const lines = stand.log.lines((target) => !/ events/.test(target))
    t.diagnostic(`writes: ${lines.join('; ')}`)
    assert.deepEqual(
      lines.filter((line) => !/^PATCH [a-z]+\/[a-z0-9-]+\/status /.test(line)),
      [],
    )
  })

  test('CLV-66 CLV-69 a class gets its finalizer and conditions, and goes after the claims that use it', async () => {
    const { admin } = stand
    await stand.startOperator()
    await admin.create(cleverNodeClassKind, aClass({ team: 'data' }))
    await stand.until('the class is ready', 10, isReadyClass)
    const nodeClass = await admin.get(cleverNodeClassKind, { name: 'default' })
    assert.deepEqual(nodeClass?.metadata.finalizers, [ownNames.termination])
    const using: NodeClaim = {
      apiVersion: 'karpenter.sh/v1',
      kind: 'NodeClaim',
      metadata: { name: 'using', finalizers: ['example.com/held'] },
      spec: {
        nodeClassRef: { group: cleverNodeClassKind.group, kind: cleverNodeClassKind.kind, name: 'default' },
        requirements: [{ key: 'node.kubernetes.io/instance-type', operator: 'In', values: ['none'] }],
      },
    }
    await admin.create(karpenterKinds.nodeClaim, using)
    await stand.delete(cleverNodeClassKind, 'default')
    await stand.clock.sleep(2000)
    assert.notEqual(await admin.get(cleverNodeClassKind, { name: 'default' }), undefined)
    await stand.delete(karpenterKinds.nodeClaim, 'using')
    await admin
      .patch(karpenterKinds.nodeClaim, { name: 'using' }, { metadata: { finalizers: null } })
      .catch((error: unknown) => {
        if (!isKubeError(error, 'notFound')) throw error
      })
    await stand.until(
      'the class is gone',
      45,
      async () => (await admin.get(cleverNodeClassKind, { name: 'default' })) === undefined,
    )
  })

  test('CLV-67 a reserved key is refused at admission, a value of 64 characters by the controller', async () => {
    const { admin } = stand
    await stand.startOperator()
    await assert.rejects(admin.create(cleverNodeClassKind, aClass({ 'clever-cloud.com/x': 'y' })), (error) =>
      isKubeError(error, 'invalid'),
    )
    await admin.create(cleverNodeClassKind, aClass({ team: 'x'.repeat(64) }))
    await stand.until('the class is found wrong', 10, async () => {
      const nodeClass = await admin.get(cleverNodeClassKind, { name: 'default' })
      return nodeClass !== undefined && conditionOf(nodeClass, 'ValidationSucceeded')?.status === 'False'
    })
    assert.equal(await isReadyClass(), false)
  })

  test('CLV-63 CLV-64 the node of a managed group gets its provider ID, that of another none', async () => {
    const { admin } = stand
    await stand.startOperator()
    const aGroup = (name: string, labels: Readonly<Record<string, string>>): NodeGroup => ({
      apiVersion: 'api.clever-cloud.com/v1',
      kind: 'NodeGroup',
      metadata: { name, labels },
      spec: { flavor: 'S', nodeCount: 1 },
    })
    await admin.create(nodeGroupKind, aGroup('ours', { [ownNames.managed]: 'true' }))
    await admin.create(nodeGroupKind, aGroup('theirs', {}))
    for (const group of ['ours', 'theirs'])
      await createNode(`${group}-node0`, { [platformLabels.nodeGroup]: group, [platformLabels.flavor]: 'S' })
    const idOf = async (name: string) => (await admin.get(kinds.node, { name }))?.spec?.providerID
    await stand.until(
      'the node has its provider ID',
      10,
      async () => (await idOf('ours-node0')) === 'clevercloud://ours',
    )
    await stand.clock.sleep(1000)
    assert.equal(await idOf('theirs-node0'), undefined)
  })
})

function isReportedReady(object: KubeObject): boolean {
  const { status } = object as KubeObject & {
    readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] }
  }
  return status?.conditions?.some((each) => each.type === 'Ready' && each.status === 'True') === true
}
