import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { ConfigMap } from '@tenon/api'
import { PodReader } from '@tenon/filters'
import { SeededRandom } from '@tenon/runtime'
import { array, assert as check, integer, property, record } from 'fast-check'
import { defaultOptions, type ExpanderName } from '../options/options.ts'
import { aGroup } from '../testing/fake-groups.test-support.ts'
import { aNode, aPod, pods } from '../testing/objects.test-support.ts'
import { KeptEvents } from '../testing/sinks.test-support.ts'
import { balanced } from './balancing.ts'
import { expanderChain } from './expanders.ts'
import type { ExpansionOption } from './option.ts'
import { priorityExpander } from './priority-expander.ts'
import { areSimilar } from './similarity.ts'

const { signal } = new AbortController()
const reader = new PodReader()

function anOption(groupId: string, nodeCount: number, podCount: number, cpu = '1'): ExpansionOption {
  const template = { node: aNode(`t-${groupId}`), pods: [] }
  const placed = pods(groupId, podCount, { cpu })
  return { groupId, nodeCount, pods: placed, podsByNode: [placed], template }
}

function priorities(text: string | undefined): ConfigMap {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'cluster-autoscaler-priority-expander', namespace: 'kube-system' },
    ...(text !== undefined && { data: { priorities: text } }),
  }
}

async function chosen(
  names: readonly ExpanderName[],
  options: readonly ExpansionOption[],
  map?: ConfigMap,
): Promise<{ readonly ids: ReadonlySet<string>; readonly events: KeptEvents }> {
  const events = new KeptEvents()
  const ids = new Set<string>()
  // What is drawn among equals differs from seed to seed.
  for (let seed = 0; seed < 20; seed++) {
    const choose = expanderChain(names, {
      reader,
      random: new SeededRandom(seed),
      priority: priorityExpander({ configMap: () => map, events }),
      grpc: (all) => Promise.resolve(all),
    })
    const option = await choose(options, signal)
    if (option !== undefined) ids.add(option.groupId)
  }
  return { ids, events }
}

describe('expanders', () => {
  const options = [anOption('a', 2, 4), anOption('b', 1, 2), anOption('c', 3, 4)]

  test('most-pods, least-nodes and least-waste leave the best, random any', async () => {
    assert.deepEqual((await chosen(['most-pods'], options)).ids, new Set(['a', 'c']))
    assert.deepEqual((await chosen(['most-pods', 'least-nodes'], options)).ids, new Set(['a']))
    assert.deepEqual((await chosen(['least-nodes'], options)).ids, new Set(['b']))
    assert.deepEqual((await chosen(['least-waste'], options)).ids, new Set(['a', 'b']))
    assert.equal((await chosen(['random'], options)).ids.size, 3)
    assert.equal((await chosen(['least-waste'], [])).ids.size, 0)
  })

  test('CAS-57 priorities decide, and what they leave equal goes on to the next', async () => {
    const names: readonly ExpanderName[] = ['priority', 'least-waste']
    const missing = await chosen(names, options)
    assert.deepEqual([missing.ids, missing.events.told], [new Set(['a', 'b']), []])
    const tie = await chosen(names, options, priorities('10: ["^c$", "^b$"]\n5: [".*"]'))
    assert.deepEqual(tie.ids, new Set(['b']))
    const none = await chosen(names, options, priorities('10: ["zzz"]'))
    assert.deepEqual(none.ids, new Set(['a', 'b']))
    assert.ok(none.events.of('PriorityConfigMapNoGroupMatched').length > 0)
    assert.ok(none.events.of('PriorityConfigMapNotMatchedGroup').length > 0)
  })

  test('CAS-115 an option that two priorities match has the higher', async () => {
    const map = priorities('5: ["."]\n10: ["a"]\n7: ["[bc]"]')
    assert.deepEqual((await chosen(['priority'], options, map)).ids, new Set(['a']))
  })

  test('priorities that cannot be read filter nothing and say what is wrong', async () => {
    for (const text of [
      undefined,
      '',
      'a: b: c',
      '- x',
      'x: ["a"]',
      '1: a',
      '1: [2]',
      '1: ["("]',
      '1: ["(?=a)"]',
    ]) {
      const { ids, events } = await chosen(['priority'], options, priorities(text))
      assert.equal(ids.size, 3, text)
      assert.match(events.told[0] ?? '', /^PriorityConfigMapInvalid .*(priorit|key|YAML)/, text)
    }
  })

  test('CAS-57 a ConfigMap without the key is told in the words of Cluster Autoscaler', async () => {
    const { events } = await chosen(['priority'], options, priorities(undefined))
    assert.deepEqual(
      new Set(events.told),
      new Set([
        "PriorityConfigMapInvalid ConfigMap/cluster-autoscaler-priority-expander: Wrong configmap for priority expander, doesn't contain priorities key. Ignoring update.",
      ]),
    )
  })

  test('a priority below -1 never wins', async () => {
    const { ids } = await chosen(['priority'], options, priorities('-2: ["a"]\n-1: ["b"]'))
    assert.deepEqual(ids, new Set(['b']))
  })
})

