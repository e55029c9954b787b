import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { labels, type Pod, type PodSpec } from '@tenon/api'
import {
  aCluster,
  aFullNode,
  anAppPod,
  anInput,
  aPoolInput,
  aPool,
  aType,
  boundTo,
  requiringPods,
  spreading,
} from '../testing/builders.test-support.ts'
import { schedule } from './schedule.ts'

const zones = ['zone-1', 'zone-2', 'zone-3']
const pools = [aPoolInput(aPool(), [aType('large', 16, 64, zones)])]

/** Zones that rules leave to a pod while pods of `app` run in each of `taken`. */
function zonesFor(pod: Pod, app: string, ...taken: readonly string[]): readonly string[] | undefined {
  const nodes = taken.map((zone, i) => aFullNode(`n-${i}`, zone))
  const topology = aCluster(
    nodes,
    nodes.map(({ name }) => boundTo(name, anAppPod(app))),
  )
  const { validZones } = schedule(anInput({ pods: [pod], pools, nodes, topology }))
  const found = validZones.get(pod)
  return found && [...found].toSorted()
}

const withSpec = (spec: Partial<PodSpec>) => anAppPod('web', spec)

describe('zones that rules about zones leave to a pod', () => {
  test('a spread leaves those that keep the skew', () => {
    const pod = withSpec(spreading(labels.zone, 'web'))
    assert.deepEqual(zonesFor(pod, 'web', 'zone-1', 'zone-2'), ['zone-3'])
    assert.deepEqual(zonesFor(pod, 'web', ...zones), zones)
  })

  test('an affinity leaves those with a match, an anti-affinity the others', () => {
    assert.deepEqual(zonesFor(withSpec(requiringPods('podAffinity', labels.zone, 'db')), 'db', 'zone-2'), [
      'zone-2',
    ])
    const apart = withSpec(requiringPods('podAntiAffinity', labels.zone, 'db'))
    assert.deepEqual(zonesFor(apart, 'db', 'zone-2'), ['zone-1', 'zone-3'])
  })

  test('rules that exclude each other leave none', () => {
    const spec = { ...spreading(labels.zone, 'web'), ...requiringPods('podAffinity', labels.zone, 'web') }
    assert.deepEqual(zonesFor(withSpec(spec), 'web', 'zone-1'), [])
  })

  test('a pod without such rules is not told of', () => {
    assert.equal(zonesFor(withSpec({}), 'web', 'zone-1'), undefined)
    assert.equal(zonesFor(withSpec(spreading(labels.hostname, 'web')), 'web', 'zone-1'), undefined)
  })
})
