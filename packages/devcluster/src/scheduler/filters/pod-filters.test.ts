import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { kinds, type PodAffinityTerm, type PodSpec, type TopologySpreadConstraint } from '@tenon/api'
import { aCluster, hostKey, inZone, zoneKey } from '../scheduling-fixture.test-support.ts'

const web = { app: 'web' }

function near(...terms: Partial<PodAffinityTerm>[]): Pick<PodSpec, 'affinity'> {
  return { affinity: { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: terms.map(filled) } } }
}

function apart(...terms: Partial<PodAffinityTerm>[]): Pick<PodSpec, 'affinity'> {
  return {
    affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: terms.map(filled) } },
  }
}

function filled(term: Partial<PodAffinityTerm>): PodAffinityTerm {
  return { topologyKey: zoneKey, labelSelector: { matchLabels: web }, ...term }
}

function spread(change: Partial<TopologySpreadConstraint> = {}): Pick<PodSpec, 'topologySpreadConstraints'> {
  const base = { maxSkew: 1, topologyKey: zoneKey, whenUnsatisfiable: 'DoNotSchedule' } as const
  return { topologySpreadConstraints: [{ ...base, labelSelector: { matchLabels: web }, ...change }] }
}

describe('pods near and apart', () => {
  it('places a pod in the zone of the pods it wants to be near', async () => {
    const cluster = aCluster().node('a', inZone('1')).node('b', inZone('2')).node('b2', inZone('2'))
    cluster
      .pod('web', { labels: web, nodeName: 'b' })
      .pod('p', { ...near({}), nodeSelector: { [hostKey]: 'b2' } })
    await cluster.settle()
    assert.equal(cluster.nodeOf('p'), 'b2')
    cluster.pod('far', { ...near({}), nodeSelector: { [hostKey]: 'a' } })
    await cluster.settle()
    assert.match(cluster.reason('far') ?? '', /1 node\(s\) didn't match pod affinity rules/)
  })

  it('lets the first of a group in that wants to be near itself, but only on labelled nodes', async () => {
    const cluster = aCluster().node('bare').node('a', inZone('1')).node('b', inZone('2'))
    cluster.pod('p1', { labels: web, ...near({}) })
    await cluster.settle()
    cluster
      .pod('p2', { labels: web, ...near({}) })
      .pod('stranger', near({ labelSelector: { matchLabels: { x: 'y' } } }))
    await cluster.settle()
    assert.notEqual(cluster.nodeOf('p1'), 'bare')
    assert.equal(cluster.nodeOf('p2'), cluster.nodeOf('p1'))
    assert.equal(cluster.nodeOf('stranger'), undefined)
  })

  it('counts for several affinity terms only pods that meet all of them', async () => {
    const cluster = aCluster().node('a', inZone('1')).node('b', inZone('2'))
    cluster
      .pod('one', { labels: { app: 'web' }, nodeName: 'a' })
      .pod('two', { labels: { tier: 'x' }, nodeName: 'a' })
    cluster.pod('p', near({}, { labelSelector: { matchLabels: { tier: 'x' } } }))
    await cluster.settle()
    assert.equal(cluster.nodeOf('p'), undefined)
    cluster.pod('both', { labels: { app: 'web', tier: 'x' }, nodeName: 'b' })
    await cluster.settle(2000)
    assert.equal(cluster.nodeOf('p'), 'b')
  })

  it('counts no pod for a spread whose selector is empty, as Kubernetes does', async () => {
    const cluster = aCluster().node('a', inZone('1')).node('b', inZone('2'))
    for (const name of ['r1', 'r2', 'r3']) cluster.pod(name, { labels: web, nodeName: 'a' })
    const here = { nodeSelector: { [hostKey]: 'a' } }
    cluster.pod('all', { ...spread({ labelSelector: {}, nodeAffinityPolicy: 'Ignore' }), ...here })
    cluster.pod('web', { labels: web, ...spread({ nodeAffinityPolicy: 'Ignore' }), ...here })
    await cluster.settle()
    assert.equal(cluster.nodeOf('all'), 'a')
    assert.equal(cluster.nodeOf('web'), undefined)
  })

  it('keeps anti-affine pods apart, one per host', async () => {
    const cluster = aCluster().node('a').node('b')
    for (const name of ['p1', 'p2', 'p3'])
      cluster.pod(name, { labels: web, ...apart({ topologyKey: hostKey }) })
    await cluster.settle()
    assert.deepEqual(cluster.spread('p'), { a: 1, b: 1 })
    assert.match(cluster.reason('p3') ?? '', /2 node\(s\) didn't match pod anti-affinity rules/)
  })

  it('respects the anti-affinity of running pods towards a newcomer that has none', async () => {
    const cluster = aCluster().node('a', inZone('1'))
    cluster.pod('shy', { nodeName: 'a', ...apart({}) }).pod('p', { labels: web })
    await cluster.settle()
    assert.match(cluster.reason('p') ?? '', /1 node\(s\) didn't satisfy existing pods anti-affinity rules/)
    cluster.api.delete(kinds.pod, 'default', 'shy', { gracePeriodSeconds: 0 })
    await cluster.settle(2000)
    assert.equal(cluster.nodeOf('p'), 'a')
  })

  it('looks into other namespaces only when named or selected', async () => {
    const cluster = aCluster().node('a', inZone('1')).node('b', inZone('2'))
    cluster.create(kinds.namespace, { metadata: { name: 'blue', labels: { team: 'blue' } } })
    cluster.pod('web', { namespace: 'blue', labels: web, nodeName: 'b' })
    cluster.pod('own', near({}))
    cluster.pod('named', near({ namespaces: ['blue'] }))
    cluster.pod('selected', near({ namespaceSelector: { matchLabels: { team: 'blue' } } }))
    cluster.pod('everywhere', near({ namespaceSelector: {} }))
    await cluster.settle()
    const nodes = ['own', 'named', 'selected', 'everywhere'].map((name) => cluster.nodeOf(name))
    assert.deepEqual(nodes, [undefined, 'b', 'b', 'b'])
  })

  it('narrows a term with matchLabelKeys and widens it away with mismatchLabelKeys', async () => {
    const cluster = aCluster().node('a', inZone('1')).node('b', inZone('2'))
    cluster.pod('v1', { labels: { ...web, version: '1' }, nodeName: 'a' })
    cluster.pod('v2', { labels: { ...web, version: '2' }, nodeName: 'b' })
    const labels = { version: '2' }
    cluster.pod('same', { labels, ...near({ matchLabelKeys: ['version'] }) })
    cluster.pod('other', { labels, ...near({ mismatchLabelKeys: ['version'] }) })
    await cluster.settle()
    assert.deepEqual([cluster.nodeOf('same'), cluster.nodeOf('other')], ['b', 'a'])
  })
})

describe('pods spread over domains', () => {
  it('keeps the skew between zones at one', async () => {
    const cluster = aCluster().node('a', inZone('1')).node('b', inZone('2')).node('c', inZone('3'))
    for (let i = 0; i < 9; i++) cluster.pod(`p${i}`, { labels: web, ...spread() })
    await cluster.settle()
    assert.deepEqual(cluster.spread('p'), { a: 3, b: 3, c: 3 })
  })

  it('refuses nodes without the key and zones that are ahead', async () => {
    const cluster = aCluster()
      .node('a', inZone('1'))
      .node('b', { ...inZone('2'), allocatable: { pods: '0' } })
    cluster
      .node('bare')
      .pod('old', { labels: web, nodeName: 'a' })
      .pod('p', { labels: web, ...spread() })
    await cluster.settle()
    assert.match(
      cluster.reason('p') ?? '',
      /1 Too many pods, 1 node\(s\) didn't match pod topology spread constraints, 1 node\(s\) didn't match pod topology spread constraints \(missing required label\)/,
    )
  })

  it('takes missing domains as empty up to minDomains', async () => {
    const cluster = aCluster().node('a', inZone('1'))
    cluster.pod('p1', { labels: web, ...spread({ minDomains: 2 }) })
    await cluster.settle()
    cluster.pod('p2', { labels: web, ...spread({ minDomains: 2 }) })
    await cluster.settle()
    assert.equal(cluster.nodeOf('p2'), undefined)
    cluster.node('b', inZone('2'))
    await cluster.settle(2000)
    assert.equal(cluster.nodeOf('p2'), 'b')
  })

  it('leaves out nodes the pod cannot use, unless nodeAffinityPolicy ignores that', async () => {
    const pool = (zone: string, name: string) => ({ labels: { [zoneKey]: zone, pool: name } })
    const cluster = aCluster().node('a', pool('1', 'x')).node('b', pool('2', 'y'))
    cluster.pod('old', { labels: web, nodeName: 'a' })
    const nodeSelector = { pool: 'x' }
    cluster.pod('honour', { labels: web, nodeSelector, ...spread() })
    await cluster.settle()
    cluster.pod('ignore', { labels: web, nodeSelector, ...spread({ nodeAffinityPolicy: 'Ignore' }) })
    await cluster.settle()
    assert.deepEqual([cluster.nodeOf('honour'), cluster.nodeOf('ignore')], ['a', undefined])
  })

  it('counts tainted nodes, unless nodeTaintsPolicy honours taints', async () => {
    const taints = [{ key: 'k', effect: 'NoSchedule' as const }]
    const cluster = aCluster()
      .node('a', inZone('1'))
      .node('b', { ...inZone('2'), taints })
    cluster.pod('old', { labels: web, nodeName: 'a' }).pod('ignore', { labels: web, ...spread() })
    cluster.pod('honour', { labels: web, ...spread({ nodeTaintsPolicy: 'Honor' }) })
    await cluster.settle()
    assert.deepEqual([cluster.nodeOf('ignore'), cluster.nodeOf('honour')], [undefined, 'a'])
  })

  it('counts each value of matchLabelKeys for itself, and no terminating pods', async () => {
    const cluster = aCluster()
      .node('a', inZone('1'))
      .node('b', { ...inZone('2'), unschedulable: true })
    cluster.pod('old', { labels: { ...web, hash: '1' }, nodeName: 'a' })
    cluster.pod('p', { labels: { ...web, hash: '2' }, ...spread({ matchLabelKeys: ['hash'] }) })
    await cluster.settle()
    assert.equal(cluster.nodeOf('p'), 'a')
    cluster.pod('q', { labels: { ...web, hash: '1' }, ...spread({ matchLabelKeys: ['hash'] }) })
    await cluster.settle()
    assert.equal(cluster.nodeOf('q'), undefined)
    cluster.api.delete(kinds.pod, 'default', 'old')
    await cluster.settle(2000)
    assert.equal(cluster.nodeOf('q'), 'a')
  })
})
