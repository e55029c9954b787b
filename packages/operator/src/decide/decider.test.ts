import assert from 'node:assert/strict'
import { test } from 'node:test'
import { schedule, type SchedulingInput, type SchedulingResult } from '@tenon/engine'
import { SeededRandom, VirtualClock } from '@tenon/runtime'
import { Metrics } from '../metrics/metrics.ts'
import { PassDecider } from './decider.ts'
import { nothingDecided } from './inline-scheduler.ts'
import { aNode, anInput, aPod, aPool } from './inputs.test-support.ts'

const pod = aPod('p', '1')
const node = aNode('node')
const pool = aPool('default')
const other = aPod('other', '100m')

/** As it is gathered: lists are new each time, and objects of the cluster are the same as long as nothing changes. */
const input = (changes: Partial<SchedulingInput> = {}): SchedulingInput => ({
  ...anInput([pod]),
  nodes: [node],
  pools: [{ ...pool, usage: { cpu: 4000 } }],
  planned: new Map([['p', 'node']]),
  origins: new Map([['p', 'pending']]),
  volumes: new Map([['p', { alternatives: [], claims: {} }]]),
  ...changes,
})

/** What is asked of the decider behind. */
function asking(answer: (asked: SchedulingInput) => SchedulingResult = nothingChanges) {
  const asked: SchedulingInput[] = []
  const clock = new VirtualClock()
  const decision = new PassDecider(
    {
      decide: (each) => {
        asked.push(each)
        return Promise.resolve(answer(each))
      },
    },
    1000,
    { clock, metrics: new Metrics({ clock }), random: new SeededRandom(1) },
  )
  const { signal } = new AbortController()
  return { asked, decide: (each: SchedulingInput) => decision.decide(each, signal) }
}

const nothingChanges = (asked: SchedulingInput): SchedulingResult => ({
  ...nothingDecided(asked),
  undecided: [],
  placements: [{ pod, node: 'node' }],
})

test('nothing is decided again as long as all that it depends on is as it was', async () => {
  const { asked, decide } = asking()
  const first = await decide(input())
  assert.equal(await decide(input()), first)
  assert.equal(await decide(input()), first)
  assert.equal(asked.length, 1)
})

const changes: Readonly<Record<string, Partial<SchedulingInput>>> = {
  'one more pod': { pods: [pod, other] },
  'the pod as another object': { pods: [{ ...pod }] },
  'another pod': { pods: [{ ...pod, spec: { ...pod.spec, priority: 1 } }] },
  'one node less': { nodes: [] },
  'less room': { nodes: [{ ...node, available: { ...node.available, cpu: 1000 } }] },
  'more of the limits in use': { pools: [{ ...pool, usage: { cpu: 8000 } }] },
  'a type less': { pools: [{ ...pool, usage: { cpu: 4000 }, instanceTypes: pool.instanceTypes.slice(1) }] },
  'a pod elsewhere': { topology: { ...anInput([]).topology, pods: [other] } },
  'another plan': { planned: new Map([['p', 'other']]) },
  'another origin': { origins: new Map([['p', 'deleting']]) },
  'other volumes': { volumes: new Map([['p', { alternatives: [], claims: { csi: ['a'] } }]]) },
  'another policy': { policy: { ...anInput([]).policy, preferences: 'Ignore' } },
  'a label that counts': {
    policy: { ...anInput([]).policy, wellKnownLabels: new Set(['a']) },
  },
  'an offering on trial': {
    offeringsOnTrial: [{ instanceType: 'a', zone: 'b', capacityType: 'on-demand' }],
  },
}

for (const [what, change] of Object.entries(changes))
  test(`it is decided anew: ${what}`, async () => {
    const { asked, decide } = asking()
    await decide(input())
    await decide(input(change))
    await decide(input(change))
    assert.equal(asked.length, 2)
    await decide(input())
    assert.equal(asked.length, 3)
  })

const unfinished: Readonly<Record<string, Partial<SchedulingResult>>> = {
  'launches something': { claims: schedule(anInput([other])).claims },
  'has not come to an end': { undecided: [pod] },
  'fails for a pod': { failures: [{ pod, reason: { kind: 'undecidable', problem: 'cannot read this' } }] },
}

for (const [what, result] of Object.entries(unfinished))
  test(`a decision that ${what} is made again`, async () => {
    const { asked, decide } = asking((each) => ({ ...nothingChanges(each), ...result }))
    await decide(input())
    await decide(input())
    assert.equal(asked.length, 2)
  })

test('what is one by one the same object is as it was; thousands of others are not compared', async () => {
  const { asked, decide } = asking()
  const many = (each: typeof node) =>
    Array.from({ length: 5000 }, (_, index) => ({
      ...each,
      name: `node-${index}`,
      labels: { ...each.labels },
    }))
  const nodes = many(node)
  const topology = { ...anInput([]).topology, pods: Array.from({ length: 100_000 }, () => other) }
  await decide(input({ nodes, topology }))
  await decide(input({ nodes: [...nodes], topology: { ...topology, pods: [...topology.pods] } }))
  assert.equal(asked.length, 1)
  await decide(input({ nodes: many(node), topology }))
  assert.equal(asked.length, 2)
})