describe('groups alike', () => {
  const { scaleUp } = defaultOptions
  const alike = (a: Parameters<typeof aNode>[1], b: Parameters<typeof aNode>[1], more = {}) =>
    areSimilar(
      { node: aNode('a', a), pods: [] },
      { node: aNode('b', b), pods: [] },
      { ...scaleUp, ...more },
      reader,
    )

  test('CAS-61 capacity must be equal, memory but for one and a half per cent', () => {
    assert.equal(alike({ memory: '10000Mi' }, { memory: '9900Mi' }), true)
    assert.equal(alike({ memory: '10000Mi' }, { memory: '9800Mi' }), false)
    assert.equal(alike({ cpu: '4' }, { cpu: '3999m' }), false)
    assert.equal(alike({ capacity: { 'a.com/x': '1' } }, {}), false)
    assert.equal(alike({ zone: 'a' }, { zone: 'b' }), true)
  })

  test('CAS-62 labels must be equal, those that are ignored or named aside', () => {
    const [a, b] = [{ labels: { pool: 'x', team: 't' } }, { labels: { pool: 'y', team: 't' } }]
    assert.equal(alike(a, b), false)
    assert.equal(alike(a, b, { balancingIgnoreLabels: ['pool'] }), true)
    assert.equal(alike({ ...a, cpu: '8' }, { ...b, cpu: '2' }, { balancingLabels: ['team'] }), true)
    assert.equal(alike(a, b, { balancingLabels: ['pool'] }), false)
    assert.equal(alike({}, {}, { balancingLabels: ['team'] }), false)
  })

  test('what is free on a new node counts', () => {
    const daemon = aPod('d', { cpu: '1' })
    const [bare, loaded] = [
      { node: aNode('a'), pods: [] },
      { node: aNode('b'), pods: [daemon] },
    ]
    assert.equal(areSimilar(bare, loaded, scaleUp, reader), false)
  })
})

test('CAS-59 sharing out levels the smallest first: as pouring water does', () => {
  const group = record({ target: integer({ min: 0, max: 12 }), room: integer({ min: 0, max: 12 }) })
  check(
    property(array(group, { minLength: 1, maxLength: 6 }), integer({ min: 0, max: 40 }), (list, count) => {
      const groups = list.map(({ target, room }, index) =>
        aGroup(`g${index}`, { targetSize: target, maxSize: target + room }),
      )
      const sizes = groups.map((each) => ({ ...each, size: each.targetSize }))
      for (const { group: each, newSize } of balanced(groups, count)) {
        const found = sizes.find(({ id }) => id === each.id)
        if (found !== undefined) found.size = newSize
      }
      const given = sizes.reduce((sum, each) => sum + each.size - each.targetSize, 0)
      const room = list.reduce((sum, each) => sum + each.room, 0)
      assert.equal(given, Math.min(count, room))
      for (const grown of sizes.filter(({ size, targetSize }) => size > targetSize)) {
        assert.ok(grown.size <= grown.maxSize)
        for (const other of sizes) if (other.size < other.maxSize) assert.ok(grown.size <= other.size + 1)
      }
    }),
  )
})
