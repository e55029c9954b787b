import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Node, Pod, PodSpec } from '@tenon/api'
import { array, assert as check, constantFrom, integer, property, record } from 'fast-check'
import { PodReader, Snapshot } from './snapshot.ts'
import { VolumeIndex } from './volumes/volume-index.ts'

const hostname = 'kubernetes.io/hostname'
const zone = 'topology.kubernetes.io/zone'

function node(name: string, inZone: string, cpu = '4'): Node {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, labels: { [hostname]: name, [zone]: inZone } },
    status: { allocatable: { cpu, memory: '8Gi', pods: '20' } },
  }
}

function pod(name: string, cpu: string, spec: Partial<PodSpec> = {}): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, uid: name, namespace: 'default', labels: { app: 'a' } },
    spec: { containers: [{ name: 'main', image: 'x', resources: { requests: { cpu } } }], ...spec },
  }
}

const surroundings = () => ({
  reader: new PodReader(),
  volumes: new VolumeIndex(),
  namespaces: new Map([['default', {}]]),
})

const selector = { matchLabels: { app: 'a' } }
const kinds: readonly Partial<PodSpec>[] = [
  {},
  {
    topologySpreadConstraints: [
      { maxSkew: 1, topologyKey: zone, whenUnsatisfiable: 'DoNotSchedule', labelSelector: selector },
    ],
  },
  {
    affinity: {
      podAntiAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: hostname, labelSelector: selector }],
      },
    },
  },
  { containers: [{ name: 'main', image: 'x', ports: [{ containerPort: 80, hostPort: 80 }] }] },
]

test('a full node takes no more; one that is removed leaves room for nothing', () => {
  const snapshot = new Snapshot(surroundings())
  snapshot.setNode(node('n', 'a'))
  assert.equal(snapshot.find(pod('p', '3'))?.name, 'n')
  snapshot.assign(pod('p', '3'), 'n')
  assert.equal(snapshot.find(pod('q', '2')), undefined)
  snapshot.removeNode('n')
  assert.equal(snapshot.find(pod('q', '1')), undefined)
  assert.deepEqual(snapshot.nodes, [])
})

test('what is found begins after the node found last', () => {
  const snapshot = new Snapshot(surroundings())
  for (const name of ['a', 'b', 'c']) snapshot.setNode(node(name, 'z'))
  const found = [1, 2, 3, 4].map((each) => snapshot.find(pod(`p${each}`, '1'))?.name)
  assert.deepEqual(found, ['a', 'b', 'c', 'a'])
})

test('whatever was changed since a mark, what fits where is as before once it is taken back', () => {
  const probes = kinds.map((spec, index) => pod(`probe-${index}`, '1', spec))
  const change = record({
    verb: constantFrom('node', 'gone', 'assign', 'release'),
    node: integer({ min: 0, max: 5 }),
    pod: integer({ min: 0, max: 7 }),
    kind: integer({ min: 0, max: kinds.length - 1 }),
  })
  const changes = array(change, { maxLength: 40 })
  check(
    property(changes, changes, changes, (before, first, second) => {
      const snapshot = new Snapshot(surroundings())
      const apply = (list: typeof before) => {
        for (const each of list) {
          const name = `n${each.node}`
          const subject = pod(`p${each.pod}`, '1', kinds[each.kind])
          if (each.verb === 'node') snapshot.setNode(node(name, `z${each.node % 3}`, `${1 + each.kind}`))
          if (each.verb === 'gone') snapshot.removeNode(name)
          if (each.verb === 'assign') snapshot.assign(subject, name)
          if (each.verb === 'release') snapshot.release(subject)
        }
      }
      const seen = () =>
        [0, 1, 2, 3, 4, 5].map((index) => {
          const entry = snapshot.node(`n${index}`)
          return entry && probes.map((probe) => snapshot.check(probe, entry)?.filter)
        })
      apply(before)
      const [outer, stateBefore] = [snapshot.mark(), seen()]
      apply(first)
      const [inner, stateBetween] = [snapshot.mark(), seen()]
      apply(second)
      snapshot.revert(inner)
      assert.deepEqual(seen(), stateBetween)
      snapshot.revert(outer)
      assert.deepEqual(seen(), stateBefore)
    }),
  )
})
