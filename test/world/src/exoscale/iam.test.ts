/** The operations that docs/exoscale/iam.md asks for are those that the client can call: no more, no less. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { test } from 'node:test'
import { connectExoscale, ExoscaleClient } from '@tenon/provider-exoscale'
import { exoscaleOptions, World } from '../world.ts'

const page = readFileSync(resolve(import.meta.dirname, '../../../../docs/exoscale/iam.md'), 'utf8')
const id = '0b12cb6b-7e3e-4c0e-9e10-1e5d8a7c4b2a'

/** What a method is called with before its signal. */
function argumentsOf(method: string): readonly unknown[] {
  if (method.startsWith('list')) return []
  if (method === 'createInstance') {
    return [{ name: 'a', 'disk-size': 50, 'instance-type': { id }, template: { id } }]
  }
  if (method === 'updateInstance') return [id, {}]
  if (method === 'getActiveNodepoolTemplate') return ['1.34.1', 'standard']
  return method.startsWith('attach') ? [id, id] : [id]
}

/** Methods of the Cluster Autoscaler mode, whose roles are in examples/cluster-autoscaler/iam, and of `tenon init`. */
const ofNodeGroups: ReadonlySet<string> = new Set([
  'getInstancePool',
  'listInstancePools',
  'listSksClusters',
  'scaleInstancePool',
  'scaleSksNodepool',
  'evictInstancePoolMembers',
  'evictSksNodepoolMembers',
])

/** The operations that the cloud sees when every method of the client is called once. */
async function called(): Promise<readonly string[]> {
  const world = await World.start({ seed: 1, provider: 'exoscale' })
  const { cloud } = world.cluster
  const client = await connectExoscale({
    options: exoscaleOptions(),
    connect: () => ({ send: cloud.handle }),
    clock: world.clock,
  })
  const methods = Object.getOwnPropertyNames(ExoscaleClient.prototype).filter(
    (name) => name !== 'constructor' && name !== 'waitForOperation' && !ofNodeGroups.has(name),
  )
  for (const name of methods) {
    const method = Reflect.get(client, name) as (...args: readonly unknown[]) => Promise<unknown>
    await method.call(client, ...argumentsOf(name)).catch(() => undefined)
  }
  await world.stop()
  return [...new Set(cloud.calls().map(({ operation }) => operation))].toSorted()
}

test('the role of the IAM page allows every operation that is called, and no other', async () => {
  const operations = await called()
  const table = [...page.matchAll(/^\| `([a-z-]+)` \|/gm)].map(([, name = '']) => name)
  assert.deepEqual(table.toSorted(), operations)
  const expressions = [...page.matchAll(/operation in \[([^\]]+)\]/g)]
  assert.equal(expressions.length, 2)
  for (const [, list = ''] of expressions) assert.deepEqual(list.replaceAll("'", '').split(', '), table)
  const policy = /^```json\n([\s\S]*?)^```/m.exec(page)?.[1] ?? ''
  assert.equal((JSON.parse(policy) as Record<string, unknown>)['default-service-strategy'], 'deny')
})
