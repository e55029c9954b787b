import assert from 'node:assert/strict'
import { test } from 'node:test'
import { labels, type NodeOverlay, wellKnownLabels } from '@tenon/api'
import { overlayProblems, renderOverlayProblems } from './validation.ts'

const policy = { wellKnownLabels: new Set(wellKnownLabels), restrictedDomains: ['karpenter.kwok.sh'] }

function problems(spec: Partial<NodeOverlay['spec']>): readonly string[] {
  const overlay: NodeOverlay = {
    apiVersion: 'karpenter.sh/v1alpha1',
    kind: 'NodeOverlay',
    metadata: { name: 'a' },
    spec: { requirements: [], ...spec },
  }
  return overlayProblems(overlay, policy).map((problem) => renderOverlayProblems([problem]))
}

test('every problem is named with its place and what would fix it', () => {
  assert.deepEqual(
    problems({
      requirements: [
        { key: 'team', operator: 'NotIn', values: [] },
        { key: 'team', operator: 'In' },
        { key: 'karpenter.sh/x', operator: 'Exists' },
        { key: 'karpenter.kwok.sh/x', operator: 'Exists' },
        { key: 'size', operator: 'Gt', values: ['1', '2'] },
        { key: labels.capacityType, operator: 'In', values: ['bogus'] },
      ],
      price: '+1',
      priceAdjustment: '1',
      capacity: { pods: '1', memory: '1', 'ephemeral-storage': '1', 'example.com/x': 'many' },
    }),
    [
      'spec.requirements[0]: operator NotIn for label team needs at least one value',
      'spec.requirements[1]: operator In for label team needs at least one value',
      'spec.requirements[2]: label karpenter.sh/x is reserved; use another one',
      'spec.requirements[3]: label karpenter.kwok.sh/x is reserved; use another one',
      'spec.requirements[4]: operator Gt for label size needs a single integer of 0 or more',
      'spec.requirements[5]: label karpenter.sh/capacity-type never has the value bogus; use spot, on-demand, reserved',
      'spec.price: "+1" is not a number such as 0.25, at most 1000000000',
      'spec.priceAdjustment: "1" is not a signed number such as -0.1, or a percentage such as +10%',
      'spec.capacity["pods"]: the provider knows how much of it an instance has; remove it',
      'spec.capacity["memory"]: the provider knows how much of it an instance has; remove it',
      'spec.capacity["ephemeral-storage"]: the provider knows how much of it an instance has; remove it',
      'spec.capacity["example.com/x"]: "many" is not a quantity such as 2 or 4Gi',
    ],
  )
})

test('what the schema lets through and can be used is no problem', () => {
  assert.deepEqual(
    problems({
      requirements: [
        { key: labels.nodePool, operator: 'In', values: ['default'] },
        { key: labels.capacityType, operator: 'In', values: ['spot', 'bogus'] },
        { key: 'failure-domain.beta.kubernetes.io/zone', operator: 'NotIn', values: ['zone-1'] },
        { key: 'size', operator: 'Lte', values: ['0'] },
        { key: 'team', operator: 'DoesNotExist' },
      ],
      price: '0.25',
      capacity: { 'hugepages-2Mi': '1Gi', 'example.com/fuse': '4' },
    }),
    [],
  )
  for (const priceAdjustment of ['+1', '-1.5', '+.5', '-.5', '+.5%', '-100%', '+298%'])
    assert.deepEqual(problems({ priceAdjustment }), [])
})
