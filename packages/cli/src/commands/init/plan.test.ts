/** Plans for clusters of which little is known. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kinds, type Node, type Pod } from '@tenon/api'
import type { KubeClient } from '@tenon/kube'
import type { ProviderModule } from '@tenon/provider'
import { exoscale } from '@tenon/provider-exoscale/module'
import { kwok } from '@tenon/provider-kwok/module'
import { VirtualClock } from '@tenon/runtime'
import { autoscalerIn, type Deployment, deploymentKind } from '../../source/autoscalers.ts'
import { recognizedProvider } from '../../load-provider.ts'
import { builtInProviders } from '../../providers.ts'
import { manifestsOf } from './manifests.ts'
import { planOf } from './plan.ts'
import { seeCluster } from './see-cluster.ts'

const id = '0b12cb6b-7e3e-4c0e-9e10-1e5d8a7c4b2a'

function node(name: string, providerID: string, type: string, spec: Node['spec'] = {}): Node {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, labels: { 'node.kubernetes.io/instance-type': type } },
    spec: { providerID, ...spec },
  }
}

function pod(name: string, requests: Readonly<Record<string, string>>, nodeSelector = {}): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default' },
    spec: { nodeSelector, containers: [{ name: 'app', resources: { requests } }] },
    status: { phase: 'Pending' },
  }
}

interface Seen {
  readonly nodes?: readonly Node[]
  readonly pods?: readonly Pod[]
  readonly deployments?: readonly Deployment[]
}

/** What is written for a cluster that can only be read through its API. */
async function written(module: ProviderModule, { nodes = [], pods = [], deployments = [] }: Seen) {
  const lists: Readonly<Record<string, readonly unknown[]>> = {
    [kinds.pod.plural]: pods,
    [deploymentKind.plural]: deployments,
  }
  const kube: Pick<KubeClient, 'get' | 'list'> = {
    get: () => Promise.resolve(undefined),
    list: (type) => Promise.resolve([...(lists[type.plural] ?? [])] as never[]),
  }
  const surveyModule = await module.survey?.()
  assert.ok(surveyModule)
  const seen = await seeCluster(
    {
      kube,
      clock: new VirtualClock(),
      env: {},
      module,
      surveyModule,
      nodes,
      readText: () => Promise.reject(new Error('no file is named')),
    },
    new AbortController().signal,
  )
  const plan = planOf(seen)
  return { plan, text: manifestsOf(plan, 'https://api.example') }
}

test('EXP-25 without credentials nodes of a type are a group, and the missing setting is named', async () => {
  const { plan, text } = await written(exoscale, {
    nodes: [
      node('a', `exoscale://${id}`, 'standard.medium'),
      node('b', `exoscale://${id}`, 'standard.medium', {
        taints: [{ key: 'node.kubernetes.io/unreachable', effect: 'NoExecute' }],
      }),
      node('c', `exoscale://${id}`, 'gpua30.small', {
        taints: [{ key: 'nvidia.com/gpu', value: 'true', effect: 'NoSchedule' }],
      }),
    ],
  })
  assert.deepEqual(
    plan.pools.map(({ name, instanceTypes, taints, nodeClassName }) => [
      name,
      instanceTypes[0],
      taints.length,
      nodeClassName,
    ]),
    [
      ['standard-medium', 'standard.small', 0, 'default'],
      ['gpua30-small', 'gpua30.small', 1, 'gpua30-small'],
    ],
  )
  assert.match(text, /^# Nodepools and Instance Pools could not be read: EXOSCALE_ZONE is not set/m)
  assert.match(text, /variant: nvidia/)
})

test('EXP-25 KWOK nodes are recognized, and a NodePool has their types', async () => {
  const nodes = [node('a', 'kwok://a', 'c-4x-amd64-linux')]
  assert.equal(await recognizedProvider(builtInProviders, nodes), kwok)
  const { plan } = await written(kwok, { nodes })
  assert.deepEqual(plan.pools[0]?.instanceTypes, ['c-2x-amd64-linux', 'c-4x-amd64-linux', 'c-8x-amd64-linux'])
})

test('EXP-25 a cluster without groups gets a NodePool for its pending pods', async () => {
  const { plan } = await written(exoscale, { pods: [pod('web', { cpu: '3', memory: '2Gi' })] })
  assert.deepEqual(
    plan.pools.map(({ name }) => name),
    ['general'],
  )
  assert.ok((plan.pools[0]?.instanceTypes.length ?? 0) > 1)
})

test('EXP-25 a pod that nothing can hold is told, and a name that ends a comment stays within it', async () => {
  const { plan, text } = await written(exoscale, {
    nodes: [node('a', `exoscale://${id}`, 'standard.medium')],
    pods: [
      pod('huge', { cpu: '5000' }),
      pod('picky', { cpu: '1' }, { 'example.com/rack\nkind: Secret': 'a' }),
    ],
  })
  assert.match(plan.remarks.join('\n'), /pending pod default\/huge: no instance type holds its requests/)
  assert.match(plan.remarks.join('\n'), /pending pod default\/picky: it selects example\.com\/rack/)
  assert.doesNotMatch(text, /^kind: Secret/m)
})

test('flags of a Cluster Autoscaler are found in each form of command line', () => {
  const running = (container: object) =>
    autoscalerIn({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'ca', namespace: 'kube-system' },
      spec: { template: { spec: { containers: [{ name: 'ca', ...container }] } } },
    })
  const nodes = [{ min: 1, max: 5, name: 'a:b' }]
  for (const container of [
    { image: 'x/cluster-autoscaler-amd64:v1', args: ['--nodes=1:5:a:b'] },
    { image: 'x/ca', command: ['/cluster-autoscaler'], args: ['--nodes', '1:5:a:b'] },
    { image: 'x/tenon:v1', args: ['cluster-autoscaler', '-nodes=1:5:a:b', '--nodes=wrong'] },
  ]) {
    const found = running(container)
    assert.equal(found?.kind, 'clusterAutoscaler')
    assert.deepEqual(found.kind === 'clusterAutoscaler' && found.nodes, nodes)
  }
  assert.equal(running({ image: 'x/nginx', args: ['--nodes=1:5:a'] }), undefined)
  const tenon = running({ image: 'x/any', args: ['controller', '--provider', 'kwok'] })
  assert.equal(tenon?.kind === 'tenon' && tenon.provider, 'kwok')
})
