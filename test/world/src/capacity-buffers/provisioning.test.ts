/** Nodes for CapacityBuffers, and what nobody is told (buffers-and-dra.md 2.6, 2.7). */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { karpenterKinds, labels } from '@tenon/api'
import { minutes, intercepting, seconds } from '../testing/stage.test-support.ts'
import * as b from './buffer-stage.test-support.ts'

const nodes = (stage: Awaited<ReturnType<typeof b.openBuffers>>): number => stage.world.nodes().length
const never = { disruption: { consolidateAfter: 'Never' } }

describe('room of CapacityBuffers', () => {
  test('BUF-22 BUF-23 BUF-24 ASK-15 a burst as large as the buffer binds at once, and the room is refilled', async (t) => {
    const stage = await b.openBuffers(t)
    b.templated(stage, 'web', 6)
    await stage.world.clock.advanceUntil(
      () => b.stateOf(stage, 'web', 'Provisioning') !== 'absent',
      10 * seconds,
    )
    assert.equal(b.stateOf(stage, 'web', 'Provisioning'), 'False/RequiresNewCapacity')
    assert.match(b.messageOf(stage, 'web', 'Provisioning'), /6 of 6/)
    await stage.pass(20 * seconds)
    assert.equal(b.stateOf(stage, 'web', 'Provisioning'), 'True/FitsExistingCapacity')
    const before = nodes(stage)
    const claims = stage.world.claims()
    assert.ok(before > 0)

    // Of pods that nobody has made, nobody is told anything.
    const { state } = stage.operator.operator
    for (const claim of claims) assert.equal(state.isNominated(claim.status?.providerID ?? ''), false)
    assert.deepEqual([...state.plans.entries()], [])
    assert.equal(await stage.metric('scheduler_unschedulable_pods_count'), 0)
    for (const reason of ['FailedScheduling', 'Nominated']) assert.deepEqual(stage.events(reason), [])

    const beganMs = stage.now
    b.deployment(stage, 'burst', 6)
    await stage.world.clock.advanceUntil(() => b.bound(stage, 'burst') === 6, 5 * seconds)
    assert.equal(b.bound(stage, 'burst'), 6)
    assert.ok(stage.now - beganMs < 5 * seconds)
    assert.equal(nodes(stage), before, 'without a new node')
    await stage.pass(8 * seconds)
    assert.equal(b.stateOf(stage, 'web', 'Provisioning'), 'True/FitsExistingCapacity', 'refilled')
    assert.ok(nodes(stage) > before, 'though nobody has seen a pod wait')
    await stage.pass(30 * minutes)
    const bought = stage.world.nodes().map(({ metadata }) => metadata.creationTimestamp)
    await stage.pass(30 * minutes)
    assert.deepEqual(
      stage.world.nodes().map(({ metadata }) => metadata.creationTimestamp),
      bought,
      'nothing is moved for the sake of room',
    )
  })

  test('BUF-17 pods of buffers ask for and tolerate what those that the API server makes of the template do', async (t) => {
    const stage = await b.openBuffers(t, { limits: { nodes: '0' } })
    const own = [
      {
        key: 'node.kubernetes.io/not-ready',
        operator: 'Exists' as const,
        effect: 'NoExecute' as const,
        tolerationSeconds: 7,
      },
    ]
    const amounts = { cpu: '1', memory: '1Gi' }
    const containers = [{ name: 'app', image: 'registry.k8s.io/pause', resources: { limits: amounts } }]
    for (const [name, spec] of Object.entries({
      plain: { containers },
      own: { containers, tolerations: own },
    })) {
      b.deployment(stage, name, 1, spec)
      b.buffer(stage, name, { scalableRef: { kind: 'Deployment', name }, replicas: 1 })
    }
    await stage.pass(3 * seconds)
    const room = stage.operator.operator.state.buffers.all()
    assert.equal(room.length, 2)
    for (const { metadata, spec } of room) {
      const made = stage.world.pods().find((pod) => pod.metadata.labels?.['app'] === metadata.labels?.['app'])
      assert.equal(made?.spec.tolerations?.length, 2, 'nodes that are not heard of are tolerated for a while')
      assert.deepEqual(spec.tolerations, made?.spec.tolerations)
      assert.deepEqual(spec.containers[0]?.resources?.requests, made?.spec.containers[0]?.resources?.requests)
    }
  })

  test('BUF-33 of room on existing nodes nobody hears anything: no record, no event, no nomination', async (t) => {
    const sent: string[] = []
    const apiPath = intercepting((method, path, body) => {
      if (method !== 'GET' && /capacity-buffer-|capacitybuffers/.test(`${path} ${body}`))
        sent.push(`${method} ${path}`)
      return 'pass'
    })
    const stage = await b.openBuffers(t, {}, { apiPath })
    b.deployment(stage, 'web', 1, b.podSpec('5'))
    await stage.pass(30 * seconds)
    const [node] = stage.world.nodes()
    const decisions = async () => await stage.metric('pods_scheduling_decision_duration_seconds')
    const decided = await decisions()
    b.templated(stage, 'room', 2)
    await stage.pass(5 * seconds)
    assert.equal(b.stateOf(stage, 'room', 'Provisioning'), 'True/FitsExistingCapacity')
    assert.equal(stage.world.nodes().length, 1)
    await stage.pass(2 * minutes)
    assert.deepEqual(
      [...new Set(sent)],
      ['PATCH /apis/autoscaling.x-k8s.io/v1beta1/namespaces/default/capacitybuffers/room/status'],
    )
    assert.equal(await decisions(), decided)
    const text = await stage.operator.operator.metrics.registry.metrics()
    assert.doesNotMatch(text, /capacity-buffer-room/)
    // A nominated node would be left alone.
    const template = stage.poolNow()?.spec.template
    stage.patch(karpenterKinds.nodePool, 'default', {
      spec: { template: { ...template, metadata: { labels: { release: '2' } } } },
    })
    await stage.pass(60 * seconds)
    assert.ok(stage.world.nodes().every(({ metadata }) => metadata.uid !== node?.metadata.uid))
  })

  test('BUF-25 a buffer under a limit of its NodePool, and with the pool at its limit', async (t) => {
    const stage = await b.openBuffers(t, { ...never, limits: { cpu: '8' } })
    b.templated(stage, 'web', 12)
    await stage.pass(60 * seconds)
    const cpus = () =>
      stage.world
        .nodes()
        .reduce((sum, { metadata }) => sum + (metadata.labels?.[labels.instanceType] === b.large ? 8 : 4), 0)
    assert.equal(cpus(), 8)
    assert.equal(b.stateOf(stage, 'web', 'Provisioning'), 'False/RequiresNewCapacity')
    const [, failed] =
      /of 12 pods, and (\d+) cannot be placed/.exec(b.messageOf(stage, 'web', 'Provisioning')) ?? []
    assert.ok(Number(failed) > 0, b.messageOf(stage, 'web', 'Provisioning'))
    b.templated(stage, 'late', 2)
    await stage.pass(60 * seconds)
    assert.equal(b.stateOf(stage, 'late', 'Provisioning'), 'False/RequiresNewCapacity')
    assert.match(b.messageOf(stage, 'late', 'Provisioning'), /for 0 of 2 pods, and 2 cannot be placed/)
    assert.equal(cpus(), 8)
    assert.equal(await stage.metric('scheduler_unschedulable_pods_count'), 0)
    // Pods that are there come first, whatever is kept for others.
    b.deployment(stage, 'real', 4)
    await stage.pass(10 * seconds)
    assert.equal(b.bound(stage, 'real'), 4)
    stage.patch(karpenterKinds.nodePool, 'default', { spec: { limits: { cpu: '32' } } })
    await stage.pass(60 * seconds)
    assert.equal(b.stateOf(stage, 'web', 'Provisioning'), 'True/FitsExistingCapacity')
    assert.equal(b.stateOf(stage, 'late', 'Provisioning'), 'True/FitsExistingCapacity')
  })

  test('BUF-26 pods that keep apart have room on nodes of their own', async (t) => {
    const stage = await b.openBuffers(t, never)
    const term = { topologyKey: labels.hostname, labelSelector: { matchLabels: { app: 'web' } } }
    const affinity = { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] } }
    b.templated(stage, 'web', 3, b.podSpec('1', { affinity }))
    await stage.pass(60 * seconds)
    assert.equal(nodes(stage), 3)
    assert.equal(b.stateOf(stage, 'web', 'Provisioning'), 'True/FitsExistingCapacity')
  })

  test('BUF-35 BUF-119 without a usable NodePool the condition stays, and no room is known', async (t) => {
    const stage = await b.openBuffers(t, never)
    b.templated(stage, 'web', 3)
    await stage.pass(60 * seconds)
    const { buffers } = stage.operator.operator.state
    assert.equal(buffers.kept().size, 1)
    stage.delete(karpenterKinds.nodePool, 'default')
    const before = b.stateOf(stage, 'web', 'Provisioning')
    const pools = () => stage.world.cluster.server.local.list(karpenterKinds.nodePool).length
    await stage.world.clock.advanceUntil(() => pools() === 0 && buffers.kept().size === 0, 3 * minutes)
    assert.equal(buffers.kept().size, 0)
    assert.equal(b.stateOf(stage, 'web', 'Provisioning'), before)
  })

  test('a real pod is planned on room that is there, not on a node of its own', async (t) => {
    const stage = await b.openBuffers(t, never)
    b.templated(stage, 'web', 8)
    await stage.pass(60 * seconds)
    assert.equal(b.stateOf(stage, 'web', 'Provisioning'), 'True/FitsExistingCapacity')
    const claims = stage.world.claims().length
    // Too late for the scheduler to be asked before the pass: all of them wait at the same time.
    b.deployment(stage, 'burst', 8)
    await stage.pass(100)
    const planned = [...stage.operator.operator.state.plans.entries()].map(([, { target }]) => target.name)
    assert.ok(
      planned.every((name) =>
        stage.world
          .claims()
          .slice(0, claims)
          .some(({ metadata }) => metadata.name === name),
      ),
    )
    await stage.pass(60 * seconds)
    assert.equal(b.bound(stage, 'burst'), 8)
  })
})
