import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nodeFieldCases, nodeTermCases, tolerationCases } from '@tenon/api/scheduler-cases'
import { nodeAllowed, untolerated } from './node-matching.ts'

test('RPB-41 controllers decide as kube-scheduler about nodes', () => {
  for (const each of tolerationCases) {
    const left = untolerated([each.taint], [each.toleration], ['NoSchedule'])
    assert.equal(left.length === 0, each.isTolerated, JSON.stringify(each))
  }
  for (const each of [...nodeTermCases, ...nodeFieldCases]) {
    const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'node-1', labels: each.labels } }
    const affinity = {
      nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [each.term] } },
    }
    assert.equal(nodeAllowed({ containers: [], affinity }, node), each.isMet, JSON.stringify(each))
  }
})
