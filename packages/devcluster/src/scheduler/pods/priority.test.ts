import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { kinds, type Pod } from '@tenon/api'
import { aCluster, type SchedulingFixture, zoneKey } from '../scheduling-fixture.test-support.ts'

const oneCpu = { allocatable: { cpu: '1' } }
const whole = { requests: { cpu: '1' } }

function nominated(cluster: SchedulingFixture, name: string): string | undefined {
  return cluster.get(name)?.status?.nominatedNodeName
}

describe('queue order and back-off', () => {
  it('tries pods by priority, then by age', async () => {
    const cluster = aCluster().node('a', { allocatable: { pods: '2' } })
    cluster.pod('first').pod('second').pod('urgent', { priority: 10, preemptionPolicy: 'Never' })
    await cluster.settle()
    assert.deepEqual(
      ['first', 'second', 'urgent'].map((name) => cluster.nodeOf(name)),
      ['a', undefined, 'a'],
    )
  })

  it('backs off 1 s doubling to 10 s while changes keep waking a pod in vain', async () => {
    const cluster = aCluster()
      .node('a', oneCpu)
      .pod('p', { requests: { cpu: '2' } })
    const attempts: number[] = []
    cluster.api.subscribe<Pod>(kinds.event as never, {
      added: () => attempts.push(cluster.clock.monotonic()),
      updated: () => attempts.push(cluster.clock.monotonic()),
    })
    // A node that would fit were it empty, but is full, changes ten times a second.
    cluster.node('b', { allocatable: { cpu: '2' } }).pod('filler', { nodeName: 'b', requests: { cpu: '1' } })
    cluster.start()
    for (let turn = 0; turn < 400; turn++) {
      cluster.api.patch(kinds.node, undefined, 'b', { metadata: { labels: { turn: String(turn) } } })
      await cluster.settle()
    }
    const gaps = attempts.slice(1).map((at, index) => Math.round((at - (attempts[index] as number)) / 1000))
    assert.deepEqual(gaps, [1, 2, 4, 8, 10, 10])
  })

  it('leaves an unschedulable pod in peace when nothing helps it, and retries after five minutes', async () => {
    const cluster = aCluster()
      .node('a', oneCpu)
      .pod('p', { requests: { cpu: '2' } })
    let attempts = 0
    cluster.api.subscribe(kinds.event, { added: () => attempts++, updated: () => attempts++ })
    await cluster.settle()
    cluster.node('small', oneCpu).pod('other', { nodeName: 'a' })
    await cluster.settle(290_000)
    assert.equal(attempts, 1)
    await cluster.settle(60_000)
    assert.equal(attempts, 2)
  })

  it('asks a filter from outside again after five minutes, although nothing in the cluster has changed', async () => {
    let refusal: string | undefined = 'node(s) were refused'
    const cluster = aCluster().node('a', oneCpu).pod('p', whole)
    cluster.start({ extraFilter: () => refusal })
    await cluster.settle(1000)
    refusal = undefined
    await cluster.settle(350_000)
    assert.equal(cluster.get('p')?.spec.nodeName, 'a')
  })

  it('writes the condition once while the reason stays the same', async () => {
    const cluster = aCluster()
      .node('a', oneCpu)
      .pod('p', { requests: { cpu: '2' } })
    await cluster.settle()
    const version = cluster.get('p')?.metadata.resourceVersion
    await cluster.settle(700_000)
    assert.equal(cluster.get('p')?.metadata.resourceVersion, version)
  })

  it('wakes when room appears: a pod goes, a node grows', async () => {
    const cluster = aCluster()
      .node('a', oneCpu)
      .pod('old', { ...whole, nodeName: 'a' })
      .pod('p', whole)
    cluster.pod('q', { requests: { cpu: '3' } })
    await cluster.settle(5000)
    cluster.api.delete(kinds.pod, 'default', 'old', { gracePeriodSeconds: 0 })
    await cluster.settle()
    assert.equal(cluster.nodeOf('p'), 'a')
    cluster.api.patch(kinds.node, undefined, 'a', { status: { allocatable: { cpu: '4' } } }, 'status')
    await cluster.settle(5000)
    assert.equal(cluster.nodeOf('q'), 'a')
  })

  it('does not count finished pods', async () => {
    const cluster = aCluster()
      .node('a', oneCpu)
      .pod('job', { ...whole, nodeName: 'a' })
      .pod('p', whole)
    await cluster.settle()
    cluster.api.patch(kinds.pod, 'default', 'job', { status: { phase: 'Succeeded' } }, 'status')
    await cluster.settle(2000)
    assert.equal(cluster.nodeOf('p'), 'a')
  })
})

