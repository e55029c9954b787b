import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type InstanceType, labels, type NodeClaim, type Requirement, type Taint } from '@tenon/api'
import { capacityAnnotations, instanceLabels } from '../names.ts'
import { clusterAPINodeClassKind } from '../node-class.ts'
import { aParticipant, type DeploymentParts, names } from '../testing/deployments.test-support.ts'
import { candidatesFor } from './candidates.ts'
import { instanceTypesOf } from './instance-types.ts'
import type { Participant } from './participant.ts'

const team = 'node.cluster.x-k8s.io/team'

interface Parts {
  readonly requirements?: readonly Requirement[]
  readonly requests?: Readonly<Record<string, string>>
  readonly own?: Readonly<Record<string, string>>
  readonly taints?: readonly Taint[]
}

function aClaim({
  requirements = [],
  requests = { cpu: '1' },
  own = {},
  taints = [],
}: Parts = {}): NodeClaim {
  const { group, kind } = clusterAPINodeClassKind
  return {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodeClaim',
    metadata: { name: 'one', labels: { [labels.nodePool]: 'default', ...own } },
    spec: { nodeClassRef: { group, kind, name: 'default' }, requirements, resources: { requests }, taints },
  }
}

const oneOf = (key: string, ...values: readonly string[]): Requirement => ({ key, operator: 'In', values })

/** A MachineDeployment of type `large` in zone `a` at a price of 1. */
function large(name: string, { nodeLabels, annotations, ...rest }: DeploymentParts = {}): Participant {
  return aParticipant({
    name,
    nodeLabels: { [labels.instanceType]: 'large', [labels.zone]: 'a', ...nodeLabels },
    annotations: { [names.price]: '1', ...annotations },
    ...rest,
  })
}

function tried(
  claim: NodeClaim,
  all: readonly Participant[],
  types: readonly InstanceType[] = instanceTypesOf(all),
): readonly string[] {
  return candidatesFor(claim, all, types).map(({ key }) => key.name)
}

test('CAP-25 the cheapest comes first, those of unknown price last, whatever their names', () => {
  const priced = (name: string, price: string) =>
    aParticipant({ name, annotations: { [names.price]: price } })
  assert.deepEqual(tried(aClaim(), [priced('a', ''), priced('B', '2'), priced('c', '0.5')]), ['c', 'B', 'a'])
})

test('of one offering the cheapest comes first, then the one with most room, then by namespace and name', () => {
  const bounded = (name: string, replicas: number) =>
    large(name, { annotations: { [names.maxSize]: '10' }, spec: { replicas } })
  const all = [
    bounded('nine', 9),
    large('unbounded-b'),
    large('unbounded-a'),
    large('unbounded-a', { namespace: 'another' }),
    bounded('two', 2),
    large('cheap', { annotations: { [names.price]: '0.9' }, spec: { replicas: 50 } }),
  ]
  const found = candidatesFor(aClaim(), all, instanceTypesOf(all)).map((each) => each.key)
  assert.deepEqual(
    found.map(({ namespace, name }) => `${namespace}/${name}`),
    [
      'default/cheap',
      'another/unbounded-a',
      'default/unbounded-a',
      'default/unbounded-b',
      'default/two',
      'default/nine',
    ],
  )
})

test('prices are those that decisions see, overlays included', () => {
  const all = [
    aParticipant({ name: 'a', annotations: { [names.price]: '1' } }),
    aParticipant({ name: 'b', annotations: { [names.price]: '2' } }),
  ]
  const overlaid = instanceTypesOf(all).map((type) => ({
    ...type,
    offerings: type.offerings.map((each) => ({ ...each, pricePerHour: type.name === 'a' ? 3 : 2 })),
  }))
  assert.deepEqual(tried(aClaim(), all, overlaid), ['b', 'a'])
})

test('what decisions hold out is left out, and types that they do not know', () => {
  const all = [
    large('a'),
    large('b', { nodeLabels: { [labels.zone]: 'b' } }),
    aParticipant({ name: 'other' }),
  ]
  const types = instanceTypesOf(all)
    .filter(({ name }) => name === 'large')
    .map((type) => ({
      ...type,
      offerings: type.offerings.map((each, i) => (i === 0 ? { ...each, available: false } : each)),
    }))
  assert.deepEqual(tried(aClaim(), all, types), ['b'])
})

