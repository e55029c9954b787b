import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { KubeObject, Node, Pod } from '@tenon/api'
import type { KubeClient } from '@tenon/kube'
import { aNode, aPod } from '../testing/objects.test-support.ts'
import { createUncachedReader } from './uncached-reader.ts'

const { signal } = new AbortController()

interface Scene {
  /** What lists answer. */
  readonly listed: readonly KubeObject[]
  /** What there is. */
  readonly present: readonly KubeObject[]
  readonly cached: { readonly nodes?: readonly Node[]; readonly pods?: readonly Pod[] }
}

function reader({ listed, present, cached }: Scene) {
  const asked: string[] = []
  const client: Pick<KubeClient, 'get' | 'list'> = {
    list: <T extends KubeObject>() => Promise.resolve([...listed] as T[]),
    get: <T extends KubeObject>(_: unknown, { name }: { readonly name: string }) => {
      asked.push(name)
      return Promise.resolve(present.find(({ metadata }) => metadata.name === name) as T | undefined)
    },
  }
  const cache = {
    controllerOf: () => undefined,
    nodes: () => cached.nodes ?? [],
    pods: () => cached.pods ?? [],
  }
  const relists: string[] = []
  return {
    asked,
    of: createUncachedReader(
      client,
      cache,
      () => undefined,
      () => relists.push('pods'),
    ),
    relists,
  }
}

const names = (objects: readonly KubeObject[]) => objects.map(({ metadata }) => metadata.name)

test('pods of a node that a list is too old to have are asked for', async () => {
  const [a, b, gone, elsewhere] = ['a', 'b', 'gone', 'elsewhere'].map((name) =>
    aPod(name, { nodeName: name === 'elsewhere' ? 'm' : 'n' }),
  ) as [Pod, Pod, Pod, Pod]
  const successor: Pod = { ...gone, metadata: { ...gone.metadata, uid: 'another' } }
  const scene = { listed: [a], present: [a, b, successor], cached: { pods: [a, b, gone, elsewhere] } }
  const { asked, of } = reader(scene)
  assert.deepEqual(names(await of.podsOf('n', signal)), ['a', 'b'])
  assert.deepEqual(asked, ['b', 'gone'], 'what the list has is not asked for, nor what is elsewhere')
})

test('a node that a list is too old to have is one all the same', async () => {
  const [a, b] = [aNode('a'), aNode('b')]
  const { of } = reader({ listed: [a], present: [a, b], cached: { nodes: [a, b, aNode('gone')] } })
  assert.deepEqual(names(await of.listNodes(signal)), ['a', 'b'])
})

test('RPB-42 pods that the cache lacks lead to another list of it', async () => {
  const [a, b] = [aPod('a', { nodeName: 'n' }), aPod('b', { nodeName: 'n' })]
  const behind = reader({ listed: [a, b], present: [a, b], cached: { pods: [a] } })
  assert.deepEqual(names(await behind.of.podsOf('n', signal)), ['a', 'b'])
  assert.deepEqual(behind.relists, ['pods'])
  const even = reader({ listed: [a], present: [a], cached: { pods: [a] } })
  await even.of.podsOf('n', signal)
  assert.deepEqual(even.relists, [])
})
