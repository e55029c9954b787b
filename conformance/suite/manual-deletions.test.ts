/** What users delete by hand ends with nothing left (lifecycle.md 15). */
import assert from 'node:assert/strict'
import { after, afterEach, before, beforeEach, describe, test } from 'node:test'
import {
  annotations,
  conditionOf,
  karpenterKinds,
  kinds,
  type PodDisruptionBudget,
  type Node,
  type NodeClaim,
  type NodePool,
  type Pod,
  type ResourceType,
} from '@tenon/api'
import { type KwokNodeClass, kwokNodeClassKind } from '@tenon/provider-kwok'
import { budgetKind } from '../../test/world/src/takeover/recorded-cluster.test-support.ts'
import { deployment } from '../src/scheduling-proof/objects.ts'
import { Stand } from '../src/takeover/stand.ts'
import { sharedControlPlane } from './cluster.ts'

const policies = ['Background', 'Foreground', 'Orphan'] as const
const nodeClassRef = { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'default' }
const requirements = [
  { key: 'kubernetes.io/os', operator: 'In', values: ['linux'] },
  { key: 'karpenter.sh/capacity-type', operator: 'In', values: ['on-demand'] },
] as const

function aNodeClass(spec: KwokNodeClass['spec']): KwokNodeClass {
  return {
    apiVersion: 'karpenter.kwok.sh/v1alpha1',
    kind: 'KWOKNodeClass',
    metadata: { name: 'default' },
    ...(spec && { spec }),
  }
}

function aPool(name: string): NodePool {
  return {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodePool',
    metadata: { name },
    spec: {
      template: { spec: { nodeClassRef, requirements, expireAfter: 'Never' } },
      disruption: { consolidationPolicy: 'WhenEmpty', consolidateAfter: 'Never' },
    },
  }
}

/** Of no NodePool, so that nothing launches another one. */
function aClaim(name: string): NodeClaim {
  const instanceType = { key: 'node.kubernetes.io/instance-type', operator: 'In' as const }
  return {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodeClaim',
    metadata: { name },
    spec: {
      nodeClassRef,
      requirements: [...requirements, { ...instanceType, values: ['c-4x-amd64-linux'] }],
      resources: { requests: { cpu: '1', memory: '1Gi', pods: '4' } },
      expireAfter: 'Never',
      terminationGracePeriod: '5m',
    },
  }
}

function aPod(name: string, nodeName: string): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default', labels: { app: 'guarded' } },
    spec: {
      nodeName,
      terminationGracePeriodSeconds: 1,
      containers: [{ name: 'app', image: 'registry.k8s.io/pause' }],
    },
  }
}

const guard = {
  apiVersion: 'policy/v1',
  kind: 'PodDisruptionBudget',
  metadata: { name: 'guarded', namespace: 'default' },
  spec: { maxUnavailable: 0, selector: { matchLabels: { app: 'guarded' } } },
}

