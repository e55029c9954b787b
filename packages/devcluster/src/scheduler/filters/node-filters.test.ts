import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  kinds,
  type KubeObject,
  type NodeSelectorTerm,
  type PodSpec,
  type ResizedRequests,
  type ResourceList,
  type ResourceType,
} from '@tenon/api'
import { aCluster, hostKey } from '../scheduling-fixture.test-support.ts'

interface RuntimeClass extends KubeObject {
  readonly handler: string
  readonly overhead: { readonly podFixed: ResourceList }
}

const runtimeClassKind: ResourceType<RuntimeClass> = {
  group: 'node.k8s.io',
  version: 'v1',
  kind: 'RuntimeClass',
  plural: 'runtimeclasses',
  namespaced: false,
}

function requires(...nodeSelectorTerms: NodeSelectorTerm[]): Pick<PodSpec, 'affinity'> {
  const requiredDuringSchedulingIgnoredDuringExecution = { nodeSelectorTerms }
  return { affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution } } }
}

describe('what a node must be for a pod', () => {
  it('compares numbers of 64 bits only, as Kubernetes does', async () => {
    const cluster = aCluster().node('least', { labels: { size: '9223372036854775807' } })
    cluster.node('beyond', { labels: { size: '9223372036854775808' } })
    const than = (operator: 'Gt' | 'Lt', bound: string) =>
      requires({ matchExpressions: [{ key: 'size', operator, values: [bound] }] })
    cluster.pod('within', than('Gt', '9223372036854775806'))
    cluster.pod('past-all', than('Lt', '9223372036854775808'))
    cluster.pod('past-least', {
      ...than('Gt', '5'),
      nodeSelector: { [hostKey]: 'beyond' },
    })
    await cluster.settle()
    assert.equal(cluster.nodeOf('within'), 'least')
    assert.equal(cluster.nodeOf('past-all'), undefined)
    assert.equal(cluster.nodeOf('past-least'), undefined)
  })

  it('VER-40 counts the containers of a resized pod as its version does', async () => {
    const requests = (cpu: string) => ({ resources: { requests: { cpu } } })
    const granted = (name: string, cpu: string) => ({
      name,
      ready: true,
      restartCount: 0,
      ...requests(cpu),
      allocatedResources: { cpu },
    })
    const containerStatuses = [granted('a', '2'), granted('b', '1')]
    const containers = [
      { name: 'a', image: 'app', ...requests('1') },
      { name: 'b', image: 'app', ...requests('2') },
    ]
    const nodeOf = async (resizedRequests: ResizedRequests) => {
      const cluster = aCluster().start({ resizedRequests }).node('a')
      cluster.pod('resized', { containers, nodeName: 'a' })
      cluster.api.patch(kinds.pod, 'default', 'resized', { status: { containerStatuses } }, 'status')
      cluster.pod('p', { requests: { cpu: '1' } })
      await cluster.settle(1000)
      return cluster.nodeOf('p')
    }
    assert.deepEqual([await nodeOf('sumOfMaxima'), await nodeOf('maximumOfSums')], [undefined, 'a'])
  })

  it('ASK-29 counts a pod that is resized in place with the most of what it asks for and has', async () => {
    const cluster = aCluster().node('a')
    cluster.pod('p', { requests: { cpu: '1' }, nodeName: 'a' })
    const tell = (cpu: string, reason?: string) => {
      const requests = { cpu }
      const containerStatuses = [
        { name: 'main', ready: true, restartCount: 0, resources: { requests }, allocatedResources: requests },
      ]
      const conditions = reason === undefined ? [] : [{ type: 'PodResizePending', status: 'True', reason }]
      cluster.api.patch(kinds.pod, 'default', 'p', { status: { containerStatuses, conditions } }, 'status')
    }
    tell('3')
    cluster.pod('q', { requests: { cpu: '2' } })
    await cluster.settle(1000)
    assert.equal(cluster.nodeOf('q'), undefined, 'three cores are not given back yet')
    tell('1')
    await cluster.settle(10_000)
    assert.equal(cluster.nodeOf('q'), 'a')
    tell('500m')
    cluster.pod('r', { requests: { cpu: '1500m' } })
    await cluster.settle(1000)
    assert.equal(cluster.nodeOf('r'), undefined, 'it asks for one core')
    tell('500m', 'Infeasible')
    await cluster.settle(10_000)
    assert.equal(cluster.nodeOf('r'), 'a', 'and will not get it')
  })

  it('binds a pod to the only node and says so in an event', async () => {
    const cluster = aCluster().node('a').pod('p')
    await cluster.settle()
    assert.equal(cluster.nodeOf('p'), 'a')
    const events = cluster.api.list(kinds.event) as (KubeObject & { reason: string; message: string })[]
    assert.deepEqual(
      events.map((one) => [one.reason, one.message]),
      [['Scheduled', 'Successfully assigned default/p to a']],
    )
  })

  it('says that there are no nodes, and binds when one comes', async () => {
    const cluster = aCluster().pod('p')
    await cluster.settle()
    assert.equal(cluster.reason('p'), 'no nodes available to schedule pods')
    cluster.node('a')
    await cluster.settle(1000)
    assert.equal(cluster.nodeOf('p'), 'a')
  })

  it('leaves pods of other schedulers and gated pods alone until the gate is gone', async () => {
    const cluster = aCluster().node('a')
    cluster.pod('other', { schedulerName: 'mine' }).pod('gated', { schedulingGates: [{ name: 'x' }] })
    await cluster.settle(60_000)
    assert.equal(cluster.nodeOf('other'), undefined)
    assert.equal(cluster.get('gated')?.status?.conditions?.[0]?.reason, 'SchedulingGated')
    cluster.api.patch(kinds.pod, 'default', 'gated', { spec: { schedulingGates: null } })
    await cluster.settle()
    assert.equal(cluster.nodeOf('gated'), 'a')
  })

  it('counts taints, cordons and lack of room in the words of kubectl describe', async () => {
    const taints = [{ key: 'dedicated', value: 'gpu', effect: 'NoSchedule' as const }]
    const cluster = aCluster()
      .node('full1', { allocatable: { cpu: '1' } })
      .node('full2', { allocatable: { cpu: '1' } })
      .node('t1', { taints })
      .node('t2', { taints })
      .node('cordoned', { unschedulable: true })
      .pod('p', { requests: { cpu: '2' } })
    await cluster.settle()
    assert.equal(
      cluster.reason('p'),
      '0/5 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu, ' +
        '2 node(s) had untolerated taint {dedicated: gpu}. ' +
        'preemption: 0/5 nodes are available: 5 Preemption is not helpful for scheduling.',
    )
  })

  it('honours tolerations: Exists, Equal, any key, one effect', async () => {
    const cluster = aCluster()
      .node('a', { taints: [{ key: 'k', value: 'v', effect: 'NoExecute' }] })
      .pod('exists', { tolerations: [{ key: 'k', operator: 'Exists' }] })
      .pod('equal', { tolerations: [{ key: 'k', operator: 'Equal', value: 'v' }] })
      .pod('all', { tolerations: [{ operator: 'Exists' }] })
      .pod('value', { tolerations: [{ key: 'k', operator: 'Equal', value: 'w' }] })
      .pod('effect', { tolerations: [{ key: 'k', operator: 'Exists', effect: 'NoSchedule' }] })
    await cluster.settle()
    const bound = ['exists', 'equal', 'all', 'value', 'effect'].filter((one) => cluster.nodeOf(one))
    assert.deepEqual(bound, ['exists', 'equal', 'all'])
  })

  it('lets a pod that tolerates the unschedulable taint onto a cordoned node', async () => {
    const key = 'node.kubernetes.io/unschedulable'
    const cluster = aCluster().node('a', { unschedulable: true })
    cluster.pod('p', { tolerations: [{ key, operator: 'Exists' }] })
    await cluster.settle()
    assert.equal(cluster.nodeOf('p'), 'a')
  })

  it('evaluates every node affinity operator', async () => {
    const cluster = aCluster().node('a', { labels: { arch: 'arm', cores: '8' } })
    const terms: Record<string, [string, NodeSelectorTerm]> = {
      in: ['a', { matchExpressions: [{ key: 'arch', operator: 'In', values: ['arm'] }] }],
      notin: ['', { matchExpressions: [{ key: 'arch', operator: 'NotIn', values: ['arm'] }] }],
      'notin-absent': ['a', { matchExpressions: [{ key: 'x', operator: 'NotIn', values: ['arm'] }] }],
      exists: ['a', { matchExpressions: [{ key: 'arch', operator: 'Exists' }] }],
      absent: ['', { matchExpressions: [{ key: 'arch', operator: 'DoesNotExist' }] }],
      gt: ['a', { matchExpressions: [{ key: 'cores', operator: 'Gt', values: ['7'] }] }],
      'gt-equal': ['', { matchExpressions: [{ key: 'cores', operator: 'Gt', values: ['8'] }] }],
      lt: ['a', { matchExpressions: [{ key: 'cores', operator: 'Lt', values: ['9'] }] }],
      'lt-text': ['', { matchExpressions: [{ key: 'arch', operator: 'Lt', values: ['9'] }] }],
      field: ['a', { matchFields: [{ key: 'metadata.name', operator: 'In', values: ['a'] }] }],
      'field-other': ['', { matchFields: [{ key: 'metadata.name', operator: 'In', values: ['b'] }] }],
      empty: ['', {}],
    }
    for (const [name, [, term]] of Object.entries(terms)) cluster.pod(name, requires(term))
    await cluster.settle()
    const seen = Object.keys(terms).map((name) => [name, cluster.nodeOf(name) ?? ''])
    assert.deepEqual(
      seen,
      Object.entries(terms).map(([name, [node]]) => [name, node]),
    )
  })

  it('takes any of several terms, and all of a term, together with the node selector', async () => {
    const cluster = aCluster()
      .node('a', { labels: { x: '1', y: '1' } })
      .node('b', { labels: { x: '1', y: '2' } })
    const y = (value: string): NodeSelectorTerm => ({
      matchExpressions: [
        { key: 'x', operator: 'Exists' },
        { key: 'y', operator: 'In', values: [value] },
      ],
    })
    cluster.pod('p', { nodeSelector: { [hostKey]: 'b' }, ...requires(y('3'), y('2')) })
    await cluster.settle()
    assert.equal(cluster.nodeOf('p'), 'b')
  })

  it('names the mismatch on all nodes when a pod names a missing node', async () => {
    const cluster = aCluster().node('a').node('b')
    cluster.pod('p', requires({ matchFields: [{ key: 'metadata.name', operator: 'In', values: ['c'] }] }))
    await cluster.settle()
    assert.match(
      cluster.reason('p') ?? '',
      /^0\/2 nodes are available: 2 node\(s\) didn't match Pod's node affinity\/selector\./,
    )
  })

  it('sums containers, sidecars, init containers and overhead exactly', async () => {
    const cpu = (name: string, amount: string, restartPolicy?: string) => ({
      name,
      resources: { requests: { cpu: amount } },
      ...(restartPolicy && { restartPolicy }),
    })
    const cluster = aCluster().node('a', { allocatable: { cpu: '1300m' } })
    // Running: 0.5 + 0.2 sidecar = 0.7; starting: 0.2 sidecar + 0.9 init = 1.1; overhead 0.2.
    const spec = {
      containers: [cpu('main', '0.5')],
      initContainers: [cpu('side', '200m', 'Always'), cpu('init', '900m')],
    }
    const runtime = (name: string, amount: string) =>
      cluster.create(runtimeClassKind, {
        metadata: { name },
        handler: 'vm',
        overhead: { podFixed: { cpu: amount } },
      })
    runtime('light', '200m')
    runtime('heavy', '200.1m')
    cluster.pod('fits', { ...spec, runtimeClassName: 'light' })
    await cluster.settle()
    assert.equal(cluster.nodeOf('fits'), 'a')
    cluster
      .pod('exceeds', { ...spec, runtimeClassName: 'heavy' })
      .node('b', { allocatable: { cpu: '1300m' } })
    await cluster.settle(2000)
    assert.match(cluster.reason('exceeds') ?? '', /2 Insufficient cpu/)
  })

  it('lets pod-level requests replace the sum of the containers', async () => {
    const cluster = aCluster().node('a', { allocatable: { cpu: '2' } })
    cluster.pod('p', { requests: { cpu: '1' }, resources: { requests: { cpu: '3' } } })
    await cluster.settle()
    assert.match(cluster.reason('p') ?? '', /1 Insufficient cpu/)
  })

  it('counts pods, memory and extended resources', async () => {
    const allocatable = { pods: '1', 'example.com/gpu': '1', memory: '1Gi' }
    const cluster = aCluster().node('a', { allocatable })
    cluster.pod('gpus', { requests: { 'example.com/gpu': '2', memory: '1.5Gi' } })
    await cluster.settle()
    assert.match(cluster.reason('gpus') ?? '', /: 1 Insufficient example.com\/gpu, 1 Insufficient memory\./)
    cluster.pod('one', { requests: { 'example.com/gpu': '1', memory: '1024Mi' } }).pod('two')
    await cluster.settle()
    assert.equal(cluster.nodeOf('one'), 'a')
    assert.match(cluster.reason('two') ?? '', /1 Too many pods/)
  })

  it('keeps host ports apart by port, protocol and address, where 0.0.0.0 is every address', async () => {
    const port = (hostPort: number, hostIP?: string, protocol?: 'UDP') => ({
      containers: [
        {
          name: 'main',
          ports: [{ containerPort: 80, hostPort, ...(hostIP && { hostIP }), ...(protocol && { protocol }) }],
        },
      ],
    })
    const cluster = aCluster().node('a')
    cluster.pod('first', port(80, '10.0.0.1'))
    await cluster.settle()
    cluster
      .pod('udp', port(80, '10.0.0.1', 'UDP'))
      .pod('address', port(80, '10.0.0.2'))
      .pod('any', port(80))
    cluster.pod('same', port(80, '10.0.0.1')).pod('other', port(81))
    await cluster.settle()
    const waiting = ['first', 'udp', 'address', 'any', 'same', 'other'].filter((one) => !cluster.nodeOf(one))
    assert.deepEqual(waiting, ['any', 'same'])
    assert.match(
      cluster.reason('any') ?? '',
      /1 node\(s\) didn't have free ports for the requested pod ports/,
    )
  })
})
