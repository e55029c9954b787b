import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod } from '@tenon/api'
import { array, assert as check, constantFrom, integer, property, record } from 'fast-check'
import { ClusterIndex } from './cluster-index.ts'
import { podFacts } from '../pods/pod-facts.ts'
import { ResourceTable } from '../pods/resource-table.ts'
import { labelMatcher } from '../pods/selectors.ts'

const names = ['app', 'tier', 'constructor'] as const
const values = ['a', 'b', 'x=y'] as const

function pod(uid: string, labels: Record<string, string>): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: uid, uid, namespace: 'default', labels },
    spec: { containers: [] },
  }
}

test('whenever a question is asked first, its counts are those of the pods that are there', () => {
  const label = record({ name: constantFrom(...names), value: constantFrom(...values) })
  const step = record({
    verb: constantFrom('assign', 'assign', 'release', 'ask'),
    pod: integer({ min: 0, max: 5 }),
    node: integer({ min: 0, max: 2 }),
    labels: array(label, { maxLength: 2 }),
  })
  check(
    property(array(step, { maxLength: 60 }), (steps) => {
      const index = new ClusterIndex(new ResourceTable())
      const there = new Map<string, { readonly node: string; readonly labels: Record<string, string> }>()
      for (const { verb, pod: number, node, labels } of steps) {
        const uid = `p${number}`
        const own = Object.fromEntries(labels.map(({ name, value }) => [name, value]))
        if (verb === 'assign') {
          index.assign(podFacts(pod(uid, own), index.table), `n${node}`)
          there.set(uid, { node: `n${node}`, labels: own })
        } else if (verb === 'release') {
          index.release(uid)
          there.delete(uid)
        } else {
          const matcher = labelMatcher({ matchLabels: own })
          const matches = (facts: { readonly labels: Readonly<Record<string, string>> }) =>
            matcher.matches(facts.labels)
          const counts = index.counts({ key: matcher.key, pair: matcher.pair, matches })
          const expected = new Map<string, number>()
          for (const each of there.values()) {
            const isMeant = Object.entries(own).every(
              ([name, value]) => Object.hasOwn(each.labels, name) && each.labels[name] === value,
            )
            if (isMeant) expected.set(each.node, (expected.get(each.node) ?? 0) + 1)
          }
          assert.deepEqual(new Map([...counts].map(([entry, count]) => [entry.name, count])), expected)
        }
      }
    }),
    { numRuns: 1000 },
  )
})
