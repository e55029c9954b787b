import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod } from '@tenon/api'
import { DisruptionWindows } from './disruption-windows.ts'

const noObjects = { onChange: () => () => undefined }
const now = Date.parse('2026-03-04T12:00:00Z')
const weekend: Pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web', annotations: { 'tenon.sh/disruption-windows': 'Sat-Sun 00:00-06:00' } },
  spec: { containers: [] },
}

test('WNT-29 a pod that was read anew has its windows before the caches show any', () => {
  const windows = new DisruptionWindows()
  windows.follow({ pods: noObjects, namespaces: noObjects })
  assert.equal(windows.of(weekend, now)?.isOpen, false)
})

test('windows that are not followed are those of no pod', () => {
  assert.equal(new DisruptionWindows().of(weekend, now), undefined)
})