describe('nominated nodes', () => {
  it('tries the nominated node first, before any score', async () => {
    const cluster = aCluster()
      .node('busy')
      .node('idle')
      .pod('x', { nodeName: 'busy', requests: { cpu: '2' } })
    cluster.pod('p', { ...whole, nominated: 'busy' })
    await cluster.settle()
    assert.equal(cluster.nodeOf('p'), 'busy')
    assert.equal(nominated(cluster, 'p'), undefined)
  })

  it('keeps the room of a nominated pod free of strangers of equal priority, not of higher', async () => {
    const taints = [{ key: 'unregistered', effect: 'NoExecute' as const }]
    const tolerations = [{ operator: 'Exists' as const }]
    const cluster = aCluster()
      .node('a', { ...oneCpu, taints })
      .pod('planned', { ...whole, nominated: 'a' })
    await cluster.settle()
    cluster.pod('stranger', { ...whole, tolerations })
    await cluster.settle()
    assert.equal(cluster.nodeOf('stranger'), undefined)
    assert.equal(nominated(cluster, 'planned'), 'a')
    cluster.api.patch(kinds.node, undefined, 'a', { spec: { taints: null } })
    await cluster.settle(5000)
    assert.equal(cluster.nodeOf('planned'), 'a')
  })

  it('lets a pod of higher priority take the room of a nomination', async () => {
    const taints = [{ key: 'unregistered', effect: 'NoExecute' as const }]
    const cluster = aCluster()
      .node('a', { ...oneCpu, taints })
      .pod('planned', { ...whole, nominated: 'a' })
    await cluster.settle()
    cluster.pod('vip', { ...whole, priority: 5, tolerations: [{ operator: 'Exists' }] })
    await cluster.settle()
    assert.equal(cluster.nodeOf('vip'), 'a')
  })

  it('clears a nomination to a node that does not exist, and keeps one to a node that is not usable', async () => {
    const cluster = aCluster().node('tainted', { taints: [{ key: 'k', effect: 'NoSchedule' }] })
    cluster.pod('lost', { nominated: 'nowhere' }).pod('early', { nominated: 'tainted' })
    await cluster.settle()
    assert.deepEqual([nominated(cluster, 'lost'), nominated(cluster, 'early')], [undefined, 'tainted'])
  })

  it('places a pod elsewhere when its nominated node refuses it', async () => {
    const cluster = aCluster()
      .node('full', oneCpu)
      .node('free')
      .pod('x', { ...whole, nodeName: 'full' })
    cluster.pod('p', { ...whole, nominated: 'full' })
    await cluster.settle()
    assert.equal(cluster.nodeOf('p'), 'free')
  })
})