test('CAP-22 what cannot grow now is left out, also if it could when it was decided', () => {
  const before = [large('a', { annotations: { [names.maxSize]: '3' } }), large('b')]
  const now = [large('a', { annotations: { [names.maxSize]: '3' }, spec: { replicas: 3 } }), large('b')]
  assert.deepEqual(tried(aClaim(), now, instanceTypesOf(before)), ['b'])
})

test('CAP-23 requests that do not fit leave nothing', () => {
  const all = [large('small'), large('big', { annotations: { [capacityAnnotations.cpu]: '8' } })]
  assert.deepEqual(tried(aClaim({ requests: { cpu: '6' } }), all), ['big'])
  assert.deepEqual(tried(aClaim({ requests: { cpu: '9' } }), all), [])
  assert.deepEqual(tried(aClaim({ requests: { cpu: '1', 'nvidia.com/gpu': '1' } }), all), [])
})

test('a resource that only a NodeOverlay knows of counts', () => {
  const all = [large('a')]
  const overlaid = instanceTypesOf(all).map((type) => ({
    ...type,
    capacity: { ...type.capacity, 'example.com/device': 2 },
    overlaid: { capacity: true },
  }))
  const requests = { cpu: '1', 'example.com/device': '2' }
  assert.deepEqual(tried(aClaim({ requests }), all, overlaid), ['a'])
  assert.deepEqual(tried(aClaim({ requests }), all), [])
})

test('CAP-24 a custom label keeps no claim away that does not ask for it', () => {
  const all = [large('with', { nodeLabels: { [team]: 'data' } }), large('without')]
  assert.deepEqual(tried(aClaim(), all, instanceTypesOf(all, new Set())), ['with', 'without'])
  const asking = aClaim({ requirements: [oneOf(team, 'web')], own: { [team]: 'web' } })
  assert.deepEqual(tried(asking, all), ['without'])
})

test('a value that the core chose for a custom label is heeded before prices, as the Node gets it', () => {
  const all = [
    large('data', { nodeLabels: { [team]: 'data' }, annotations: { [names.price]: '0.1' } }),
    large('web', { nodeLabels: { [team]: 'web' } }),
  ]
  const requirements = [oneOf(team, 'data', 'web')]
  assert.deepEqual(tried(aClaim({ requirements, own: { [team]: 'web' } }), all), ['web', 'data'])
})

test('CAP-26 a claim for zone west gets a Machine of the MachineDeployment there', () => {
  const all = ['east', 'west'].map((zone) => large(zone, { nodeLabels: { [labels.zone]: zone } }))
  assert.deepEqual(tried(aClaim({ requirements: [oneOf(labels.zone, 'west')] }), all), ['west'])
})

test('trap 18: a claim that asks for a zone gets none of a MachineDeployment without', () => {
  const all = [aParticipant({ nodeLabels: {} })]
  assert.deepEqual(tried(aClaim({ requirements: [oneOf(labels.zone, 'a')] }), all), [])
  assert.deepEqual(
    tried(aClaim({ requirements: [{ key: labels.zone, operator: 'NotIn', values: ['b'] }] }), all),
    ['md-0'],
  )
})

test('a well-known label that is asked for has to be there', () => {
  const all = [large('without'), large('with', { nodeLabels: { [instanceLabels.size]: 'big' } })]
  assert.deepEqual(tried(aClaim({ requirements: [{ key: instanceLabels.size, operator: 'Exists' }] }), all), [
    'with',
  ])
})

test('taints that the claim does not know of leave it out', () => {
  const all = [
    large('tainted', { annotations: { [capacityAnnotations.taints]: 'gpu=yes:NoSchedule' } }),
    large('plain'),
  ]
  assert.deepEqual(tried(aClaim(), all), ['plain'])
  const taints = [{ key: 'gpu', value: 'yes', effect: 'NoSchedule' }] as const
  assert.deepEqual(tried(aClaim({ taints }), all), ['plain', 'tainted'])
})

test('former names of labels in requirements are understood', () => {
  const requirements = [oneOf('failure-domain.beta.kubernetes.io/zone', 'b')]
  assert.deepEqual(tried(aClaim({ requirements }), [large('a')]), [])
})
