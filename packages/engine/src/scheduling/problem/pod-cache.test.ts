import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { labels, type Pod, type PodSpec } from '@tenon/api'
import * as fc from 'fast-check'
import { anInput, aPod, spreading, times } from '../../testing/builders.test-support.ts'
import { PodCache } from './spec-reading.ts'
import type { PodOrigin } from '../../input/input.ts'
import { problemOf } from './problem.ts'
import { knownSpecs } from './spec-reading.ts'

const hostile = (spec: unknown): Pod => ({ ...aPod(), spec: spec as PodSpec })

const changed = (pod: Pod, metadata: Partial<Pod['metadata']>): Pod => ({
  ...pod,
  metadata: { ...pod.metadata, ...metadata },
})

const resized: Pod['status'] = {
  containerStatuses: [{ name: 'app', resources: { requests: { cpu: '3' } } }],
}

/** Some alike, some with rules or a resize, some that nobody can read. */
const pods: readonly Pod[] = [
  ...times(6, () => aPod({ cpu: '1' })),
  ...times(3, () => aPod({ cpu: '2' })),
  changed(aPod(), { namespace: 'other' }),
  changed(aPod(), { labels: { app: 'a' } }),
  changed(aPod({ cpu: '1' }, spreading(labels.zone, 'a')), { labels: { app: 'a' } }),
  { ...aPod({ cpu: '1' }), status: resized },
  hostile({ containers: 'none' }),
  hostile({ containers: [null] }),
  hostile({ containers: [{ name: 'app', resources: { requests: JSON.parse('{"__proto__":"1"}') } }] }),
  hostile(null),
  { ...aPod(), status: JSON.parse('{"containerStatuses":"none"}') },
]

const origins: readonly PodOrigin[] = ['pending', 'candidate', 'deleting']
const lists = fc.array(
  fc.record({
    pods: fc.shuffledSubarray([...pods]),
    origin: fc.constantFrom(...origins),
  }),
  { maxLength: 12 },
)

describe('what is known of pods', () => {
  test('makes the problem that nothing known would make, whatever came before', () => {
    fc.assert(
      fc.property(lists, (all) => {
        const known = knownSpecs()
        for (const { pods: some, origin } of all) {
          const uids = some.map(({ metadata }) => metadata.uid ?? '')
          const input = anInput({ pods: some, origins: new Map(uids.map((uid) => [uid, origin])) })
          assert.deepEqual(problemOf(input, known), problemOf(input))
        }
      }),
      { numRuns: 300 },
    )
  })

  test('is read again only of what has come, where others have come or gone', () => {
    const read: string[] = []
    const known = new PodCache((pod) => {
      read.push(pod.metadata.name)
      return pod.metadata.name
    })
    const namesOf = (some: readonly Pod[]): readonly string[] => {
      const reading = known.reading()
      return some.map((pod) => reading(pod))
    }
    const many = times(2000, () => aPod())
    namesOf(many)
    read.length = 0
    const fresh = aPod()
    const next = [...many.slice(0, 700), fresh, ...many.slice(710, 1900)]
    assert.deepEqual(
      namesOf(next),
      next.map(({ metadata }) => metadata.name),
    )
    assert.deepEqual(read, [fresh.metadata.name])
  })
})
