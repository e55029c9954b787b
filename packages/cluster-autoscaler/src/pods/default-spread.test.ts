import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SelectorLookups, TopologySpreadConstraint } from '@tenon/api'
import { FakeCluster } from '../testing/fake-cluster.test-support.ts'
import { aGroup } from '../testing/fake-groups.test-support.ts'
import { aNode, aPod, pods } from '../testing/objects.test-support.ts'
import { DefaultSpread } from './default-spread.ts'

const perHost: TopologySpreadConstraint = {
  maxSkew: 1,
  topologyKey: 'kubernetes.io/hostname',
  whenUnsatisfiable: 'DoNotSchedule',
}
/** Every ReplicaSet selects the pods that are called like it. */
const applications: SelectorLookups = {
  services: () => [],
  replicationController: () => undefined,
  statefulSet: () => undefined,
  replicaSet: (namespace, name) => ({
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    metadata: { name, namespace },
    spec: { selector: { matchLabels: { app: name } } },
  }),
}

/** Three small pods, which one node would hold. */
async function grown(defaultConstraints: readonly TopologySpreadConstraint[]): Promise<number | undefined> {
  const cluster = new FakeCluster({
    groups: [aGroup('g')],
    nodes: { g: [aNode('g0')] },
    pods: [aPod('keep', { cpu: '4', nodeName: 'g0', owner: 'keep' }), ...pods('web', 3, { cpu: '500m' })],
    options: { loop: { defaultConstraints } },
  })
  cluster.applications = applications
  await cluster.loop()
  return cluster.size('g')
}

test('pods that ask for no spread are spread as the scheduler would', async () => {
  assert.equal(await grown([]), 2)
  // The node that is full counts as a domain without any: one pod on each of the others, at most.
  assert.equal(await grown([{ ...perHost, maxSkew: 1 }]), 4)
  assert.equal(await grown([{ ...perHost, maxSkew: 3 }]), 2)
})

test('a pod is worked out once, and again when its application changes', () => {
  const spread = new DefaultSpread([perHost])
  const [pod = aPod('none')] = pods('web', 1)
  assert.equal(spread.read(pod, undefined), pod)
  const first = spread.read(pod, applications)
  assert.deepEqual(first.spec.topologySpreadConstraints?.length, 1)
  assert.equal(spread.read(pod, applications), first)
  const other = spread.read(pod, {
    ...applications,
    services: () => [
      { apiVersion: 'v1', kind: 'Service', metadata: { name: 's' }, spec: { selector: { app: 'web' } } },
    ],
  })
  assert.notEqual(other, first)
  const own = aPod('own', { owner: 'web', spec: { topologySpreadConstraints: [perHost] } })
  assert.equal(spread.read(own, applications), own)
})
