/** What the API server of the platform takes for a NodeGroup. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ResourceType } from '@tenon/api'
import { ApiError } from '@tenon/devcluster'
import { nodeGroupKind } from '@tenon/provider-clever-cloud'
import { CleverCloudFixture } from './clever-cloud.test-support.ts'
import { cleverCloudSimulator } from './clever-cloud.ts'

const crdKind: ResourceType = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  kind: 'CustomResourceDefinition',
  plural: 'customresourcedefinitions',
  namespaced: false,
}

const refusal = (act: () => unknown): string => {
  try {
    act()
  } catch (error) {
    assert.ok(error instanceof ApiError, String(error))
    return error.message
  }
  return 'taken'
}

test('a flavor that the platform has not is an unsupported value', async (t) => {
  const world = await CleverCloudFixture.start()
  t.after(() => world.stop())
  for (const flavor of ['m', '3XL', ''])
    assert.match(
      refusal(() => world.create('a', { flavor })),
      /spec\.flavor: Unsupported value: "[^"]*": supported values: "2XS", "XS", "S", "M", "L", "XL"/,
    )
})

test('labels of the platform and of Kubernetes are refused, and values that are no label values', async (t) => {
  const world = await CleverCloudFixture.start()
  t.after(() => world.stop())
  for (const prefix of ['kubernetes.io/', 'node.kubernetes.io/', 'clever-cloud.com/'])
    assert.match(
      refusal(() => world.create('a', { labels: { [`${prefix}a`]: 'b' } })),
      new RegExp(`labels must not begin with ${prefix}`),
    )
  for (const value of ['a b', '-a', 'a'.repeat(64)])
    assert.match(
      refusal(() => world.create('a', { labels: { team: value } })),
      /spec\.labels\.team/,
    )
  const odd = { 'topology.kubernetes.io/zone': 'par', 'not a key': '', team: '' }
  assert.equal(
    refusal(() => world.create('a', { labels: odd })),
    'taken',
    'keys are not checked',
  )
})

test('a group has from 0 to 16 nodes', async (t) => {
  const world = await CleverCloudFixture.start()
  t.after(() => world.stop())
  for (const nodeCount of [-1, 17])
    assert.match(
      refusal(() => world.create('a', { nodeCount })),
      /nodeCount/,
    )
  world.create('a', { nodeCount: 0 })
  world.create('b', { nodeCount: 16 })
})

test('groups go with their kind, and new ones are served when it is back', async (t) => {
  const world = await CleverCloudFixture.start()
  t.after(() => world.stop())
  world.create('a')
  await world.seconds(60)
  world.api.delete(crdKind, undefined, 'nodegroups.api.clever-cloud.com')
  await world.seconds(60)
  assert.deepEqual([world.nodes(), world.cloud.groups()], [[], []])
  assert.match(
    refusal(() => world.group('a')),
    /not find the requested resource/,
  )
  world.cloud.vanish('a')
  cleverCloudSimulator().prepare(world.api)
  world.create('a')
  await world.seconds(60)
  assert.equal(world.brief('a'), 'Synced Ready')
})

test('only the number of nodes can be changed', async (t) => {
  const world = await CleverCloudFixture.start()
  t.after(() => world.stop())
  const taints = [{ key: 'a', effect: 'NoExecute' }] as const
  world.create('plain')
  world.create('rich', { labels: { team: 'data' }, taints })
  const change = (name: string, spec: object) =>
    refusal(() => world.api.patch(nodeGroupKind, undefined, name, { spec }))
  assert.match(change('plain', { flavor: 'M' }), /flavor is immutable/)
  assert.match(change('plain', { labels: { team: 'data' } }), /labels is immutable/)
  assert.match(change('rich', { labels: { team: 'web' } }), /labels is immutable/)
  assert.match(change('rich', { labels: null }), /labels is immutable/)
  assert.match(change('rich', { taints: null }), /taints is immutable/)
  assert.match(change('plain', { taints }), /taints is immutable/)
  assert.equal(change('rich', { nodeCount: 2 }), 'taken')
})
