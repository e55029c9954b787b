/** Cases that random clusters brought up, made small. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { NodeSelectorRequirement, Pod, PodSpec } from '@tenon/api'
import { schedule } from '../../scheduling/schedule.ts'
import type { SchedulingInput } from '../../input/input.ts'
import {
  aDaemonOf,
  anInput,
  aNode,
  aPod,
  aPool,
  aPoolInput,
  aType,
  strictPolicy,
} from '../builders.test-support.ts'
import { violationsOf } from './checker.test-support.ts'

const key = 'example.com/rack'

/** A pod whose one required node affinity term has these expressions. */
const wanting = (...matchExpressions: readonly NodeSelectorRequirement[]): Pod =>
  aPod(
    {},
    {
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchExpressions }] },
        },
      },
    },
  )

const judged = (input: SchedulingInput) => violationsOf(input, schedule(input))

describe('expressions on one label that together want it to be there', () => {
  const unmet = {
    'two values at once': wanting(
      { key, operator: 'In', values: ['a'] },
      { key, operator: 'In', values: ['b'] },
    ),
    'a value and none': wanting({ key, operator: 'In', values: ['a'] }, { key, operator: 'DoesNotExist' }),
    'any value but one': wanting({ key, operator: 'Exists' }, { key, operator: 'NotIn', values: ['a'] }),
    'a bound and an exception': wanting(
      { key, operator: 'Gt', values: ['1'] },
      { key, operator: 'NotIn', values: ['2'] },
    ),
  }
  for (const [name, pod] of Object.entries(unmet)) {
    test(`${name}: a node without the label is no place`, () => {
      assert.deepEqual(judged(anInput({ pods: [pod], pools: [], nodes: [aNode('n')] })), [])
    })

    test(`${name}: no node is launched where the pool does not know the label`, () => {
      assert.deepEqual(judged(anInput({ pods: [pod] })), [])
    })
  }
})

describe('a wish that contradicts a requirement', () => {
  // The requirement holds and the wish is moot; the pod is well formed.
  const wish = [
    { weight: 1, preference: { matchExpressions: [{ key, operator: 'NotIn' as const, values: ['a'] }] } },
  ]
  const term = { matchExpressions: [{ key, operator: 'In' as const, values: ['a'] }] }
  const pod = aPod(
    {},
    {
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [term] },
          preferredDuringSchedulingIgnoredDuringExecution: wish,
        },
      },
    },
  )

  test('does not let the pod onto a node without the label', () => {
    assert.deepEqual(judged(anInput({ pods: [pod], pools: [], nodes: [aNode('n')] })), [])
  })

  test('does not launch a node without the label', () => {
    assert.deepEqual(judged(anInput({ pods: [pod] })), [])
  })
})

describe('a daemon that cannot be read does not keep others out', () => {
  const broken: Readonly<Record<string, unknown>> = {
    'tolerations that are no list': { tolerations: 'garbage' },
    'a toleration that is null': { tolerations: [null] },
  }
  for (const [name, spec] of Object.entries(broken))
    test(name, () => {
      const daemon = aDaemonOf({ ...aPod().spec, ...(spec as Partial<PodSpec>) }, 'broken')
      const tainted = aPool('default', {}, { taints: [{ key: 'x', effect: 'NoSchedule' }] })
      const sound = aPod({ cpu: '1' }, { tolerations: [{ operator: 'Exists' }] })
      const result = schedule(anInput({ pods: [sound], daemons: [daemon], pools: [aPoolInput(tainted)] }))
      assert.ok(result.claims.some((claim) => claim.pods.includes(sound)))
    })
})

test('a plan that holds any placement costs little more than first fit', () => {
  const offered = (name: string, memoryGi: number, pricePerHour: number, more: Record<string, number>) => {
    const type = aType(name, 4, memoryGi)
    const offerings = type.offerings.map((each) => ({ ...each, pricePerHour }))
    return { ...type, offerings, capacity: { ...type.capacity, ...more } }
  }
  const types = [offered('small', 2, 0.36, { 'hugepages-2Mi': 2 ** 26 }), offered('large', 8, 1.28, {})]
  const pods = [
    aPod({ memory: '1Gi', 'hugepages-2Mi': '4Mi' }),
    ...[0, 1, 2, 3].map(() => aPod({ memory: '1Gi' })),
  ]
  const policy = { ...strictPolicy, improvement: 'free' as const }
  assert.deepEqual(judged(anInput({ pods, policy, pools: [aPoolInput(aPool(), types)] })), [])
})

