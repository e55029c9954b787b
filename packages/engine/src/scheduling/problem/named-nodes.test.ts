import assert from 'node:assert/strict'
import { test } from 'node:test'
import { labels, type NodeSelectorTerm, type Pod } from '@tenon/api'
import { schedule } from '../schedule.ts'
import {
  aCluster,
  aDaemon,
  anExpression,
  anInput,
  aNode,
  aPod,
  failureTexts,
  placedOn,
} from '../../testing/builders.test-support.ts'
import type { NodeInput } from '../../input/input.ts'

/** A term that names a node, or excludes it. */
const name = (operator: 'In' | 'NotIn', value: string): NodeSelectorTerm => ({
  matchFields: [{ key: 'metadata.name', operator, values: [value] }],
})

const zone = (value: string): NodeSelectorTerm => ({
  matchExpressions: [anExpression(labels.zone, 'In', value)],
})

function requiring(...nodeSelectorTerms: readonly NodeSelectorTerm[]): Pod {
  const required = { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } }
  return aPod({ cpu: '1' }, { affinity: { nodeAffinity: required } })
}

/** Where the pod goes: to a node by its name, to a new one, or nowhere. */
function placeOf(pod: Pod, nodes: readonly NodeInput[]): string {
  const result = schedule(anInput({ pods: [pod], nodes, topology: aCluster(nodes) }))
  return placedOn(result)[pod.metadata.name] ?? (result.claims.length > 0 ? 'new' : 'nowhere')
}

const a = aNode('a')
const b = aNode('b')

test('RPB-21 a node that is excluded by its name is not taken, and rules out no other and no new one', () => {
  const pod = requiring(name('NotIn', 'a'))
  assert.equal(placeOf(pod, [a, b]), 'b')
  assert.equal(placeOf(pod, [a]), 'new')
  assert.equal(placeOf(pod, []), 'new')
})

test('RPB-21 a node that is named is the only one, and no new one helps', () => {
  const pod = requiring(name('In', 'b'))
  assert.equal(placeOf(pod, [a, b]), 'b')
  assert.equal(placeOf(pod, [a]), 'nowhere')
  assert.match(
    Object.values(failureTexts(schedule(anInput({ pods: [pod], nodes: [a] })))).join(),
    /a host that exists, and a new node is another one/,
  )
})

test('RPB-21 of terms that are ORed each stands for itself', () => {
  assert.equal(placeOf(requiring(name('In', 'gone'), zone('zone-1')), [a]), 'a')
  assert.equal(placeOf(requiring(name('In', 'gone'), zone('zone-1')), []), 'new')
  assert.equal(placeOf(requiring(name('NotIn', 'a'), zone('zone-9')), [a]), 'new')
  assert.equal(placeOf(requiring(zone('zone-9'), name('In', 'a')), [a, b]), 'a')
})

test('RPB-21 expressions and names of one term hold together', () => {
  const inZone2 = aNode('c', { labels: { [labels.zone]: 'zone-2' } })
  const pod = requiring({ ...zone('zone-1'), ...name('NotIn', 'a') })
  assert.equal(placeOf(pod, [a, inZone2]), 'new')
  assert.equal(placeOf(pod, [a, inZone2, b]), 'b')
})

test('RPB-21 a node is known by its name, whatever its host is called', () => {
  const renamed = aNode('a', { labels: { [labels.hostname]: 'host-a' } })
  assert.equal(placeOf(requiring(name('In', 'a')), [renamed]), 'a')
  assert.equal(placeOf(requiring(name('NotIn', 'a')), [renamed]), 'new')
  assert.equal(placeOf(requiring(name('In', 'host-a')), [renamed]), 'nowhere')
})

test('RPB-21 a DaemonSet that names its nodes takes nothing of a new one, one that excludes some does', () => {
  const daemonOf = (operator: 'In' | 'NotIn') =>
    aDaemon({ cpu: '2' }, { affinity: requiring(name(operator, 'a')).spec.affinity ?? {} })
  const cheapest = (operator: 'In' | 'NotIn') =>
    schedule(anInput({ pods: [aPod({ cpu: '1' })], daemons: [daemonOf(operator)] })).claims[0]
      ?.instanceTypes[0]
  assert.equal(cheapest('In'), 'type-2')
  assert.equal(cheapest('NotIn'), 'type-4')
})
