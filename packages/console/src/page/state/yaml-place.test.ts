import assert from 'node:assert/strict'
import { test } from 'node:test'
import { placeIn } from './yaml-place.ts'

const manifest = `apiVersion: karpenter.sh/v1
spec:
  template:
    spec:
      requirements:
        - key: kubernetes.io/arch
          operator: In
      tai
  disruption:
    budgets:
    - nodes: 10%
      re
    con`

function at(part: string): ReturnType<typeof placeIn> {
  return placeIn(manifest, manifest.lastIndexOf(part) + part.length)
}

test('a place in a manifest is told by the fields around it', () => {
  assert.deepEqual(at('\n      tai'), { parent: 'spec.template.spec', typed: 'tai' })
  assert.deepEqual(at('operator: '), {
    parent: 'spec.template.spec.requirements[]',
    key: 'operator',
    typed: '',
  })
  assert.deepEqual(at('- key'), { parent: 'spec.template.spec.requirements[]', typed: 'key' })
  assert.deepEqual(at('\n      re'), { parent: 'spec.disruption.budgets[]', typed: 're' })
  assert.deepEqual(at('\n    con'), { parent: 'spec.disruption', typed: 'con' })
  assert.deepEqual(placeIn('ap', 2), { parent: '', typed: 'ap' })
})
