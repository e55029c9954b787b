import assert from 'node:assert/strict'
import { test } from 'node:test'
import { oneChunk, VirtualClock } from '@tenon/runtime'
import { createMetrics } from './metrics.ts'
import { requestCounting } from './request-metrics.ts'

test('requests are counted by method and status, those without an answer too', async () => {
  const { registry } = createMetrics({ emitPerNodeGroup: false })
  const clock = new VirtualClock()
  const counted = requestCounting(registry, clock)
  const host = '10.96.0.1:443'
  const answering = counted(
    { send: () => Promise.resolve({ status: 409, headers: {}, body: oneChunk('') }) },
    host,
  )
  const silent = counted({ send: () => Promise.reject(new Error('refused')) }, host)
  const request = { method: 'PUT', path: '/', headers: {} }
  await answering.send(request)
  await answering.send(request)
  await assert.rejects(silent.send(request), /refused/)
  const text = await registry.metrics()
  assert.match(text, /rest_client_requests_total\{code="409",host="10\.96\.0\.1:443",method="PUT"\} 2/)
  assert.match(text, /rest_client_requests_total\{code="<error>",host="10\.96\.0\.1:443",method="PUT"\} 1/)
  assert.match(text, /rest_client_request_duration_seconds_count\{host="10\.96\.0\.1:443",verb="PUT"\} 3/)
})
