import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Pod, ResourceList } from '@tenon/api'
import type { Change } from '@tenon/kube'
import { ResizedPods } from './predictions.ts'

function aPod(requests: ResourceList | undefined, nodeName = 'node', uid = 'a'): Pod {
  const containers = [{ name: 'app', ...(requests && { resources: { requests } }) }, { name: 'side' }]
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name: uid, uid }, spec: { containers, nodeName } }
}

/** Follows pods by what the test tells of them. */
class Story {
  readonly resized = new ResizedPods()
  #tell: (change: Change<Pod>) => void = () => undefined

  constructor() {
    this.resized.follow({ onChange: (listener) => (this.#tell = listener) })
  }

  update(old: Pod, object: Pod): Pod {
    this.#tell({ kind: 'updated', old, object })
    return this.resized.remade(object)
  }

  delete(object: Pod): void {
    this.#tell({ kind: 'deleted', object })
  }
}

const requestsOf = ({ spec }: Pod) => spec.containers[0]?.resources?.requests

describe('pods that were resized in place', () => {
  test('ASK-29 count with the most of what they ask for now and asked for at first', () => {
    const story = new Story()
    const first = aPod({ cpu: '500m', memory: '1Gi' })
    const smaller = aPod({ cpu: '100m', memory: '2Gi' })
    assert.deepEqual(requestsOf(story.update(first, smaller)), { cpu: '500m', memory: '2Gi' })
    assert.deepEqual(requestsOf(smaller), { cpu: '100m', memory: '2Gi' }, 'the pod itself is as it is')
    const larger = aPod({ cpu: '3', memory: '1Gi' })
    assert.deepEqual(requestsOf(story.update(smaller, larger)), { cpu: '3', memory: '1Gi' })
    const again = aPod({ cpu: '200m' })
    assert.deepEqual(requestsOf(story.update(larger, again)), { cpu: '500m', memory: '1Gi' })
  })

  test('ASK-29 pods of one spec share what they are made again as', () => {
    const story = new Story()
    const smaller = aPod({ cpu: '100m' })
    story.update(aPod({ cpu: '1' }), smaller)
    assert.equal(story.resized.remade(smaller).spec, story.resized.remade(smaller).spec)
  })

  test('ASK-29 other pods, other changes, and pods that are gone mean nothing', () => {
    const story = new Story()
    const [first, smaller] = [aPod({ cpu: '1' }), aPod({ cpu: '100m' })]
    const labelled = { ...aPod({ cpu: '1' }), metadata: { ...first.metadata, labels: { a: 'b' } } }
    assert.equal(story.update(first, labelled), labelled)
    const waiting = aPod({ cpu: '100m' }, '')
    assert.equal(story.update(aPod({ cpu: '1' }, ''), waiting), waiting, 'it has no node yet')
    const misshapen: Pod = JSON.parse('{"metadata":{"uid":"b"},"spec":{"nodeName":"n","containers":7}}')
    assert.equal(story.update(misshapen, misshapen), misshapen)
    assert.equal(story.update(aPod(undefined), aPod(undefined)).spec.containers.length, 2)
    assert.deepEqual(requestsOf(story.update(first, smaller)), { cpu: '1' })
    const other = aPod({ cpu: '100m' }, 'node', 'c')
    assert.equal(story.resized.remade(other), other)
    story.delete(smaller)
    assert.equal(story.resized.remade(smaller), smaller)
  })
})