describe('deletions by hand', () => {
  let controlPlane: Awaited<ReturnType<typeof sharedControlPlane>>
  let stand: Stand

  before(async () => {
    controlPlane = await sharedControlPlane()
  })

  beforeEach(async () => {
    stand = await Stand.open(controlPlane.kubeconfigPath)
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

  async function begin(nodeClass: KwokNodeClass['spec'] = {}): Promise<void> {
    await stand.admin.create(kwokNodeClassKind, aNodeClass(nodeClass))
    await stand.startOperator()
  }

  const claimOf = (name: string): Promise<NodeClaim | undefined> =>
    stand.admin.get(karpenterKinds.nodeClaim, { name })
  const nodeNameOf = async (claim: string): Promise<string> => (await claimOf(claim))?.status?.nodeName ?? ''

  async function launch(...names: readonly string[]): Promise<void> {
    for (const name of names) await stand.admin.create(karpenterKinds.nodeClaim, aClaim(name))
    for (const name of names) await isReady(name)
  }

  const isReady = (name: string): Promise<void> =>
    stand.until(`NodeClaim ${name} is Ready`, 30, async () => {
      const claim = await claimOf(name)
      return claim !== undefined && conditionOf(claim, 'Ready')?.status === 'True'
    })

  /** A running pod on the node of each claim, which a budget keeps there. */
  async function occupy(...claims: readonly string[]): Promise<void> {
    for (const claim of claims)
      await stand.admin.create(kinds.pod, aPod(`on-${claim}`, await nodeNameOf(claim)))
    await stand.admin.create(budgetKind, guard)
    await stand.until('the pods run and the budget counts them', 30, async () => {
      const budget = await stand.admin.get(budgetKind, { namespace: 'default', name: 'guarded' })
      return (budget as PodDisruptionBudget | undefined)?.status?.currentHealthy === claims.length
    })
  }

  const dropBudget = (): Promise<void> =>
    stand.admin.delete(budgetKind, { namespace: 'default', name: 'guarded' })

  async function left(): Promise<readonly string[]> {
    const names = async (type: ResourceType) =>
      (await stand.admin.list(type)).map(({ metadata }) => `${type.kind} ${metadata.name}`)
    return [...(await names(karpenterKinds.nodeClaim)), ...(await names(kinds.node))]
  }

  const nothingIsLeft = (): Promise<void> =>
    stand.until('no NodeClaim and no Node is left', 60, async () => (await left()).length === 0)

  const launches = (): number => stand.log.writes.filter(({ target }) => target === 'POST nodes').length

  test('Nodes and NodeClaims deleted with any policy are drained within their budgets, then go', async () => {
    await begin()
    const plan = policies.flatMap((policy) =>
      (['node', 'claim'] as const).map((kind) => ({ name: `${kind}-${policy.toLowerCase()}`, kind, policy })),
    )
    const names = [...plan.map(({ name }) => name), 'both']
    await launch(...names)
    await occupy(...names)
    for (const { name, kind, policy: propagationPolicy } of plan) {
      if (kind === 'node') await stand.delete(kinds.node, await nodeNameOf(name), { propagationPolicy })
      else await stand.delete(karpenterKinds.nodeClaim, name, { propagationPolicy })
    }
    const nodeOfBoth = await nodeNameOf('both')
    await Promise.all([stand.delete(kinds.node, nodeOfBoth), stand.delete(karpenterKinds.nodeClaim, 'both')])

    await stand.until('all of them drain', 30, async () => {
      const claims = await stand.admin.list(karpenterKinds.nodeClaim)
      const nodes = await stand.admin.list(kinds.node)
      return (
        claims.every((claim) => conditionOf(claim, 'Drained')?.reason === 'Draining') &&
        // A Node that is deleted drains before its claim has the deadline.
        claims.every(
          ({ metadata }) => metadata.annotations?.[annotations.terminationTimestamp] !== undefined,
        ) &&
        [...claims, ...nodes].every(({ metadata }) => metadata.deletionTimestamp !== undefined)
      )
    })
    for (const { metadata } of await stand.admin.list(karpenterKinds.nodeClaim)) {
      const deadline = Date.parse(metadata.annotations?.[annotations.terminationTimestamp] ?? '')
      assert.equal(deadline - Date.parse(metadata.deletionTimestamp ?? ''), 300_000, metadata.name)
    }
    const pods = await stand.admin.list(kinds.pod)
    assert.equal(pods.length, names.length, 'the budget holds')
    assert.ok(pods.every(({ metadata }) => metadata.deletionTimestamp === undefined))
    await dropBudget()
    await nothingIsLeft()
    assert.equal(launches(), names.length)
    assert.deepEqual(stand.complaints, [])
  })

  for (const policy of policies) {
    test(`a NodePool deleted with policy ${policy} ${policy === 'Orphan' ? 'leaves its nodes alone' : 'takes its nodes along'}`, async () => {
      await begin()
      await stand.admin.create(karpenterKinds.nodePool, aPool('doomed'))
      const pods = deployment(3, { namespace: 'default', name: 'web', requests: { cpu: '500m' } })
      await stand.admin.create(pods.type, pods.object)
      await stand.until('the pods run', 60, async () => {
        const found: readonly Pod[] = await stand.admin.list(kinds.pod)
        return found.length === 3 && found.every(({ status }) => status?.phase === 'Running')
      })
      for (const { metadata } of await stand.admin.list(karpenterKinds.nodeClaim))
        await isReady(metadata.name)
      const launched = launches()
      const standing = await left()

      await stand.delete(karpenterKinds.nodePool, 'doomed', { propagationPolicy: policy })
      const isPoolGone = async () =>
        (await stand.admin.get(karpenterKinds.nodePool, { name: 'doomed' })) === undefined
      if (policy === 'Orphan') {
        await stand.until('the NodePool is gone', 30, isPoolGone)
        await stand.clock.sleep(5000)
        assert.deepEqual(await left(), standing)
        const claims = await stand.admin.list(karpenterKinds.nodeClaim)
        for (const { metadata } of claims) {
          assert.equal(metadata.deletionTimestamp, undefined)
          assert.deepEqual(metadata.ownerReferences ?? [], [])
          await stand.delete(karpenterKinds.nodeClaim, metadata.name)
        }
      }
      await nothingIsLeft()
      await stand.until('the NodePool is gone', 30, isPoolGone)
      await stand.until('the pods wait again', 30, async () => {
        const found: readonly Pod[] = await stand.admin.list(kinds.pod)
        return found.length === 3 && found.every(({ status }) => status?.phase === 'Pending')
      })
      await stand.clock.sleep(3000)
      assert.equal(launches(), launched, 'a pool that is going gets no instance')
      assert.deepEqual(await left(), [])
    })
  }

  test('a NodeClaim deleted before its Node came takes the launch back', async () => {
    await begin({ nodeRegistrationDelay: '4s' })
    await stand.admin.create(karpenterKinds.nodeClaim, aClaim('early'))
    await stand.until('it is launched', 20, async () => {
      const claim = await claimOf('early')
      return claim !== undefined && conditionOf(claim, 'Launched')?.status === 'True'
    })
    assert.deepEqual(await stand.admin.list(kinds.node), [])
    await stand.delete(karpenterKinds.nodeClaim, 'early')
    await nothingIsLeft()
    await stand.clock.sleep(6000)
    assert.deepEqual(await left(), [])
  })

  test('a NodeClaim that could not be launched goes without an instance', async () => {
    await begin()
    const { spec, ...rest } = aClaim('impossible')
    await stand.admin.create(karpenterKinds.nodeClaim, { ...rest, spec: { ...spec, requirements } })
    await stand.until('the launch has failed', 20, async () => {
      const claim = await claimOf('impossible')
      return claim !== undefined && conditionOf(claim, 'Launched')?.reason === 'LaunchFailed'
    })
    assert.equal((await claimOf('impossible'))?.status?.providerID, undefined)
    await stand.delete(karpenterKinds.nodeClaim, 'impossible')
    await nothingIsLeft()
    assert.equal(launches(), 0)
  })

  test('a NodeClaim torn out has its Node drained and removed by its owner reference', async () => {
    await begin()
    await launch('torn')
    await occupy('torn')
    // Deleted first: while it is not, the operator would put the finalizer back.
    await stand.delete(karpenterKinds.nodeClaim, 'torn')
    await stand.admin.patch(karpenterKinds.nodeClaim, { name: 'torn' }, { metadata: { finalizers: null } })
    await stand.until('its Node is being deleted', 30, async () => {
      const nodes: readonly Node[] = await stand.admin.list(kinds.node)
      return nodes.every(({ metadata }) => metadata.deletionTimestamp !== undefined)
    })
    assert.equal(await claimOf('torn'), undefined)
    await stand.clock.sleep(2000)
    assert.equal((await stand.admin.list(kinds.node)).length, 1, 'the budget holds')
    await dropBudget()
    await nothingIsLeft()
  })

  test('a Node torn out, which is the instance here, takes its claim along', async () => {
    await begin()
    await launch('bare')
    const name = await nodeNameOf('bare')
    // Collection runs every two minutes, and first after a start.
    await stand.stopOperator()
    await stand.admin.patch(kinds.node, { name }, { metadata: { finalizers: null } })
    await stand.delete(kinds.node, name)
    await stand.startOperator()
    await nothingIsLeft()
    assert.equal(launches(), 1)
  })

  test('a node class deleted while in use leaves its nodes alone and stops launches', async () => {
    await begin()
    await stand.admin.create(karpenterKinds.nodePool, aPool('classless'))
    await launch('kept')
    await stand.delete(kwokNodeClassKind, 'default')
    await stand.until('the NodePool says so', 30, async () => {
      const pool = await stand.admin.get(karpenterKinds.nodePool, { name: 'classless' })
      return pool !== undefined && conditionOf(pool, 'NodeClassReady')?.status === 'False'
    })
    const pods = deployment(1, { namespace: 'default', name: 'web', requests: { cpu: '64' } })
    await stand.admin.create(pods.type, pods.object)
    await stand.clock.sleep(5000)
    assert.equal(launches(), 1)
    await isReady('kept')
    await stand.delete(karpenterKinds.nodeClaim, 'kept')
    await nothingIsLeft()
  })
})
