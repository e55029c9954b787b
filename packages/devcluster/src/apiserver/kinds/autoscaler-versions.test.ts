import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TestServer } from '../api-server.test-support.ts'

const path = (version: string) => `/apis/autoscaling/${version}/namespaces/default/horizontalpodautoscalers`
const scaleTargetRef = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' }

test('RPT-57 an autoscaler of either version is the same object in the other', async () => {
  const server = new TestServer()
  const old = await server.call('POST', path('v1'), {
    apiVersion: 'autoscaling/v1',
    kind: 'HorizontalPodAutoscaler',
    metadata: { name: 'web' },
    spec: { scaleTargetRef, maxReplicas: 5, targetCPUUtilizationPercentage: 70 },
  })
  assert.equal(old.status, 201, old.body.message)
  assert.equal(old.body.spec.targetCPUUtilizationPercentage, 70)
  const { body } = await server.call('GET', `${path('v2')}/web`)
  assert.deepEqual(body.spec.metrics, [
    { type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 70 } } },
  ])
  assert.equal(body.spec.targetCPUUtilizationPercentage, undefined)
  const memory = {
    type: 'Resource',
    resource: { name: 'memory', target: { type: 'AverageValue', averageValue: '1Gi' } },
  }
  const behavior = { scaleDown: { stabilizationWindowSeconds: 60 } }
  const patch = { spec: { metrics: [...body.spec.metrics, memory], behavior } }
  assert.equal((await server.merge(`${path('v2')}/web`, patch)).status, 200)
  const changed = await server.merge(`${path('v1')}/web`, { spec: { maxReplicas: 9 } })
  assert.equal(changed.status, 200, changed.body.message)
  const again = await server.call('GET', `${path('v2')}/web`)
  assert.equal(again.body.spec.maxReplicas, 9)
  assert.equal(again.body.spec.metrics.length, 2)
  assert.equal(again.body.spec.behavior.scaleDown.stabilizationWindowSeconds, 60)
})
