/** Tenon takes a cluster over from the Go Karpenter. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, before, beforeEach, describe, test } from 'node:test'
import {
  annotations,
  conditionOf,
  disruptedTaint,
  karpenterKinds,
  type KubeObject,
  kinds,
  labels,
  type Node,
  type NodeClaim,
  type NodePool,
  type Pod,
  sameTaint,
} from '@tenon/api'
import { rfc3339Micro } from '@tenon/runtime'
import {
  budgetKind,
  deadInstance,
  healthyClaims,
  playRecording,
  type RecordedInstance,
  recordedInstances,
  startupTaint,
} from '../../test/world/src/takeover/recorded-cluster.test-support.ts'
import { nodeNameOf, providerIdOf } from '../../test/world/src/takeover/recorded-instance.test-support.ts'
import { fieldManager, Stand, unchanging } from '../src/takeover/stand.ts'
import { sharedControlPlane } from './cluster.ts'
import { Controller } from './tenon.ts'

const isHealthy = ({ metadata: { name } }: KubeObject) =>
  healthyClaims.some((claim) => name === claim || name === nodeNameOf(claim))

describe('takeover from the Go Karpenter', () => {
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

  /** Plays the recording and waits until instances and pods run as they did. */
  async function record(wanted: (instance: RecordedInstance) => boolean): Promise<void> {
    const { admin, clock } = stand
    const instances = [...recordedInstances(clock.now()), deadInstance(clock.now())].filter(wanted)
    await playRecording(
      {
        create: (type, object) => admin.create(type, object),
        patchStatus: async (type, name, patch) => {
          await admin.patch(type, { name }, patch, { subresource: 'status' })
        },
        delete: (type, name) => admin.delete(type, { name }),
      },
      instances,
      clock.now(),
    )
    await stand.until('the recorded instances and pods run', 60, async () => {
      const nodes = (await admin.list(kinds.node)).filter(isHealthy)
      const pods = await admin.list(kinds.pod)
      const budget = await admin.get(budgetKind, { namespace: 'default', name: 'payments' })
      const { status } = budget as KubeObject & { status?: { disruptionsAllowed?: number } }
      return (
        nodes.every((node) => isReportedReady(node) && !hasTaint(node, notReady)) &&
        pods.length > 0 &&
        pods.every((pod) => isReportedReady(pod)) &&
        (status?.disruptionsAllowed ?? 0) > 0
      )
    })
  }

  async function healthyObjects(): Promise<Readonly<Record<string, readonly unknown[]>>> {
    const { admin } = stand
    const paying = (await admin.list(kinds.pod)).filter(
      ({ metadata }) => metadata.labels?.['app'] === 'payments',
    )
    return {
      claims: (await admin.list(karpenterKinds.nodeClaim)).filter(isHealthy).map(unchanging),
      nodes: (await admin.list(kinds.node)).filter(isHealthy).map(unchanging),
      pools: (await admin.list(karpenterKinds.nodePool)).map(unchanging),
      pods: paying.map(unchanging),
    }
  }

  const claimOf = (name: string): Promise<NodeClaim | undefined> =>
    stand.admin.get(karpenterKinds.nodeClaim, { name })
  const podOf = (name: string): Promise<Pod | undefined> =>
    stand.admin.get(kinds.pod, { namespace: 'default', name })
  const nodesOf = async (claim: string): Promise<readonly Node[]> =>
    (await stand.admin.list(kinds.node)).filter((node) => node.metadata.labels?.[labels.hostname] === claim)
  const isReady = (claim: NodeClaim | undefined): boolean =>
    claim !== undefined && conditionOf(claim, 'Ready')?.status === 'True'

  /** Fields the API server says the operator owns, by object. */
  function written(objects: readonly KubeObject[]): Readonly<Record<string, readonly string[]>> {
    const entries = objects.flatMap(({ kind, metadata }) =>
      (metadata.managedFields ?? [])
        .filter(({ manager }) => manager === fieldManager)
        .map(({ fieldsV1 }) => [`${kind} ${metadata.name}`, Object.keys(fieldsV1 as object)] as const),
    )
    return Object.fromEntries(entries)
  }

  test('VER-58 healthy instances keep spec, generation, Node and pods; only their status is written', async (t) => {
    await record(({ name }) => healthyClaims.includes(name))
    const recorded = await healthyObjects()
    await stand.startOperator()
    // Longer than consolidateAfter, the first passes of every loop, and emptiness' validation together.
    await stand.clock.sleep(60_000)

    assert.deepEqual(await healthyObjects(), recorded)
    const lines = stand.log.lines((target) => !/ events/.test(target))
    t.diagnostic(`writes: ${lines.join('; ')}`)
    // The time goes together with a condition, unless somebody else writes at the same moment.
    const told = lines.map((line) => line.replace('status.conditions status.last', 'status.last'))
    assert.deepEqual(
      [...new Set(told)],
      [
        ...['general-a', 'general-b'].flatMap((name) => [
          `PATCH nodeclaims/${name}/status status.conditions`,
          `PATCH nodeclaims/${name}/status status.lastPodEventTime`,
        ]),
        // How far rollouts are.
        ...['batch', 'broken', 'fixed', 'general'].map(
          (name) => `PATCH nodepools/${name}/status status.conditions`,
        ),
      ],
    )
    const claims = await stand.admin.list(karpenterKinds.nodeClaim)
    const pools: readonly NodePool[] = await stand.admin.list(karpenterKinds.nodePool)
    const nodes = await stand.admin.list(kinds.node)
    assert.deepEqual(claims.map(({ metadata }) => metadata.name).toSorted(), [...healthyClaims].toSorted())
    assert.equal(nodes.length, healthyClaims.length)
    for (const claim of claims) {
      assert.equal(conditionOf(claim, 'Drifted'), undefined, claim.metadata.name)
      assert.ok(isReady(claim), claim.metadata.name)
    }
    assert.deepEqual(written([...claims, ...nodes, ...pools]), {
      'NodeClaim general-a': ['f:status'],
      'NodeClaim general-b': ['f:status'],
      'NodePool batch': ['f:status'],
      'NodePool broken': ['f:status'],
      'NodePool fixed': ['f:status'],
      'NodePool general': ['f:status'],
    })
    assert.deepEqual(stand.complaints, [])
  })

  test('the controller takes over the lease that the Go version let lapse, and leaves its instances alone', async () => {
    await record(({ name }) => healthyClaims.includes(name))
    const recorded = await healthyObjects()
    const lapsed = rfc3339Micro(stand.clock.now() - 60_000)
    const key = { namespace: 'kube-system', name: 'karpenter-leader-election' }
    await stand.admin.delete(kinds.lease, key).catch(() => undefined)
    await stand.admin.create(kinds.lease, {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: key,
      spec: {
        holderIdentity: 'karpenter-7d9c5b6f4-x2v8q_0b6c6b0e-6f5e-4c0b-9a51-3d1f0e0c8a77',
        leaseDurationSeconds: 15,
        acquireTime: lapsed,
        renewTime: lapsed,
        leaseTransitions: 3,
      },
    })
    const folder = mkdtempSync(join(tmpdir(), 'tenon-takeover-'))
    const controller = new Controller(controlPlane.kubeconfigPath, join(folder, 'controller.log'))
    try {
      controller.start()
      await stand.until('the lease is held by another', 60, async () => {
        controller.assertRunning()
        const lease = await stand.admin.get(kinds.lease, key)
        return lease?.spec?.leaseTransitions === 4
      })
      // Pods count as events once the controllers run.
      await stand.until('it works', 30, async () => {
        const since = (await claimOf('general-a'))?.status?.lastPodEventTime ?? ''
        return stand.clock.now() - Date.parse(since) < 60_000
      })
      await stand.clock.sleep(5000)
      assert.deepEqual(await healthyObjects(), recorded)
      const claims = await stand.admin.list(karpenterKinds.nodeClaim)
      assert.equal(claims.length, healthyClaims.length)
      assert.ok(claims.every((claim) => isReady(claim) && conditionOf(claim, 'Drifted') === undefined))
    } finally {
      await controller.end('SIGTERM')
      rmSync(folder, { recursive: true, force: true })
      await stand.admin.delete(kinds.lease, key).catch(() => undefined)
    }
  })

  test('instances that were on their way arrive with one instance each; what was leaving goes', async (t) => {
    const onTheirWay = ['created', 'launching', 'launched', 'registering', 'registered']
    await record(() => true)
    const recorded = await healthyObjects()
    const deadline = async () =>
      (await claimOf('draining'))?.metadata.annotations?.[annotations.terminationTimestamp]
    const deadlineBefore = await deadline()
    assert.notEqual(deadlineBefore, undefined)
    const isGone = async (name: string) =>
      (await claimOf(name)) === undefined && (await nodesOf(name)).length === 0
    await stand.startOperator()

    for (const name of onTheirWay) {
      await stand.until(`${name} waits for its startup taint`, 30, async () => {
        const claim = await claimOf(name)
        return claim !== undefined && conditionOf(claim, 'Initialized')?.reason === 'StartupTaintsExist'
      })
      assert.equal((await nodesOf(name)).length, 1, name)
    }
    assert.equal((await claimOf('launching'))?.status?.providerID, providerIdOf('launching'))
    for (const { metadata, spec } of await stand.admin.list(kinds.node)) {
      const taints = (spec?.taints ?? []).filter((taint) => !sameTaint(taint, startupTaint))
      if (taints.length < (spec?.taints ?? []).length)
        await stand.admin.patch(kinds.node, { name: metadata.name }, { spec: { taints } })
    }
    for (const name of onTheirWay)
      await stand.until(`${name} is Ready`, 30, async () => isReady(await claimOf(name)))

    await stand.until('the interrupted disruption is taken back', 30, async () => {
      const claim = await claimOf('interrupted')
      const [node] = await nodesOf('interrupted')
      const isMarked = claim !== undefined && conditionOf(claim, 'DisruptionReason') !== undefined
      return node !== undefined && !isMarked && !hasTaint(node, disruptedTaint)
    })
    for (const name of ['lost', 'terminating', 'finalizing', 'repairing', 'dead'])
      await stand.until(`${name} is gone`, 60, () => isGone(name))
    assert.equal(await podOf('protected-repairing'), undefined)

    assert.equal((await podOf('blocked-draining'))?.metadata.deletionTimestamp, undefined, 'its budget holds')
    assert.equal(await deadline(), deadlineBefore)
    await stand.admin.delete(budgetKind, { namespace: 'default', name: 'blocked' })
    await stand.until('the drain ends without its budget', 60, () => isGone('draining'))
    assert.equal(await podOf('blocked-draining'), undefined)

    assert.deepEqual(await healthyObjects(), recorded)
    const launches = stand.log.lines((target) => target.startsWith('POST node'))
    const evictions = stand.log.lines((target) => /eviction$|^DELETE pods/.test(target))
    t.diagnostic(`evictions: ${evictions.join('; ')}`)
    assert.deepEqual(launches, ['POST nodes'])
    assert.equal(stand.log.writes.filter(({ target }) => target === 'POST nodes').length, 1, 'one launch')
    assert.ok(
      evictions.every((line) => /blocked-draining|protected-repairing/.test(line)),
      'no pod of others told to go',
    )
  })
})

const isReportedReady = ({ status }: Node | Pod) =>
  (status?.conditions ?? []).some(({ type, status: state }) => type === 'Ready' && state === 'True')

const notReady = { key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' } as const

function hasTaint(node: Node, taint: { readonly key: string; readonly effect: 'NoSchedule' }): boolean {
  return (node.spec?.taints ?? []).some((each) => sameTaint(each, taint))
}