describe('preemption', () => {
  it('deletes a less important pod, reserves its node and binds when it is gone', async () => {
    const cluster = aCluster()
      .node('a', oneCpu)
      .pod('low', { ...whole, nodeName: 'a', priority: 1 })
    cluster.pod('high', { ...whole, priority: 10 })
    await cluster.settle()
    assert.notEqual(cluster.get('low')?.metadata.deletionTimestamp, undefined)
    assert.equal(cluster.get('low')?.status?.conditions?.[0]?.type, 'DisruptionTarget')
    assert.equal(nominated(cluster, 'high'), 'a')
    cluster.api.delete(kinds.pod, 'default', 'low', { gracePeriodSeconds: 0 })
    await cluster.settle(2000)
    assert.equal(cluster.nodeOf('high'), 'a')
  })

  it('never preempts with preemptionPolicy Never, and says so', async () => {
    const cluster = aCluster()
      .node('a', oneCpu)
      .pod('low', { ...whole, nodeName: 'a' })
    cluster.pod('high', { ...whole, priority: 10, preemptionPolicy: 'Never' })
    await cluster.settle()
    assert.equal(cluster.get('low')?.metadata.deletionTimestamp, undefined)
    assert.match(cluster.reason('high') ?? '', /preemption: not eligible due to preemptionPolicy=Never\.$/)
  })

  it('tells full nodes without victims from nodes where preemption is no help', async () => {
    const cluster = aCluster()
      .node('a', oneCpu)
      .pod('peer', { ...whole, nodeName: 'a' })
    cluster.node('b', { unschedulable: true }).pod('p', whole)
    await cluster.settle()
    assert.equal(
      cluster.reason('p'),
      '0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable. preemption: 0/2 nodes ' +
        'are available: 1 No preemption victims found for incoming pod, 1 Preemption is not helpful for scheduling.',
    )
  })

  it('takes as few victims as needed and spares the important ones', async () => {
    const cluster = aCluster().node('a', { allocatable: { cpu: '3' } })
    cluster
      .pod('v1', { ...whole, nodeName: 'a', priority: 1 })
      .pod('v2', { ...whole, nodeName: 'a', priority: 2 })
    cluster.pod('v3', { ...whole, nodeName: 'a', priority: 3 }).pod('high', { ...whole, priority: 10 })
    await cluster.settle()
    const gone = ['v1', 'v2', 'v3'].filter((name) => cluster.get(name)?.metadata.deletionTimestamp)
    assert.deepEqual(gone, ['v1'])
  })

  it('prefers a node whose victims break no disruption budget, even at higher priority', async () => {
    const cluster = aCluster().node('a', oneCpu).node('b', oneCpu).budget('guard', { app: 'db' }, 0)
    cluster.pod('guarded', { ...whole, nodeName: 'a', priority: 1, labels: { app: 'db' } })
    cluster.pod('open', { ...whole, nodeName: 'b', priority: 5 }).pod('high', { ...whole, priority: 10 })
    await cluster.settle()
    assert.equal(nominated(cluster, 'high'), 'b')
  })

  it('prefers the node whose most important victim matters least, then the youngest victims', async () => {
    const cluster = aCluster().node('a', oneCpu).node('b', oneCpu).node('c', oneCpu)
    const at = (hour: number) => `2026-01-01T0${hour}:00:00Z`
    cluster.pod('va', { ...whole, nodeName: 'a', priority: 4, startTime: at(5) })
    cluster.pod('vb', { ...whole, nodeName: 'b', priority: 3, startTime: at(1) })
    cluster
      .pod('vc', { ...whole, nodeName: 'c', priority: 3, startTime: at(2) })
      .pod('high', { ...whole, priority: 10 })
    await cluster.settle()
    assert.equal(nominated(cluster, 'high'), 'c')
  })

  it('clears nominations of lower priority on the node it takes', async () => {
    const cluster = aCluster()
      .node('a', oneCpu)
      .pod('low', { ...whole, nodeName: 'a', priority: 1 })
    cluster.pod('mid', { ...whole, priority: 5 })
    await cluster.settle()
    assert.equal(nominated(cluster, 'mid'), 'a')
    cluster.pod('high', { ...whole, priority: 10 })
    await cluster.settle(500)
    assert.deepEqual([nominated(cluster, 'mid'), nominated(cluster, 'high')], [undefined, 'a'])
  })

  it('removes an anti-affine pod of lower priority', async () => {
    const cluster = aCluster().node('a', { labels: { [zoneKey]: '1' } })
    const term = { topologyKey: zoneKey, labelSelector: { matchLabels: { app: 'web' } } }
    const affinity = { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] } }
    cluster.pod('web', { labels: { app: 'web' }, nodeName: 'a' }).pod('high', { priority: 10, affinity })
    await cluster.settle()
    assert.notEqual(cluster.get('web')?.metadata.deletionTimestamp, undefined)
  })
})
