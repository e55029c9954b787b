import assert from 'node:assert/strict'
import { test } from 'node:test'
import { aPod, podsPath, TestServer } from '../api-server.test-support.ts'

const classesPath = '/apis/node.k8s.io/v1/runtimeclasses'

test('a pod gets the overhead and the nodes of its RuntimeClass', async () => {
  const server = new TestServer()
  await server.call('POST', classesPath, {
    apiVersion: 'node.k8s.io/v1',
    kind: 'RuntimeClass',
    metadata: { name: 'micro-vm' },
    handler: 'vm',
    overhead: { podFixed: { cpu: '250m', memory: '120Mi' } },
    scheduling: { nodeSelector: { vm: 'yes' }, tolerations: [{ key: 'vm', operator: 'Exists' }] },
  })
  const wanted = aPod('sandboxed')
  const spec = { ...wanted.spec, runtimeClassName: 'micro-vm', nodeSelector: { disk: 'ssd' } }
  const { status, body } = await server.call('POST', podsPath, { ...wanted, spec })
  assert.equal(status, 201, body.message)
  assert.deepEqual(body.spec.overhead, { cpu: '250m', memory: '120Mi' })
  assert.deepEqual(body.spec.nodeSelector, { disk: 'ssd', vm: 'yes' })
  assert.ok(body.spec.tolerations.some(({ key }: { key: string }) => key === 'vm'))
  const torn = await server.call('POST', podsPath, {
    ...aPod('torn'),
    spec: { ...spec, nodeSelector: { vm: 'no' } },
  })
  assert.match(
    torn.body.message,
    /conflict: runtimeClass.scheduling.nodeSelector\[vm\] = yes; pod.spec.nodeSelector\[vm\] = no/,
  )
  const missing = await server.call('POST', podsPath, {
    ...wanted,
    spec: { ...wanted.spec, runtimeClassName: 'x' },
  })
  assert.equal(
    missing.body.message,
    'pods "sandboxed" is forbidden: pod rejected: RuntimeClass "x" not found',
  )
})
