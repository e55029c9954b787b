import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { KubeObject, PodSpec, ScoredBalance } from '@tenon/api'
import { aCluster, hostKey, inZone, zoneKey } from './scheduling-fixture.test-support.ts'

describe('which of the fitting nodes', () => {
  it('takes the node with the most room', async () => {
    const cluster = aCluster()
      .node('a')
      .node('b')
      .pod('x', { nodeName: 'a', requests: { cpu: '1', memory: '2Gi' } })
    cluster.pod('p', { requests: { cpu: '1', memory: '2Gi' } })
    await cluster.settle()
    assert.equal(cluster.nodeOf('p'), 'b')
  })

  it('takes the node where CPU and memory stay in balance', async () => {
    const cluster = aCluster().node('a').node('b')
    cluster.pod('cpu', { nodeName: 'a', requests: { cpu: '2', memory: '0' } })
    cluster.pod('memory', { nodeName: 'b', requests: { cpu: '0', memory: '4Gi' } })
    cluster.pod('p', { requests: { cpu: '10m', memory: '4Gi' } })
    await cluster.settle()
    assert.equal(cluster.nodeOf('p'), 'a')
  })

  it('VER-47 takes the node whose balance is best with the pod, or from 1.36 on where the pod improves it most', async () => {
    const chosen = async (balance: ScoredBalance) => {
      const allocatable = { cpu: '10', memory: '10Gi' }
      const cluster = aCluster().node('uneven', { allocatable }).node('even', { allocatable })
      cluster.pod('x', { nodeName: 'uneven', requests: { cpu: '1', memory: '9728Mi' } })
      cluster.pod('y', { nodeName: 'even', requests: { cpu: '5', memory: '5Gi' } })
      cluster.start({ balance }).pod('p', { requests: { cpu: '4', memory: '0' } })
      await cluster.settle()
      return cluster.nodeOf('p')
    }
    assert.deepEqual([await chosen('use'), await chosen('change')], ['even', 'uneven'])
  })

  it('follows preferred node affinity against more room', async () => {
    const cluster = aCluster()
      .node('a', { labels: { disk: 'ssd' } })
      .node('b')
    cluster.pod('x', { nodeName: 'a', requests: { cpu: '1', memory: '2Gi' } })
    const preference = { matchExpressions: [{ key: 'disk', operator: 'In' as const, values: ['ssd'] }] }
    const preferred = [{ weight: 10, preference }]
    cluster.pod('p', {
      affinity: { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: preferred } },
    })
    await cluster.settle()
    assert.equal(cluster.nodeOf('p'), 'a')
  })

  it('avoids PreferNoSchedule taints but does not refuse them', async () => {
    const taints = [{ key: 'k', effect: 'PreferNoSchedule' as const }]
    const cluster = aCluster()
      .node('a', { taints })
      .node('b', { allocatable: { pods: '2' } })
    cluster.pod('x', { nodeName: 'b', requests: { cpu: '2' } }).pod('p')
    await cluster.settle()
    cluster.pod('q')
    await cluster.settle()
    assert.deepEqual([cluster.nodeOf('p'), cluster.nodeOf('q')], ['b', 'a'])
  })

  it('follows preferred pod affinity and anti-affinity in both directions', async () => {
    const term = { topologyKey: hostKey, labelSelector: { matchLabels: { app: 'web' } } }
    const prefers = (kind: 'podAffinity' | 'podAntiAffinity'): Pick<PodSpec, 'affinity'> => ({
      affinity: {
        [kind]: { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 100, podAffinityTerm: term }] },
      },
    })
    const cluster = aCluster()
      .node('a')
      .node('b')
      .pod('web', { labels: { app: 'web' }, nodeName: 'a' })
    cluster.pod('near', prefers('podAffinity')).pod('far', prefers('podAntiAffinity'))
    await cluster.settle()
    assert.deepEqual([cluster.nodeOf('near'), cluster.nodeOf('far')], ['a', 'b'])
    // Now `far` on b repels and `near` on a attracts whatever is labelled so.
    cluster.pod('newcomer', { labels: { app: 'web' } })
    await cluster.settle()
    assert.equal(cluster.nodeOf('newcomer'), 'a')
  })

  it('spreads ScheduleAnyway pods, and lets them in where they cannot spread', async () => {
    const labels = { app: 'web' }
    const topologySpreadConstraints = [
      {
        maxSkew: 1,
        topologyKey: zoneKey,
        whenUnsatisfiable: 'ScheduleAnyway' as const,
        labelSelector: { matchLabels: labels },
      },
    ]
    const cluster = aCluster().node('a', inZone('1')).node('b', inZone('2'))
    for (let i = 0; i < 6; i++) cluster.pod(`p${i}`, { labels, topologySpreadConstraints })
    await cluster.settle()
    assert.deepEqual(cluster.spread('p'), { a: 3, b: 3 })
    const one = aCluster()
      .node('a', inZone('1'))
      .node('b', { ...inZone('2'), unschedulable: true })
    for (let i = 0; i < 6; i++) one.pod(`p${i}`, { labels, topologySpreadConstraints })
    await one.settle()
    assert.deepEqual(one.spread('p'), { a: 6 })
  })

  it('spreads the pods of a Service over hosts without being asked', async () => {
    const cluster = aCluster()
      .node('a')
      .node('b', { allocatable: { cpu: '64', memory: '128Gi' } })
    const service = { group: '', version: 'v1', kind: 'Service', plural: 'services', namespaced: true }
    const spec = { selector: { app: 'web' }, ports: [{ port: 80 }] }
    cluster.create(service, { metadata: { name: 'web', namespace: 'default' }, spec } as object as KubeObject)
    for (let i = 0; i < 4; i++) cluster.pod(`p${i}`, { labels: { app: 'web' }, requests: { cpu: '900m' } })
    for (let i = 0; i < 4; i++) cluster.pod(`q${i}`, { labels: { app: 'db' }, requests: { cpu: '900m' } })
    await cluster.settle()
    assert.deepEqual(cluster.spread('p'), { a: 2, b: 2 })
    assert.deepEqual(cluster.spread('q'), { b: 4 })
  })

  it('uses all nodes of a large cluster although it scores only a sample', async () => {
    const cluster = aCluster()
    for (let i = 0; i < 300; i++) cluster.node(`n${i}`)
    for (let i = 0; i < 900; i++) cluster.pod(`p${i}`, { requests: { cpu: '1' } })
    await cluster.settle(5000)
    const counts = Object.values(cluster.spread('p'))
    assert.equal(counts.length, 300)
    assert.ok(Math.max(...counts) <= 4)
  })
})