test('lists of a decision come in the same order, whatever the order of the pods', () => {
  const pods = [aPod(), aPod(), aPod({ cpu: '64' }), aPod({ cpu: '65' })]
  const lists = (order: readonly Pod[]) => {
    const { placements, failures } = schedule(anInput({ pods: order, nodes: [aNode('n')] }))
    return [...placements, ...failures].map(({ pod }) => pod.metadata.name)
  }
  assert.deepEqual(lists(pods.toReversed()), lists(pods))
})

/** A pool with a taint, so that tolerations are looked at, takes the sound one of two pods. */
function othersArePlaced(spec: unknown): void {
  const tainted = aPool('default', {}, { taints: [{ key: 'x', effect: 'NoSchedule' }] })
  const bad = aPod({}, spec as Partial<PodSpec>)
  const sound = aPod({ cpu: '1' }, { tolerations: [{ operator: 'Exists' }] })
  const result = schedule(anInput({ pods: [bad, sound], pools: [aPoolInput(tainted)] }))
  assert.ok(result.claims.some((claim) => claim.pods.includes(sound)))
}

describe('a pod that cannot be read does not keep others out', () => {
  const broken: Readonly<Record<string, unknown>> = {
    'spread constraints that are no list': { topologySpreadConstraints: {} },
    'spread constraints with a null in them': { topologySpreadConstraints: [null] },
    'expressions that are no list': {
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchExpressions: {} }] },
        },
      },
    },
    'terms that are missing': {
      affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: {} } },
    },
    'an expression without a key': {
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: {
            nodeSelectorTerms: [{ matchExpressions: [{ operator: 'Exists' }] }],
          },
        },
      },
    },
    'an unknown operator': {
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: {
            nodeSelectorTerms: [{ matchExpressions: [{ key, operator: 'Near', values: ['a'] }] }],
          },
        },
      },
    },
    'a bound that is not a number': {
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: {
            nodeSelectorTerms: [{ matchExpressions: [{ key, operator: 'Gt', values: ['many'] }] }],
          },
        },
      },
    },
    'a quantity that is none': { containers: [{ name: 'c', resources: { requests: { cpu: 'lots' } } }] },
    'a quantity that is negative': { containers: [{ name: 'c', resources: { requests: { cpu: '-1' } } }] },
    'no containers': { containers: undefined },
    'ports that are no list': { containers: [{ name: 'c', ports: 80 }] },
    'affinity terms that are no list': {
      affinity: { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: 'x' } },
    },
    'an affinity term without a topology key': {
      affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{}] } },
    },
  }
  for (const [name, spec] of Object.entries(broken))
    test(name, () => {
      othersArePlaced(spec)
    })

  const unread: Readonly<Record<string, unknown>> = {
    'tolerations that are no list': { tolerations: 'garbage' },
    'a toleration that is null': { tolerations: [null] },
  }
  for (const [name, spec] of Object.entries(unread))
    test(name, () => {
      othersArePlaced(spec)
    })
})

describe('a NodePool that cannot be read does not keep others out', () => {
  const broken: Readonly<Record<string, unknown>> = {
    'requirements that are no list': { requirements: -1 },
    'a requirement that is null': { requirements: [null] },
    'an unknown operator': { requirements: [{ key, operator: 'Near', values: ['a'] }] },
    'no node class': { nodeClassRef: undefined },
  }
  const unread: Readonly<Record<string, unknown>> = {
    'taints that are no list': { taints: 'garbage' },
    'a taint that is missing': { taints: [undefined] },
  }
  const placesOthers = (spec: unknown) => () => {
    const pool = aPool('broken', { weight: 10 }, spec as object)
    const sound = aPod({ cpu: '1' })
    const result = schedule(anInput({ pods: [sound], pools: [aPoolInput(pool), aPoolInput()] }))
    assert.ok(result.claims.some((claim) => claim.pods.includes(sound)))
  }
  for (const [name, spec] of Object.entries(broken)) test(name, placesOthers(spec))
  for (const [name, spec] of Object.entries(unread)) test(name, placesOthers(spec))

  test('a key that is no string', () => {
    const pool = aPool('broken', {}, { requirements: [{ key: -1, operator: 'Exists' } as never] })
    const refused = wanting({ key: 'unheard-of', operator: 'Exists' })
    const sound = aPod({ cpu: '1' })
    const result = schedule(anInput({ pods: [refused, sound], pools: [aPoolInput(pool), aPoolInput()] }))
    assert.ok(result.claims.some((claim) => claim.pods.includes(sound)))
  })

  test('limits that are no quantities', () => {
    const pool = aPool('broken', { weight: 10, limits: { cpu: 'lots' } })
    const sound = aPod({ cpu: '1' })
    const result = schedule(anInput({ pods: [sound], pools: [aPoolInput(pool), aPoolInput()] }))
    assert.ok(result.claims.some((claim) => claim.pods.includes(sound)))
  })
})
