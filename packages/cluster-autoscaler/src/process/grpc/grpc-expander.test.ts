import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLogger } from '@tenon/runtime'
import type { ExpansionOption } from '../../scale-up/option.ts'
import { aNode, aPod } from '../../testing/objects.test-support.ts'
import { grpcExpander } from './grpc-expander.ts'

const { signal } = new AbortController()
const options: readonly ExpansionOption[] = ['pool-a', 'pool-b'].map((groupId) => ({
  groupId,
  nodeCount: 2,
  pods: [aPod('p', { cpu: '1' })],
  podsByNode: [],
  template: { node: aNode(`template-of-${groupId}`), pods: [] },
}))

/** `options` that have nothing but a `nodeGroupId`, as another library writes them. */
function answer(...ids: readonly string[]): Uint8Array {
  return Buffer.concat(
    ids.map((id) => {
      const text = Buffer.concat([Buffer.from([0x0a, id.length]), Buffer.from(id), Buffer.from([0x10, 0x03])])
      return Buffer.concat([Buffer.from([0x0a, text.length]), text])
    }),
  )
}

async function chosen(call: (message: Uint8Array) => Promise<Uint8Array>): Promise<readonly string[]> {
  const expander = grpcExpander({ call, logger: silentLogger })
  return (await expander(options, signal)).map(({ groupId }) => groupId)
}

test('the groups that the server names are kept', async () => {
  let asked = Buffer.alloc(0)
  const kept = await chosen((message) => {
    asked = Buffer.from(message)
    return Promise.resolve(answer('pool-b', 'another'))
  })
  assert.deepEqual(kept, ['pool-b'])
  // The first option: field 1, its length, then nodeGroupId and nodeCount.
  assert.equal(asked[0], 0x0a)
  assert.ok(
    asked.includes(Buffer.concat([Buffer.from([0x0a, 6]), Buffer.from('pool-a'), Buffer.from([0x10, 2])])),
  )
  assert.ok(asked.includes('template-of-pool-b'))
})

test('an error, an answer that is none, and other groups leave all; an empty answer leaves none', async () => {
  const all = ['pool-a', 'pool-b']
  assert.deepEqual(await chosen(() => Promise.reject(new Error('no route'))), all)
  assert.deepEqual(await chosen(() => Promise.resolve(Buffer.from([0x0a, 0x7f]))), all)
  assert.deepEqual(await chosen(() => Promise.resolve(Buffer.from([0xff]))), all)
  assert.deepEqual(await chosen(() => Promise.resolve(answer('another'))), all)
  assert.deepEqual(await chosen(() => Promise.resolve(new Uint8Array())), [])
})

test('the end of the process is no answer', async () => {
  const ending = new AbortController()
  const call = () => {
    ending.abort(new Error('the process ends'))
    return Promise.reject(new Error('cut off'))
  }
  const expander = grpcExpander({ call, logger: silentLogger })
  await assert.rejects(expander(options, ending.signal), /the process ends/)
})
