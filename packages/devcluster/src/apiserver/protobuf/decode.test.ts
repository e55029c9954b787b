import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeProtobuf } from './decode.ts'

/** A length-delimited field. */
function field(at: number, content: Uint8Array | string): Buffer {
  const bytes = Buffer.from(content)
  return Buffer.concat([Buffer.from([(at << 3) | 2, bytes.length]), bytes])
}

function number(at: number, value: number): Buffer {
  return Buffer.from([at << 3, value])
}

function encoded(apiVersion: string, kind: string, raw: Buffer): Uint8Array {
  const type = Buffer.concat([field(1, apiVersion), field(2, kind)])
  return Buffer.concat([Buffer.from('k8s\0'), field(1, type), field(2, raw)])
}

test('an object is decoded to the JSON it stands for', () => {
  const meta = Buffer.concat([
    field(1, 'web'),
    field(2, ''),
    field(8, ''),
    field(11, Buffer.concat([field(1, 'a'), field(2, 'b')])),
  ])
  const spec = Buffer.concat([number(1, 0), number(5, 0)])
  assert.deepEqual(
    decodeProtobuf(encoded('apps/v1', 'Deployment', Buffer.concat([field(1, meta), field(2, spec)]))),
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      // `replicas` is only sent when it is set, so its zero counts; that of `minReadySeconds` does not.
      metadata: { name: 'web', labels: { a: 'b' } },
      spec: { replicas: 0 },
    },
  )
})

test('fields of embedded structures, quantities, bytes and numbers or texts have their JSON forms', () => {
  const claim = field(2, field(2, field(2, field(1, '1Gi'))))
  const volume = Buffer.concat([field(1, 'v'), claim])
  const pod = decodeProtobuf(encoded('v1', 'Pod', field(2, field(1, volume))))
  assert.deepEqual(pod?.['spec'], { volumes: [{ name: 'v', emptyDir: { sizeLimit: '1Gi' } }] })
  const data = field(2, Buffer.concat([field(1, 'k'), field(2, 'v')]))
  assert.deepEqual(decodeProtobuf(encoded('v1', 'Secret', data))?.['data'], { k: 'dg==' })
  const budget = field(2, field(1, Buffer.concat([number(1, 1), field(3, '50%')])))
  const decoded = decodeProtobuf(encoded('policy/v1', 'PodDisruptionBudget', budget))
  assert.deepEqual(decoded?.['spec'], { minAvailable: '50%' })
})

test('what is not an object of a known kind is not decoded', () => {
  assert.equal(decodeProtobuf(Buffer.from('{}')), undefined)
  assert.equal(decodeProtobuf(encoded('example.com/v1', 'Thing', Buffer.alloc(0))), undefined)
  assert.equal(decodeProtobuf(encoded('v1', 'Pod', Buffer.from([0x0a, 0x7f, 0x01]))), undefined)
})
