/**
 * What the real controllers of Cluster API do with MachineDeployments, MachineSets and Machines, without Tenon: the
 * facts that its provider and the simulated Cluster API rely on.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { kinds } from '@tenon/api'
import { isKubeError } from '@tenon/kube'
import { ClusterApiHub, fleet } from '../src/cluster-api/hub.ts'
import { capiKinds, infrastructureGroup, type Machine, type MachineSet } from '../src/cluster-api/kinds.ts'
import { sharedControlPlane } from './cluster.ts'

const deleteMachine = 'cluster.x-k8s.io/delete-machine'
const paused = 'cluster.x-k8s.io/paused'
const minSize = 'cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size'
const maxSize = 'cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size'
/** Longer than the controllers take for a step, where it is to be seen that they take none. */
const quietMs = 4000

interface Conditioned {
  readonly status?: {
    readonly conditions?: readonly {
      readonly type: string
      readonly status: string
      readonly reason?: string
      readonly message?: string
    }[]
  }
}

const conditionOf = (object: Conditioned | undefined, type: string) =>
  object?.status?.conditions?.find((each) => each.type === type)
const nameOf = ({ metadata }: { readonly metadata: { readonly name: string } }) => metadata.name

describe('Cluster API', () => {
  let controlPlane: Awaited<ReturnType<typeof sharedControlPlane>>
  let hub: ClusterApiHub

  before(async () => {
    controlPlane = await sharedControlPlane()
    hub = await ClusterApiHub.open({ kubeconfigPath: controlPlane.kubeconfigPath })
  })

  after(async () => {
    try {
      await hub.clear()
    } finally {
      await hub.close()
    }
    assert.deepEqual(hub.infrastructure.complaints, [])
    await controlPlane.stop()
  })

  const deploymentOf = (name: string) =>
    hub.client.get(capiKinds.machineDeployment, { namespace: fleet, name })
  const patchDeployment = (name: string, patch: object) =>
    hub.client.patch(capiKinds.machineDeployment, { namespace: fleet, name }, patch)
  const machineOf = (name: string) => hub.client.get(capiKinds.machine, { namespace: fleet, name })
  const annotate = ({ metadata }: Machine, annotations: Readonly<Record<string, string | null>>) =>
    hub.client.patch(
      capiKinds.machine,
      { namespace: fleet, name: metadata.name },
      { metadata: { annotations } },
    )
  const nodeOf = (name: string) => hub.workload.get(kinds.node, { name })

  function setsOf(deployment: string): Promise<MachineSet[]> {
    const labelSelector = { matchLabels: { 'cluster.x-k8s.io/deployment-name': deployment } }
    return hub.client.list(capiKinds.machineSet, { namespace: fleet, labelSelector })
  }

  async function namesOf(deployment: string): Promise<readonly string[]> {
    return (await hub.machines(deployment)).map(nameOf)
  }

  /** Waits until the Machines are those of these names. */
  async function untilLeft(deployment: string, names: readonly string[]): Promise<void> {
    await hub.until(`of ${deployment} are left: ${names.join(', ')}`, async () => {
      const left = await namesOf(deployment)
      return left.length === names.length && names.every((name) => left.includes(name))
    })
  }

  describe('side by side', { concurrency: true }, () => {
    test('of the labels of a template, nodes get those with a role, a restriction or of Cluster API', async () => {
      await hub.addMachineDeployment({
        name: 'flow',
        replicas: 2,
        labels: { team: 'data' },
        annotations: { 'example.com/of-deployment': 'a' },
        template: {
          labels: {
            plain: 'p',
            'node-role.kubernetes.io/worker': '',
            'a.node-restriction.kubernetes.io/b': 'r',
            'node.cluster.x-k8s.io/karpenter-member': '',
          },
          annotations: { 'example.com/of-template': 'b' },
        },
        nodeLabels: { 'node.kubernetes.io/instance-type': 'small' },
      })
      const [machine, other] = await hub.untilRunning('flow', 2)
      assert.ok(machine !== undefined && other !== undefined)
      const [set] = await setsOf('flow')
      assert.equal(set?.metadata.labels?.['team'], undefined, 'labels of the deployment stay there')
      assert.equal(set?.metadata.annotations?.['example.com/of-deployment'], 'a')
      assert.equal(machine.metadata.annotations?.['example.com/of-deployment'], undefined)
      assert.equal(machine.metadata.annotations?.['example.com/of-template'], 'b')
      const { labels = {} } = machine.metadata
      assert.equal(labels['plain'], 'p')
      assert.equal(labels['cluster.x-k8s.io/deployment-name'], 'flow')
      assert.equal(labels['cluster.x-k8s.io/cluster-name'], fleet)
      assert.equal(labels['cluster.x-k8s.io/set-name'], set && nameOf(set))
      assert.equal(labels['node.cluster.x-k8s.io/karpenter-member'], '', 'a member by its template')
      await hub.until('the labels are on the node', async () => {
        const node = await nodeOf(nameOf(machine))
        return node?.metadata.labels?.['node-role.kubernetes.io/worker'] === ''
      })
      const node = await nodeOf(nameOf(machine))
      assert.equal(node?.spec?.providerID, machine.spec.providerID)
      const { 'a.node-restriction.kubernetes.io/b': restriction, ...nodeLabels } = node?.metadata.labels ?? {}
      assert.equal(restriction, 'r')
      assert.equal(nodeLabels['plain'], undefined)
      assert.equal(nodeLabels['node.cluster.x-k8s.io/karpenter-member'], '')
      assert.equal(nodeLabels['node.kubernetes.io/instance-type'], 'small')
      assert.equal(node?.metadata.annotations?.['cluster.x-k8s.io/machine'], nameOf(machine), 'the bare name')
      assert.equal(node?.metadata.annotations?.['example.com/of-template'], undefined)
    })

    test('CAP-95 an annotated Machine goes first, then one without a node, then the healthy ones', async () => {
      await hub.addMachineDeployment({ name: 'order', replicas: 2 })
      const [first, second] = await hub.untilRunning('order', 2)
      assert.ok(first !== undefined && second !== undefined)
      hub.infrastructure.faults.set('order', 'neverJoins')
      await hub.scale('order', 3)
      await hub.until('the third has its provider ID', async () => {
        const machines = await hub.machines('order')
        return machines.length === 3 && machines.every(({ spec }) => spec.providerID !== undefined)
      })
      const booting =
        (await namesOf('order')).find((name) => ![first, second].map(nameOf).includes(name)) ?? ''
      // By name it would be the last to go.
      await annotate(second, { [deleteMachine]: 'any' })
      await hub.scale('order', 2)
      await untilLeft('order', [nameOf(first), booting])
      await hub.scale('order', 1)
      await untilLeft('order', [nameOf(first)])
    })

    test('among healthy Machines, Random goes by name, and Newest by age', async () => {
      await hub.addMachineDeployment({ name: 'random', replicas: 3 })
      await hub.addMachineDeployment({
        name: 'newest',
        replicas: 1,
        spec: { deletion: { order: 'Newest' } },
      })
      const names = (await hub.untilRunning('random', 3)).map(nameOf)
      await hub.scale('random', 1)
      await untilLeft('random', names.slice(2))
      const old = (await hub.untilRunning('newest', 1)).map(nameOf)
      await hub.scale('newest', 3)
      await hub.untilRunning('newest', 3)
      await hub.scale('newest', 1)
      await untilLeft('newest', old)
    })

    test('v1beta1 and v1beta2 are two faces of one object, and both can be written', async () => {
      const { client } = hub
      await hub.addMachineDeployment({ name: 'faces' })
      const key = { namespace: fleet, name: 'faces' }
      const old = await client.get(capiKinds.old.machineDeployment, key)
      assert.deepEqual(old?.spec.template.spec.infrastructureRef, {
        apiVersion: `${infrastructureGroup}/v1alpha1`,
        kind: 'TestMachineTemplate',
        name: 'faces',
        namespace: fleet,
      })
      assert.ok(old.metadata.annotations?.['cluster.x-k8s.io/conversion-data'], 'only in v1beta1')
      const now = await deploymentOf('faces')
      assert.deepEqual(now?.spec.template.spec.infrastructureRef, {
        apiGroup: infrastructureGroup,
        kind: 'TestMachineTemplate',
        name: 'faces',
      })
      assert.equal(now.metadata.annotations?.['cluster.x-k8s.io/conversion-data'], undefined)
      await client.patch(capiKinds.old.machineDeployment, key, { spec: { replicas: 1 } })
      const [machine] = await hub.untilRunning('faces', 1)
      assert.ok(machine !== undefined)
      const machineKey = { namespace: fleet, name: nameOf(machine) }
      const asOld = await client.get(capiKinds.old.machine, machineKey)
      assert.equal(asOld?.spec.providerID, machine.spec.providerID)
      assert.deepEqual(asOld?.status?.nodeRef, { apiVersion: 'v1', kind: 'Node', name: nameOf(machine) })
      assert.deepEqual(machine.status?.nodeRef, { name: nameOf(machine) })
      const annotations = { [deleteMachine]: '' }
      await client.patch(capiKinds.old.machine, machineKey, { metadata: { annotations } })
      assert.equal((await machineOf(nameOf(machine)))?.metadata.annotations?.[deleteMachine], '')
    })

    test('a write of replicas on an old resource version is a conflict', async () => {
      const { metadata } = await hub.addMachineDeployment({ name: 'stale' })
      await hub.until('the controllers have written to it', async () => {
        const deployment = await deploymentOf('stale')
        return deployment?.metadata.resourceVersion !== metadata.resourceVersion
      })
      const key = { namespace: fleet, name: 'stale' }
      await assert.rejects(
        hub.client.patch(
          capiKinds.machineDeployment,
          key,
          { spec: { replicas: 1 } },
          { resourceVersion: metadata.resourceVersion ?? '' },
        ),
        (error) => isKubeError(error, 'conflict'),
      )
    })

    test('replicas that are left out become 1, or the smallest size that an autoscaler is told', async () => {
      hub.infrastructure.faults.set('unsized', 'noCapacity')
      const { spec } = await hub.addMachineDeployment({ name: 'unsized', spec: { replicas: undefined } })
      assert.equal(spec.replicas, 1)
      const sized = await hub.addMachineDeployment({
        name: 'sized',
        annotations: { [minSize]: '0', [maxSize]: '5' },
        spec: { replicas: undefined },
      })
      assert.equal(sized.spec.replicas, 0)
      const cleared = await patchDeployment('sized', { spec: { replicas: null } })
      assert.equal(cleared.spec.replicas, 0, 'and never go away')
    })

    test('spec.paused makes no new MachineSet, but one that is there scales; the annotation stops that too', async () => {
      await hub.addMachineDeployment({ name: 'paused' })
      await hub.until('it has a MachineSet', async () => (await setsOf('paused')).length === 1)
      await patchDeployment('paused', { spec: { paused: true, replicas: 1 } })
      const running = (await hub.untilRunning('paused', 1)).map(nameOf)
      await hub.addMachineDeployment({ name: 'never', replicas: 1, spec: { paused: true } })
      await patchDeployment('paused', { metadata: { annotations: { [paused]: '' } } })
      await hub.scale('paused', 2)
      await hub.clock.sleep(quietMs)
      assert.deepEqual(await namesOf('paused'), running)
      assert.deepEqual(await setsOf('never'), [])
      await patchDeployment('paused', { metadata: { annotations: { [paused]: null } } })
      await hub.untilRunning('paused', 2)
    })

    test('while a new template rolls out, a decrement spares an annotated Machine of the new set', async () => {
      await hub.addMachineDeployment({ name: 'rolling', replicas: 2 })
      const old = (await hub.untilRunning('rolling', 2)).map(nameOf)
      hub.infrastructure.faults.set('rolling', 'noCapacity')
      await patchDeployment('rolling', { spec: { template: { spec: { failureDomain: 'b' } } } })
      await hub.until('a Machine of the new set is made', async () => (await namesOf('rolling')).length === 3)
      assert.equal((await setsOf('rolling')).length, 2)
      await hub.until('the nodes of the old set are said to be out of date', async () => {
        const nodes = await Promise.all(old.map(nodeOf))
        return nodes.every((node) =>
          node?.spec?.taints?.some(
            ({ key, effect }) =>
              key === 'node.cluster.x-k8s.io/outdated-revision' && effect === 'PreferNoSchedule',
          ),
        )
      })
      assert.equal(conditionOf(await deploymentOf('rolling'), 'RollingOut')?.status, 'True')
      const fresh = (await hub.machines('rolling')).find((machine) => !old.includes(nameOf(machine)))
      assert.ok(fresh !== undefined)
      await annotate(fresh, { [deleteMachine]: '' })
      await hub.scale('rolling', 1)
      await untilLeft('rolling', [old[1] ?? '', nameOf(fresh)])
      hub.infrastructure.faults.delete('rolling')
      await untilLeft('rolling', [nameOf(fresh)])
    })

    test('a Machine whose kubelet has another version than asked for, or none asked for, is never up to date', async () => {
      await hub.addMachineDeployment({ name: 'unversioned', replicas: 1, version: '' })
      await hub.untilRunning('unversioned', 1)
      await hub.until(
        'the deployment is available',
        async () => (await deploymentOf('unversioned'))?.status?.availableReplicas === 1,
      )
      const rollingOut = conditionOf(await deploymentOf('unversioned'), 'RollingOut')
      assert.equal(rollingOut?.status, 'True', 'although nothing rolls out')
      assert.match(rollingOut.message ?? '', /kubeletVersion/)
      assert.equal((await setsOf('unversioned')).length, 1)
    })

    test('a Machine that no instance is to be had for says so, has no provider ID and goes at once', async () => {
      hub.infrastructure.faults.set('refused', 'noCapacity')
      await hub.addMachineDeployment({ name: 'refused', replicas: 1 })
      await hub.until('the Machine says why', async () => {
        const [machine] = await hub.machines('refused')
        return conditionOf(machine, 'InfrastructureReady')?.reason === 'NoCapacity'
      })
      const [machine] = await hub.machines('refused')
      assert.equal(machine?.spec.providerID, undefined)
      await hub.scale('refused', 0)
      await untilLeft('refused', [])
    })

    test('what others write to a Machine stays and reaches its node, the annotation of the node is put right', async () => {
      await hub.addMachineDeployment({ name: 'shared', replicas: 1 })
      const [machine] = await hub.untilRunning('shared', 1)
      const name = machine === undefined ? '' : nameOf(machine)
      const annotationOf = async () =>
        (await nodeOf(name))?.metadata.annotations?.['cluster.x-k8s.io/machine']
      await hub.until('the node names its Machine', async () => (await annotationOf()) === name)
      const annotations = { 'cluster.x-k8s.io/machine': `${fleet}/${name}` }
      await hub.workload.patch(kinds.node, { name }, { metadata: { annotations } })
      await hub.until('the node names its Machine again', async () => (await annotationOf()) === name)
      const labels = { 'node.cluster.x-k8s.io/karpenter-member': '' }
      await hub.client.patch(capiKinds.machine, { namespace: fleet, name }, { metadata: { labels } })
      await hub.until('the node has the label', async () => {
        const node = await nodeOf(name)
        return node?.metadata.labels?.['node.cluster.x-k8s.io/karpenter-member'] === ''
      })
      // Written by all of them in between.
      const kept = (await machineOf(name))?.metadata.labels?.['node.cluster.x-k8s.io/karpenter-member']
      assert.equal(kept, '')
    })

    test('a node that a finalizer holds does not hold its Machine, and a Machine without its node stays', async () => {
      await hub.addMachineDeployment({ name: 'held', replicas: 2 })
      const [first = '', second = ''] = (await hub.untilRunning('held', 2)).map(nameOf)
      const metadata = { finalizers: ['example.com/held'] }
      await hub.workload.patch(kinds.node, { name: first }, { metadata })
      await hub.workload.delete(kinds.node, { name: first })
      await hub.scale('held', 1)
      await untilLeft('held', [second])
      assert.notEqual((await nodeOf(first))?.metadata.deletionTimestamp, undefined)
      await hub.workload.patch(kinds.node, { name: first }, { metadata: { finalizers: null } })
      await hub.workload.delete(kinds.node, { name: second })
      await hub.until('the Machine is not healthy', async () => {
        return conditionOf(await machineOf(second), 'NodeHealthy')?.status === 'False'
      })
      const machine = await machineOf(second)
      assert.deepEqual(machine?.status?.nodeRef, { name: second })
      assert.equal(machine.metadata.deletionTimestamp, undefined)
      // Not by way of replicas: the set makes another.
      await hub.client.delete(capiKinds.machine, { namespace: fleet, name: second })
      await hub.until('another Machine is made', async () => {
        const names = await namesOf('held')
        return names.length === 1 && !names.includes(second)
      })
    })

    test('a Machine that goes drains its node first, as far as budgets allow, and takes the node with it', async () => {
      await hub.addMachineDeployment({ name: 'drained', replicas: 1 })
      const [name = ''] = (await hub.untilRunning('drained', 1)).map(nameOf)
      await hub.workload.create(kinds.pod, {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: 'kept', namespace: 'default', labels: { app: 'kept' } },
        spec: {
          nodeName: name,
          terminationGracePeriodSeconds: 0,
          tolerations: [{ operator: 'Exists' }],
          containers: [{ name: 'main', image: 'registry.k8s.io/pause:3.10' }],
        },
      })
      const budget = { namespace: 'default', name: 'kept' }
      await hub.workload.create(kinds.podDisruptionBudget, {
        apiVersion: 'policy/v1',
        kind: 'PodDisruptionBudget',
        metadata: budget,
        spec: { minAvailable: 1, selector: { matchLabels: { app: 'kept' } } },
      })
      await hub.until(
        'the pod runs',
        async () => (await hub.workload.get(kinds.pod, budget))?.status?.phase === 'Running',
      )
      await hub.scale('drained', 0)
      await hub.until('the budget holds up the Machine', async () => {
        const { reason, message } = conditionOf(await machineOf(name), 'Deleting') ?? {}
        return reason === 'DrainingNode' && /disruption budget/.test(message ?? '')
      })
      assert.equal((await nodeOf(name))?.spec?.unschedulable, true)
      assert.notEqual(await hub.workload.get(kinds.pod, budget), undefined)
      await hub.workload.delete(kinds.podDisruptionBudget, budget)
      await hub.workload.delete(kinds.pod, budget)
      // It looks again after 20 seconds.
      await untilLeft('drained', [])
      assert.equal(await nodeOf(name), undefined)
      assert.equal(await hub.workload.get(kinds.pod, budget), undefined)
    })
  })

  test('controllers killed in the middle make the number exact when they are back; until then nothing is taken', async () => {
    await hub.addMachineDeployment({ name: 'killed' })
    await hub.scale('killed', 5)
    await hub.until('the first Machine is made', async () => (await namesOf('killed')).length > 0)
    await hub.stopManagers('SIGKILL')
    await assert.rejects(hub.scale('killed', 6), (error) => isKubeError(error, 'server'))
    assert.notEqual(await deploymentOf('killed'), undefined, 'reads in the stored version are answered')
    await hub.startManagers()
    await hub.untilRunning('killed', 5)
    await hub.scale('killed', 1)
    await hub.until('the first Machine goes', async () =>
      (await hub.machines('killed')).some(({ metadata }) => metadata.deletionTimestamp !== undefined),
    )
    await hub.stopManagers('SIGKILL')
    await hub.startManagers()
    await hub.untilRunning('killed', 1)
    await hub.until('only the node of the Machine is left', async () => {
      const nodes = await hub.workload.list(kinds.node)
      return nodes.filter((node) => nameOf(node).startsWith('killed-')).length === 1
    })
  })

  test('a paused Cluster holds up all its Machines', async () => {
    await hub.addMachineDeployment({ name: 'stopped' })
    const key = { namespace: fleet, name: fleet }
    await hub.client.patch(capiKinds.cluster, key, { spec: { paused: true } })
    await hub.scale('stopped', 1)
    await hub.clock.sleep(quietMs)
    assert.deepEqual(await namesOf('stopped'), [])
    await hub.client.patch(capiKinds.cluster, key, { spec: { paused: false } })
    await hub.untilRunning('stopped', 1)
  })
})
