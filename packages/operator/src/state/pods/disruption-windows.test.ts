import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Namespace, Pod } from '@tenon/api'
import { DisruptionWindows, type Sources } from './disruption-windows.ts'

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

test('WNT-29 windows of a namespace stay when a list lacks it, and go when it was deleted', () => {
  type Listener = Parameters<Sources['namespaces']['onChange']>[0]
  let notify: Listener = () => undefined
  const namespaces: Sources['namespaces'] = {
    onChange: (listener) => {
      notify = listener
      return () => undefined
    },
  }
  const windows = new DisruptionWindows()
  windows.follow({ pods: noObjects, namespaces })
  const { annotations = {} } = weekend.metadata
  const shop: Namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop', annotations } }
  const pod: Pod = { ...weekend, metadata: { name: 'web', namespace: 'shop' } }
  notify({ kind: 'added', object: shop })
  assert.equal(windows.of(pod, now)?.of, 'namespace')
  notify({ kind: 'deleted', object: shop })
  assert.equal(windows.of(pod, now)?.of, 'namespace')
  const leaving = { ...shop, metadata: { ...shop.metadata, deletionTimestamp: '2026-03-04T11:59:00Z' } }
  notify({ kind: 'deleted', object: leaving })
  assert.equal(windows.of(pod, now), undefined)
})
