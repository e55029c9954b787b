import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type InstanceType, labels, type Offering, type Requirement } from '@tenon/api'
import { capacityAnnotations, instanceLabels } from '../names.ts'
import { aParticipant, type DeploymentParts, names } from '../testing/deployments.test-support.ts'
import { instanceTypesOf } from './instance-types.ts'

const gi = 1024 ** 3
const team = 'node.cluster.x-k8s.io/team'

/** MachineDeployments of type `large`. */
function large(zone: string, parts: DeploymentParts = {}) {
  const { nodeLabels, annotations, ...rest } = parts
  return aParticipant({
    name: `md-${zone}`,
    nodeLabels: { [labels.instanceType]: 'large', [labels.zone]: zone, ...nodeLabels },
    annotations: { [names.price]: '1', ...annotations },
    ...rest,
  })
}

function typeOf(...participants: Parameters<typeof instanceTypesOf>[0]): InstanceType {
  const [type, ...others] = instanceTypesOf(participants)
  assert.ok(type)
  assert.deepEqual(others, [])
  return type
}

/** `a,b`, `!` where the label must not be there, undefined where nothing is said. */
function said({ requirements }: Pick<Offering, 'requirements'>, key: string): string | undefined {
  const found = requirements.find((each) => each.key === key)
  return found && (found.operator === 'DoesNotExist' ? '!' : `${found.values?.join()}`)
}

const full = (max: string): DeploymentParts => ({
  annotations: { [names.maxSize]: max },
  spec: { replicas: Number(max) },
})

test('CAP-17 without a zone there is one offering, on demand, for which no zone will do', () => {
  const type = typeOf(aParticipant({ nodeLabels: {} }))
  assert.equal(type.offerings.length, 1)
  const [offering = assert.fail()] = type.offerings
  assert.deepEqual(offering.requirements, [
    { key: labels.zone, operator: 'DoesNotExist' },
    { key: labels.capacityType, operator: 'In', values: ['on-demand'] },
  ] satisfies readonly Requirement[])
  assert.equal(offering.available, true)
  assert.equal(offering.pricePerHour, undefined, 'a price that nobody tells is not known')
})

test('CAP-18 the zone of the label is that of the offering', () => {
  const type = typeOf(large('east'))
  assert.equal(said(type.offerings[0] ?? assert.fail(), labels.zone), 'east')
  assert.equal(said(type, labels.zone), 'east')
})

test('CAP-78 a well-known label that nodes will not have is ruled out, as no NodePool could give it to them', () => {
  const type = typeOf(large('a', { nodeLabels: { [instanceLabels.cpu]: '4' } }))
  assert.equal(said(type, instanceLabels.cpu), '4')
  assert.equal(said(type, instanceLabels.size), '!')
  assert.equal(said(type, labels.region), '!')
})

test('types come by name, whatever the order of the MachineDeployments', () => {
  const all = ['b', 'a', 'C'].map((name) => aParticipant({ name }))
  const sorted = instanceTypesOf(all)
  assert.deepEqual(
    sorted.map(({ name }) => name),
    ['C', 'a', 'b'],
  )
  assert.deepEqual(instanceTypesOf(all.toReversed()), sorted)
})

describe('MachineDeployments of one instance type', () => {
  test('CAP-86 are one type with an offering for each zone and capacity type', () => {
    const type = typeOf(
      large('b'),
      large('a', { name: 'spot', nodeLabels: { [labels.capacityType]: 'spot' } }),
      large('a'),
    )
    assert.equal(said(type, labels.zone), 'a,b')
    assert.equal(said(type, labels.capacityType), 'on-demand,spot')
    assert.deepEqual(
      type.offerings.map((each) => `${said(each, labels.zone)} ${said(each, labels.capacityType)}`),
      ['a on-demand', 'a spot', 'b on-demand'],
    )
  })

  test('that are alike are one offering, at the price of the cheapest that can grow', () => {
    const cheap = { name: 'cheap', annotations: { [names.price]: '0.5' } }
    const unpriced = { name: 'odd', annotations: { [names.price]: '' } }
    assert.equal(typeOf(large('a'), large('a', cheap), large('a', unpriced)).offerings[0]?.pricePerHour, 0.5)
    const usedUp = {
      ...full('3'),
      name: 'cheap',
      annotations: { [names.price]: '0.5', [names.maxSize]: '3' },
    }
    const [offering = assert.fail(), ...others] = typeOf(large('a'), large('a', usedUp)).offerings
    assert.deepEqual(others, [])
    assert.equal(offering.pricePerHour, 1)
    assert.equal(offering.available, true)
  })

  test('CAP-22 none of which can grow are an offering that is not available, with all reasons', () => {
    const group = ['1', '2', '3', '4', '5'].map((name) => large('a', { ...full('3'), name }))
    const [offering = assert.fail()] = typeOf(...group).offerings
    assert.equal(offering.available, false)
    assert.match(
      offering.unavailability?.because ?? '',
      /^MachineDeployment default\/1 has 3 of at most 3 .*, .*\/2 .*, .*\/3 .* and 2 more cannot grow either$/,
    )
  })

  test('that have different amounts keep them: the type has the smallest, offerings what they have beyond', () => {
    const gpus = { [capacityAnnotations.gpuCount]: '2', [capacityAnnotations.gpuType]: 'nvidia.com/gpu' }
    const type = typeOf(
      large('a'),
      large('a', { name: 'more', annotations: { [capacityAnnotations.cpu]: '8', ...gpus } }),
      large('b', { annotations: { [capacityAnnotations.memory]: '8Gi' } }),
    )
    assert.deepEqual(type.capacity, { cpu: 4000, memory: 8 * gi, pods: 110 })
    assert.deepEqual(
      type.offerings.map(({ capacityOverride }) => capacityOverride),
      [{ cpu: 8000, memory: 16 * gi, 'nvidia.com/gpu': 2 }, { memory: 16 * gi }, undefined],
    )
  })

  test('whose labels differ: offerings tell the values, the type all of them', () => {
    const type = typeOf(
      large('a', { nodeLabels: { [labels.arch]: 'arm64', [instanceLabels.family]: 'm' } }),
      large('b'),
    )
    assert.equal(said(type, labels.arch), 'amd64,arm64')
    assert.equal(said(type, instanceLabels.family), undefined)
    assert.deepEqual(
      type.offerings.map((each) => [said(each, labels.arch), said(each, instanceLabels.family)]),
      [
        ['arm64', 'm'],
        ['amd64', '!'],
      ],
    )
  })
})

test('CAP-24 a custom label is told to NodePools that name it; others may use the nodes all the same', () => {
  const all = [large('a', { nodeLabels: { [team]: 'data' } }), large('b')]
  const [silent] = instanceTypesOf(all, new Set())
  assert.ok(silent)
  assert.equal(said(silent, team), undefined)
  assert.deepEqual(
    silent.offerings.flatMap((each) => said(each, team) ?? []),
    [],
  )
  const [told] = instanceTypesOf(all, new Set([team]))
  assert.ok(told)
  assert.equal(said(told, team), undefined, 'the NodePool gives it to the nodes of the other')
  assert.deepEqual(
    told.offerings.map((each) => said(each, team)),
    ['data', undefined],
  )
})

test('nobody can change a type', () => {
  const type = typeOf(large('a'))
  assert.throws(() => Object.assign(type.capacity, { cpu: 1 }), TypeError)
})
