/**
 * `tenon cluster-autoscaler --cloud-provider=clusterapi` with the real controllers of Cluster API, kubeadm's included,
 * with the arguments and the rights of Cluster Autoscaler's example manifest.
 */
import assert from 'node:assert/strict'
import { after, afterEach, before, describe, test } from 'node:test'
import { kinds, type Taint } from '@tenon/api'
import { rfc3339 } from '@tenon/runtime'
import { fleet } from '../src/cluster-api/hub.ts'
import { managementRoleWithoutSets } from '../src/cluster-api/example-rights.ts'
import { capiKinds, type Machine } from '../src/cluster-api/kinds.ts'
import { controlPlaneOf } from '../src/cluster-api/machine-history.ts'
import { sharedControlPlane } from './cluster.ts'
import { ClusterApiAutoscalerStand } from './cluster-api-autoscaler-stand.ts'

const deleteMachine = 'cluster.x-k8s.io/delete-machine'
const toBeDeleted = 'ToBeDeletedByClusterAutoscaler'
/** Groups that get pods, and how many: one from zero, two from one node, and a MachineSet. */
const podsPerNode = 4
/** The group of a Cluster that has a ClusterClass, and its namespace. */
const classy = 'classy'
const load = { zero: 24, workers: 24, rolling: 12, lone: 4 }

