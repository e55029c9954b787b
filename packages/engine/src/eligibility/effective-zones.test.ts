import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { labels, type NodeSelectorRequirement, type Pod } from '@tenon/api'
import type { PodVolumes } from '../input/input.ts'
import { aPod } from '../testing/builders.test-support.ts'
import { effectiveZone } from './node-selection.ts'

const zoneIn = (...values: readonly string[]): NodeSelectorRequirement => ({
  key: labels.zone,
  operator: 'In',
  values,
})

function requiring(...terms: readonly (readonly NodeSelectorRequirement[])[]): Pod {
  const nodeSelectorTerms = terms.map((matchExpressions) => ({ matchExpressions }))
  return aPod(
    {},
    { affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } } },
  )
}

function stored(...alternatives: readonly (readonly NodeSelectorRequirement[])[]): PodVolumes {
  return { alternatives, claims: {} }
}

describe('the zone a pending pod can use', () => {
  test('a pod that asks for no zone is flexible', () => {
    assert.equal(effectiveZone(aPod(), undefined), 'flexible')
    assert.equal(effectiveZone(requiring([{ key: labels.zone, operator: 'Exists' }]), undefined), 'flexible')
  })

  test('one zone is told by name, several are flexible, no zone is none', () => {
    assert.equal(effectiveZone(requiring([zoneIn('zone-1')]), undefined), 'zone-1')
    assert.equal(effectiveZone(requiring([zoneIn('zone-1', 'zone-2')]), undefined), 'flexible')
    assert.equal(effectiveZone(requiring([zoneIn('zone-1'), zoneIn('zone-2')]), undefined), 'none')
  })

  test('terms of which any will do add up', () => {
    assert.equal(effectiveZone(requiring([zoneIn('zone-1')], [zoneIn('zone-2')]), undefined), 'flexible')
    assert.equal(effectiveZone(requiring([zoneIn('zone-1')], []), undefined), 'flexible')
  })

  test('volumes narrow the zones, any of their alternatives will do', () => {
    assert.equal(effectiveZone(aPod(), stored([zoneIn('zone-1')])), 'zone-1')
    assert.equal(effectiveZone(aPod(), stored([zoneIn('zone-1')], [zoneIn('zone-2')])), 'flexible')
    const pod = requiring([zoneIn('zone-2', 'zone-3')])
    assert.equal(effectiveZone(pod, stored([zoneIn('zone-1')], [zoneIn('zone-2')])), 'zone-2')
    assert.equal(effectiveZone(pod, stored([zoneIn('zone-1')])), 'none')
  })

  test('an alternative that does not list zones leaves them open', () => {
    const open: NodeSelectorRequirement = { key: labels.zone, operator: 'NotIn', values: ['zone-1'] }
    assert.equal(effectiveZone(requiring([zoneIn('zone-1')]), stored([open])), 'zone-1')
    assert.equal(effectiveZone(aPod(), stored([zoneIn('zone-1')], [])), 'flexible')
  })

  test('an exclusion of the pod counts against the zones of its volumes', () => {
    const pod = requiring([{ key: labels.zone, operator: 'NotIn', values: ['zone-1'] }])
    assert.equal(effectiveZone(pod, stored([zoneIn('zone-1')], [zoneIn('zone-2')])), 'zone-2')
  })

  test('zones that its topologies rule out do not count', () => {
    const pod = requiring([zoneIn('zone-1', 'zone-2')])
    assert.equal(effectiveZone(pod, undefined, new Set(['zone-2', 'zone-3'])), 'zone-2')
    assert.equal(effectiveZone(pod, undefined, new Set()), 'none')
  })
})
