import assert from 'node:assert/strict'
import { test } from 'node:test'
import { labels, noPrices } from '@tenon/api'
import { capacityAnnotations, instanceLabels, namesOf } from '../names.ts'
import { aDeployment, aParticipant, exclusionOf, names } from '../testing/deployments.test-support.ts'
import { defaultArchitecture, isPropagated, parseLabels } from './node-labels.ts'
import { readDeployment } from './read-deployment.ts'

const always = {
  [labels.arch]: 'amd64',
  [labels.os]: 'linux',
  [labels.capacityType]: 'on-demand',
  [labels.instanceType]: 'md-0',
}

test('CAP-11 without labels, nodes have those that Kubernetes and the core always know', () => {
  assert.deepEqual(aParticipant({ nodeLabels: {} }).labels, always)
})

test('CAP-12 CAP-13 labels of the template that Cluster API copies to Nodes are theirs, others are not', () => {
  const copied = {
    'node-restriction.kubernetes.io/a': '1',
    'some.node-restriction.kubernetes.io/b': '2',
    'node.cluster.x-k8s.io/c': '3',
    'some.node.cluster.x-k8s.io/d': '4',
    'node-role.kubernetes.io/worker': '',
    'node.cluster.x-k8s.io': 'workload-target',
  }
  const others = { 'my.special.label/x': '1', 'prefixed.node-role.kubernetes.io/x': '1', plain: '1' }
  const participant = aParticipant({
    nodeLabels: {},
    template: { metadata: { labels: { ...others, ...copied } } },
  })
  assert.deepEqual(participant.labels, { ...always, ...copied })
})

test('the group of Cluster API decides which labels are copied', () => {
  assert.ok(isPropagated('node.capi.example.com/a', namesOf('capi.example.com')))
  assert.ok(!isPropagated('node.cluster.x-k8s.io/a', namesOf('capi.example.com')))
})

test('CAP-14 labels of the annotation are those of nodes', () => {
  const participant = aParticipant({ nodeLabels: { [labels.zone]: 'east', [instanceLabels.size]: 'big' } })
  assert.deepEqual(participant.labels, {
    ...always,
    [labels.zone]: 'east',
    [instanceLabels.size]: 'big',
  })
  assert.equal(participant.zone, 'east')
})

test('CAP-15 the annotation wins over the template', () => {
  const key = 'node.cluster.x-k8s.io/team'
  const participant = aParticipant({
    nodeLabels: { [key]: 'annotated' },
    template: { metadata: { labels: { [key]: 'templated' } } },
  })
  assert.equal(participant.labels[key], 'annotated')
})

test('CAP-16 parts without = are ignored, only the first = divides, values may be empty, the last one is used', () => {
  assert.deepEqual(Object.fromEntries(parseLabels('a=b=c,novalue,x=')), { a: 'b=c', x: '' })
  assert.deepEqual(Object.fromEntries(parseLabels('a=1,a=2')), { a: '2' })
  assert.deepEqual(Object.fromEntries(parseLabels('')), {})
})

test('CAP-16 labels that no Node can have are left out and told', () => {
  const participant = aParticipant({ annotations: { [capacityAnnotations.labels]: 'a=b=c, b=1,x=' } })
  assert.deepEqual(participant.labels, { ...always, x: '' })
  const [a = '', b = ''] = participant.warnings
  assert.match(a, /capacity\.cluster-autoscaler\.kubernetes\.io\/labels: label "a" is left out: value "b=c"/)
  assert.match(b, /label " b" is left out/)
})

test('labels that the core sets are not taken from a MachineDeployment', () => {
  const participant = aParticipant({
    nodeLabels: { [labels.nodePool]: 'other', [labels.registered]: 'true', [labels.hostname]: 'h' },
  })
  assert.deepEqual(participant.labels, always)
  assert.equal(participant.warnings.filter((text) => text.includes('Tenon sets it')).length, 3)
})

test('trap 3: membership in the template, or in the annotation, is no label of nodes', () => {
  const participant = aParticipant({
    nodeLabels: { [names.member]: '' },
    template: { metadata: { labels: { [names.member]: '' } } },
  })
  assert.deepEqual(participant.labels, always)
})

test('CAP-19 without a label for it, the instance type is called after its MachineDeployment, and that is told', () => {
  const participant = aParticipant({ name: 'workers', nodeLabels: {} })
  assert.equal(participant.typeName, 'workers')
  assert.equal(participant.labels[labels.instanceType], 'workers')
  assert.match(participant.warnings.join(), /its instance type has its name/)
  const because = exclusionOf({ name: 'w'.repeat(64), nodeLabels: {} })
  assert.match(because, /no label node\.kubernetes\.io\/instance-type, and a name of more than 63 characters/)
})

test('CAP-82 the template tells architecture and operating system unless a label does', () => {
  const facts = { capacity: {}, architecture: 'arm64', operatingSystem: 'windows' }
  const told = aParticipant({}, { facts })
  assert.equal(told.labels[labels.arch], 'arm64')
  assert.equal(told.labels[labels.os], 'windows')
  const labelled = aParticipant({ nodeLabels: { [labels.arch]: 's390x' } }, { facts })
  assert.equal(labelled.labels[labels.arch], 's390x')
  assert.equal(aParticipant({}, { facts: { capacity: {} } }).labels[labels.arch], 'amd64')
})

test('the default architecture is one of four, amd64 for all else', () => {
  assert.equal(defaultArchitecture('arm64'), 'arm64')
  for (const text of [undefined, '', 'x86']) assert.equal(defaultArchitecture(text), 'amd64')
  const reading = readDeployment(aDeployment(), undefined, noPrices, names, 'ppc64le')
  assert.ok(reading.kind === 'participant')
  assert.equal(reading.participant.labels[labels.arch], 'ppc64le')
})

test('the failure domain of the template is the zone unless a label tells it', () => {
  const template = { spec: { failureDomain: 'zone-b' } }
  assert.equal(aParticipant({ nodeLabels: {}, template }).zone, 'zone-b')
  assert.equal(aParticipant({ nodeLabels: {}, template }).labels[labels.zone], 'zone-b')
  assert.equal(aParticipant({ template }).zone, 'zone-a')
  const odd = aParticipant({ nodeLabels: {}, template: { spec: { failureDomain: 'rack 1' } } })
  assert.equal(odd.zone, '')
  assert.match(odd.warnings.join(), /failureDomain "rack 1" cannot be the zone of a Node/)
})

test('former names of labels are understood, present ones win', () => {
  const zone = 'failure-domain.beta.kubernetes.io/zone'
  assert.equal(aParticipant({ nodeLabels: { [zone]: 'old' } }).zone, 'old')
  assert.equal(aParticipant({ nodeLabels: { [labels.zone]: 'new', [zone]: 'old' } }).zone, 'new')
})

test('the capacity type is on-demand or spot', () => {
  assert.equal(aParticipant({ nodeLabels: { [labels.capacityType]: 'spot' } }).capacityType, 'spot')
  for (const word of ['reserved', 'Spot'])
    assert.match(
      exclusionOf({ nodeLabels: { [labels.capacityType]: word } }),
      /karpenter\.sh\/capacity-type is "\w+"; write on-demand or spot/,
    )
})

test('names that every object answers to are labels like any other', () => {
  const participant = aParticipant({ nodeLabels: { constructor: '1', toString: '2' } })
  assert.deepEqual(participant.labels, { ...always, constructor: '1', toString: '2' })
})