describe('tenon cluster-autoscaler on Cluster API', () => {
  let controlPlane: Awaited<ReturnType<typeof sharedControlPlane>>
  let stand: ClusterApiAutoscalerStand
  /** The control plane's Machines once it is complete. */
  let atControlPlane: readonly Machine[] = []

  const nameOf = ({ metadata }: Machine) => metadata.name
  const going = (machines: readonly Machine[]) =>
    machines.filter(({ metadata }) => metadata.deletionTimestamp !== undefined)
  const nodeNameOf = ({ status }: Machine) => status?.nodeRef?.name ?? ''
  const isTainted = async (machine: Machine) =>
    (await stand.node(nodeNameOf(machine)))?.spec?.taints?.some(({ key }) => key === toBeDeleted) === true

  const untilSizes = (sizes: Readonly<Record<string, number>>) =>
    stand.until(`sizes are ${JSON.stringify(sizes)}`, async () => {
      const found = await Promise.all(Object.keys(sizes).map((group) => stand.machines(group)))
      return Object.values(sizes).every((count, at) => found[at]?.length === count)
    })

  before(async () => {
    controlPlane = await sharedControlPlane()
    stand = await ClusterApiAutoscalerStand.open(controlPlane)
    await stand.addGroup({ name: 'zero', min: '0', max: '8' })
    await stand.addGroup({ name: 'workers', min: '1', max: '8', replicas: 3 })
    await stand.addGroup({ name: 'rolling', min: '1', max: '8', replicas: 1 })
    await stand.addGroup({ name: 'lone', min: '0', max: '2' }, 'MachineSet')
    await stand.addGroup({ name: 'broken', min: '0', max: '2' })
    await stand.addGroup({ name: 'malformed', min: 'x', max: '2' })
    await stand.addGroup({ name: classy, min: '1', max: '6' }, 'topology')
    await stand.hub.untilRunning('workers', 3)
    await stand.hub.untilRunning('rolling', 1)
    await stand.history.start()
  })

  afterEach((context) => {
    if ('passed' in context && !context.passed) process.stderr.write(stand.endOfLog())
  })

  after(async () => {
    await stand.close()
    await controlPlane.stop()
  })

  test('CAG-61 what the Go program left in mid-deletion is taken over: that Machine goes and no other', async () => {
    const { workload, client, infrastructure, clock } = stand.hub
    infrastructure.pace = { ...infrastructure.pace, terminateMs: 8000 }
    const machines = await stand.machines('workers')
    const [marked, tainted] = machines as readonly [Machine, Machine, Machine]
    const taint = { key: toBeDeleted, value: String(Math.floor(clock.now() / 1000)), effect: 'NoSchedule' }
    for (const machine of [marked, tainted])
      await workload.patch(kinds.node, { name: nodeNameOf(machine) }, { spec: { taints: [taint] } })
    await workload.create(kinds.configMap, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { namespace: 'kube-system', name: 'cluster-autoscaler-status' },
      data: { status: 'time: 2026-11-29 08:00:00 +0000 UTC\nautoscalerStatus: Running\n' },
    })
    await workload.create(kinds.lease, {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { namespace: 'kube-system', name: 'cluster-autoscaler' },
      spec: {
        holderIdentity: 'cluster-autoscaler-6d8f9c-x7k2p',
        leaseDurationSeconds: 3,
        acquireTime: '2026-11-29T08:00:00.000000Z',
        renewTime: '2026-11-29T08:00:00.000000Z',
        leaseTransitions: 4,
      },
    })
    await client.patch(
      capiKinds.machine,
      { namespace: fleet, name: nameOf(marked) },
      { metadata: { annotations: { [deleteMachine]: rfc3339(clock.now()) } } },
    )
    await stand.hub.scale('workers', 2)
    for (const [group, count] of Object.entries(load)) await stand.addPods(group, count)
    stand.autoscaler.start()
    await stand.until('the taint that the Go program left is gone', async () => !(await isTainted(tainted)))
    await stand.until('it tells its status', async () => /clusterWide/.test(await stand.status()))
    await stand.until('the Machine is gone', async () => {
      const names = (await stand.machines('workers')).map(nameOf)
      return !names.includes(nameOf(marked))
    })
    infrastructure.pace = { ...infrastructure.pace, terminateMs: 200 }
    assert.deepEqual(stand.history.deletions(), [
      { machine: nameOf(marked), group: 'workers', reason: 'marked by another' },
    ])
  })

  test('60 pods run on three MachineDeployments, one of them from zero, although it is killed on the way', async () => {
    await stand.until(
      'the first Machine of zero is there',
      async () => (await stand.machines('zero')).length > 0,
    )
    await stand.kill()
    await stand.until('all pods run', () => stand.areRunning(load))
    await stand.until('the control plane has all its Machines', async () => {
      atControlPlane = await stand.hub.controlPlaneMachines()
      return atControlPlane.length === 3
    })
    await stand.until('no Machine is on its way', async () => {
      const machines = await stand.hub.client.list(capiKinds.machine)
      return machines.every(({ status, metadata }) => status?.nodeRef && !metadata.deletionTimestamp)
    })
    for (const [group, pods] of Object.entries(load)) {
      const { length } = await stand.machines(group)
      const least = Math.ceil(pods / podsPerNode)
      assert.ok(length === least || length === least + 1, `${length} Machines of ${group}`)
    }
    await stand.untilExact()
    const joined = (await stand.machines('zero')).filter(({ status }) => status?.nodeRef !== undefined)
    for (const machine of joined) {
      const [id] = (await stand.joinToken(machine))?.split('.') ?? []
      const key = { namespace: 'kube-system', name: `bootstrap-token-${id}` }
      assert.ok(
        await stand.hub.workload.get(kinds.secret, key),
        `${nameOf(machine)} joins with its own token`,
      )
    }
  })

  test('a MachineHealthCheck replaces a Machine, and a rollout is stuck behind a budget; all pods run again', async () => {
    const { workload, client } = stand.hub
    const [sick] = await stand.machines('workers')
    await client.create(capiKinds.machineHealthCheck, healthCheck('workers'))
    await workload.create(kinds.podDisruptionBudget, budget('rolling'))
    await client.patch(
      capiKinds.machineDeployment,
      { namespace: fleet, name: 'rolling' },
      { spec: { template: { spec: { failureDomain: 'b' } } } },
    )
    const condition = {
      type: 'Broken',
      status: 'True',
      reason: 'Test',
      lastTransitionTime: rfc3339(stand.hub.clock.now()),
    }
    await workload.patch(
      kinds.node,
      { name: nodeNameOf(sick as Machine) },
      { status: { conditions: [condition] } },
      { subresource: 'status', kind: 'strategic' },
    )
    await stand.until('the Machine is replaced', async () => {
      const names = (await stand.machines('workers')).map(nameOf)
      return !names.includes(nameOf(sick as Machine)) && (await stand.areRunning(load))
    })
    await stand.until(
      'a Machine of the rollout cannot be drained',
      async () => going(await stand.machines('rolling')).length > 0,
    )
    // The node of the rollout's new Machine takes four of them.
    const from = (await stand.replicas('rolling')) ?? 0
    await stand.scalePods('rolling', load.rolling + 8)
    await stand.until('all pods run', () => stand.areRunning({ ...load, rolling: load.rolling + 8 }))
    assert.ok(((await stand.replicas('rolling')) ?? 0) > from, 'CAG-55 it grows while it is rolling')
  })

  test('a ClusterClass upgrade rolls all Machines, while the group grows and all pods keep running', async () => {
    await stand.addPods(classy, 8)
    await stand.until('its pods run', () => stand.areRunning({ [classy]: 8 }))
    const version = await stand.hub.upgradeTopology(classy)
    await stand.until('the first Machine is replaced', async () =>
      (await stand.machines(classy)).some(({ spec }) => spec.version === version),
    )
    await stand.scalePods(classy, 16)
    await stand.until('all Machines have the new version', async () => {
      const machines = await stand.machines(classy)
      return machines.every(({ spec, metadata }) => spec.version === version && !metadata.deletionTimestamp)
    })
    await stand.until('all pods run', () => stand.areRunning({ [classy]: 16 }))
    const { length } = await stand.machines(classy)
    assert.ok(length === 4 || length === 5, `${length} Machines`)
  })

  test('CAG-56 load gone and killed in the middle, groups shrink to their minimum, but none while it is rolling', async () => {
    const { hub } = stand
    for (const group of ['zero', 'workers', 'lone', classy]) await stand.scalePods(group, 0)
    await stand.until(
      'the first Machine goes',
      async () => going([...(await stand.machines('zero')), ...(await stand.machines('workers'))]).length > 0,
    )
    assert.match(
      await stand.status(),
      /not shrunk now: [^"]*MachineDeployment\/fleet\/rolling: it is rolling/,
    )
    await stand.kill()
    await stand.scalePods('rolling', 0)
    await hub.workload.delete(kinds.podDisruptionBudget, { namespace: 'default', name: 'rolling' })
    await untilSizes({ zero: 0, workers: 1, lone: 0, rolling: 1, [classy]: 1 })
    await stand.until('the nodes are gone', async () => (await stand.workers()).length === 3)
    await stand.untilExact()
  })

  test('CAG-14 a malformed annotation, a missing right and a hub that fails stop one group each, and are told', async () => {
    await stand.breakWrites('broken')
    await stand.setRole(managementRoleWithoutSets)
    await stand.addPods('broken', 1)
    await stand.scalePods('lone', 1)
    await stand.scalePods('zero', 4)
    await stand.until('pods of the other group run', () => stand.areRunning({ zero: 4 }))
    const told = {
      status: [
        /not scaled now: [^"]*MachineDeployment\/fleet\/malformed: annotation [^ ]*min-size is "x"/,
        /errorMessage: [^\n]*machinesets[^\n]* is forbidden/,
        /errorMessage: [^\n]*failed calling webhook/,
      ],
      events: [
        /NodeGroupUnavailable: node group MachineDeployment\/fleet\/malformed is not scaled: annotation/,
        /FailedToScaleUpGroup: [^\n]*MachineSet\/fleet\/lone[^\n]* is forbidden/,
        /FailedToScaleUpGroup: [^\n]*MachineDeployment\/fleet\/broken[^\n]*failed calling webhook/,
      ],
      log: [
        /fleet\/malformed.*min-size/,
        /MachineSet\/fleet\/lone.*is forbidden/,
        /fleet\/broken.*failed calling webhook/,
      ],
    }
    const missing = async () => {
      const texts = {
        status: await stand.status(),
        events: (await stand.events()).join('\n'),
        log: stand.autoscaler.log(),
      }
      return (['status', 'events', 'log'] as const).flatMap((where) =>
        told[where].filter((pattern) => !pattern.test(texts[where])).map((pattern) => `${where}: ${pattern}`),
      )
    }
    await stand
      .until('all of it is told', async () => (await missing()).length === 0)
      .catch(async (error: unknown) => {
        assert.deepEqual([await missing(), await stand.status(), await stand.events()], [], String(error))
      })
    assert.equal((await stand.machines('lone')).length, 0)
  })

  test('CAG-36 no Machine was deleted that nobody meant, no replicas fell below the Machines in use', () => {
    const reasons = stand.history.deletions().map(({ group, reason }) => `${group}: ${reason}`)
    assert.deepEqual([...new Set(reasons)].toSorted(), [
      'classy: marked by Tenon',
      'classy: rollout',
      'control plane of classy: rollout',
      'lone: marked by Tenon',
      'rolling: marked by Tenon',
      'rolling: rollout',
      'workers: health check',
      'workers: marked by Tenon',
      'workers: marked by another',
      'zero: marked by Tenon',
    ])
    assert.deepEqual(stand.history.undercuts(), [])
  })

  test('CAG-28 the Machines of control planes were never touched, nor named in the log', async () => {
    const { hub, history, autoscaler } = stand
    const uids = (machines: readonly Machine[]) => new Set(machines.map(({ metadata }) => metadata.uid))
    assert.deepEqual(uids(await hub.controlPlaneMachines()), uids(atControlPlane))
    assert.ok(history.writers('workers').has('tenon'))
    for (const cluster of [fleet, classy])
      assert.ok(!history.writers(controlPlaneOf(cluster)).has('tenon'), cluster)
    for (const machine of atControlPlane) {
      const { spec, metadata } = (await stand.node(nodeNameOf(machine))) ?? {}
      assert.deepEqual(
        spec?.taints?.map(({ key }) => key),
        ['node-role.kubernetes.io/control-plane'],
      )
      assert.ok(metadata?.managedFields?.every(({ manager }) => manager !== 'tenon'))
      assert.doesNotMatch(autoscaler.log(), new RegExp(nodeNameOf(machine)))
    }
  })

  test('CAS-38 once it has ended, nothing is left that the Go program would stumble over', async () => {
    const { client, workload } = stand.hub
    assert.equal(await stand.autoscaler.end('SIGTERM'), 0)
    assert.equal(await stand.status(), '')
    assert.doesNotMatch(stand.autoscaler.log(), /bug in the loop|an iteration threw/)
    // The Go program has this taint too, and removes it when it starts.
    const others = (taint: Taint) => taint.key !== 'DeletionCandidateOfClusterAutoscaler'
    for (const { metadata, spec } of await stand.workers())
      assert.deepEqual([metadata.name, spec?.taints?.filter(others) ?? []], [metadata.name, []])
    for (const { metadata } of await client.list(capiKinds.machine))
      assert.equal(metadata.annotations?.[deleteMachine], undefined, metadata.name)
    const objects = [
      ...(await client.list(capiKinds.machineDeployment)),
      ...(await client.list(capiKinds.machine)),
      ...(await workload.list(kinds.node)),
    ]
    for (const { kind, metadata } of objects) {
      const keys = Object.keys({ ...metadata.annotations, ...metadata.labels })
      assert.deepEqual(
        [kind, metadata.name, keys.filter((key) => key.includes('tenon'))],
        [kind, metadata.name, []],
      )
    }
  })
})

/** Replaces a Machine as soon as its node has the condition Broken. */
const healthCheck = (group: string) => ({
  apiVersion: 'cluster.x-k8s.io/v1beta2',
  kind: 'MachineHealthCheck',
  metadata: { namespace: fleet, name: group },
  spec: {
    clusterName: fleet,
    selector: { matchLabels: { 'cluster.x-k8s.io/deployment-name': group } },
    checks: { unhealthyNodeConditions: [{ type: 'Broken', status: 'True', timeoutSeconds: 0 }] },
  },
})

/** Allows no disruption of a group's pods. */
const budget = (group: string) => ({
  apiVersion: 'policy/v1',
  kind: 'PodDisruptionBudget',
  metadata: { namespace: 'default', name: group },
  spec: { maxUnavailable: 0, selector: { matchLabels: { app: group } } },
})
