import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Node, type NodeClaim, type Pod, unregisteredTaint } from '@tenon/api'
import { defaultSettings } from '../settings.ts'
import { ObservedCluster } from '../state/observed-cluster.test-support.ts'
import { RegistrationHold } from './registration-hold.ts'
import { PreferenceHold } from './preference-hold.ts'

const aClaim = (name: string, status: NodeClaim['status'] = {}): NodeClaim => ({
  apiVersion: 'karpenter.sh/v1',
  kind: 'NodeClaim',
  metadata: { name, uid: `uid-${name}` },
  spec: {
    requirements: [],
    nodeClassRef: { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'default' },
  },
  status,
})

/** A Node that is Ready and still closed. */
const aNode = (claim: string): Node => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: `node-${claim}` },
  spec: { providerID: `kwok://${claim}`, taints: [unregisteredTaint] },
  status: { conditions: [{ type: 'Ready', status: 'True' }] },
})

/** A pod that the scheduler has refused. */
const aPod = (name: string, nominatedNodeName?: string): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'default', uid: `uid-${name}` },
  spec: { containers: [{ name: 'c', resources: { requests: { cpu: '1' } } }] },
  status: {
    phase: 'Pending',
    ...(nominatedNodeName !== undefined && { nominatedNodeName }),
    conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable' }],
  },
})

/** With nominations on, and no preferences. */
function holdOf({ caches, clock, state }: ObservedCluster): RegistrationHold {
  const observed = { caches, clock, state }
  return new RegistrationHold({
    ...observed,
    settings: defaultSettings,
    placementGate: { isOn: true },
    others: [new PreferenceHold(caches, state, { keepsPlans: false }, clock)],
  })
}

/** A decision that launched these claims, each for one pod; their Nodes have not come. */
function held(...names: readonly string[]) {
  const cluster = new ObservedCluster()
  const { clock, state } = cluster
  const batch = new Set<string>()
  for (const name of names) {
    cluster.see(aClaim(name), aPod(`for-${name}`))
    state.plans.launched(name, batch)
    state.plans.set(`uid-for-${name}`, { target: { kind: 'claim', name }, steering: 'told' })
  }
  const hold = holdOf(cluster)
  return { clock, waitMs: (name: string) => hold.waitMs(aClaim(name)) }
}

test('one claim of a decision asks often, and another one takes over when it does not any more', async () => {
  const { clock, waitMs } = held('a', 'b', 'c')
  assert.deepEqual([waitMs('a'), waitMs('b'), waitMs('c')], [100, 1000, 1000])
  for (let round = 0; round < 12; round++) {
    await clock.advance(100)
    assert.equal(waitMs('a'), 100)
  }
  assert.deepEqual([waitMs('b'), waitMs('c')], [1000, 1000], 'a has asked a moment ago')
  await clock.advance(1000)
  assert.deepEqual([waitMs('b'), waitMs('c')], [100, 1000], 'a is gone')
  await clock.advance(100)
  assert.deepEqual([waitMs('a'), waitMs('b')], [1000, 100], 'it is not the one any more when it comes back')
})

test('nobody asks again later than the bound', async () => {
  const { clock, waitMs } = held('a', 'b')
  assert.deepEqual([waitMs('a'), waitMs('b')], [100, 1000])
  await clock.advance(defaultSettings.nominationHoldMs - 50)
  assert.deepEqual([waitMs('a'), waitMs('b')], [50, 50])
  await clock.advance(50)
  assert.deepEqual([waitMs('a'), waitMs('b')], [0, 0])
})

/** A decision whose Nodes are Ready, each for so many pods that were all nominated for it a moment ago. */
function nominated(pods: Readonly<Record<string, number>>, fillers = 0) {
  const cluster = new ObservedCluster()
  const { clock, state } = cluster
  const batch = new Set<string>()
  const claims = new Map<string, NodeClaim>()
  const names = new Map<string, readonly string[]>()
  const set = (pod: string, nomination: string | undefined) => {
    cluster.see(aPod(pod, nomination))
  }
  for (const [claim, count] of Object.entries(pods)) {
    const object = aClaim(claim, { providerID: `kwok://${claim}` })
    claims.set(claim, object)
    cluster.see(object, aNode(claim))
    state.plans.launched(claim, batch)
    const target = { kind: 'claim', name: claim } as const
    names.set(
      claim,
      Array.from({ length: count }, (_, index) => `${claim}-${index}`),
    )
    for (const pod of names.get(claim) ?? []) {
      set(pod, `node-${claim}`)
      state.plans.set(`uid-${pod}`, { target, steering: 'told' })
      state.plans.write(`uid-${pod}`, { node: `node-${claim}`, atMs: clock.now(), isAccepted: true })
    }
    for (let index = 0; index < fillers; index++) {
      set(`${claim}-filler-${index}`, undefined)
      state.plans.set(`uid-${claim}-filler-${index}`, { target, steering: 'filler' })
    }
  }
  const hold = holdOf(cluster)
  const each = <T>(answer: (claim: NodeClaim) => T) => [...claims.values()].map(answer)
  return {
    clock,
    /** How long each claim waits. */
    waits: () => each((claim) => hold.waitMs(claim)),
    /** The scheduler takes the nominations of the first pods of a claim away. */
    clear: (claim: string, count: number) => {
      for (const pod of (names.get(claim) ?? []).slice(0, count)) set(pod, undefined)
    },
    /** The first pods of a claim are nominated once more. */
    repeat: (claim: string, count: number) => {
      for (const pod of (names.get(claim) ?? []).slice(0, count)) {
        set(pod, `node-${claim}`)
        state.plans.write(`uid-${pod}`, { node: `node-${claim}`, atMs: clock.now(), isAccepted: true })
      }
    },
    /** Nobody has told of this pod yet. */
    untell: (claim: string) => {
      const [pod = ''] = names.get(claim) ?? []
      set(pod, undefined)
      state.plans.write(`uid-${pod}`, undefined)
    },
  }
}

const opening = [10, 11]

test('Nodes open once nominations have stood for 300 ms', async () => {
  const { clock, waits } = nominated({ a: 2, b: 2 })
  await clock.advance(299)
  assert.deepEqual(waits(), [100, 1000])
  await clock.advance(100)
  assert.deepEqual(waits(), opening)
})

test('PLA-10 Nodes of few pods wait for each nomination that is cleared', async () => {
  const { clock, waits, clear, repeat } = nominated({ a: 50, b: 49 })
  await clock.advance(1000)
  clear('a', 1)
  assert.deepEqual(waits(), [100, 1000])
  await clock.advance(100)
  repeat('a', 1)
  assert.deepEqual(waits(), opening, 'one that is new is not waited for')
})

test('Nodes of many pods open with the hundredth part missing, those that miss some a little later', async () => {
  const { clock, waits, clear } = nominated({ a: 100, b: 100 })
  await clock.advance(1000)
  clear('a', 3)
  assert.deepEqual(waits(), [100, 1000])
  const enough = nominated({ a: 100, b: 100 })
  await enough.clock.advance(1000)
  enough.clear('a', 2)
  assert.deepEqual(enough.waits(), [70, 11])
  await enough.clock.advance(70)
  assert.deepEqual(enough.waits(), [0, 0])
})

test('Nodes open at one moment where some pods fill what others leave', async () => {
  const { clock, waits, clear } = nominated({ a: 100, b: 100 }, 5)
  await clock.advance(1000)
  clear('a', 2)
  assert.deepEqual(waits(), opening)
})

test('Nodes wait while more than one of twenty nominations is new', async () => {
  const { clock, waits, repeat } = nominated({ a: 100, b: 100 })
  await clock.advance(1000)
  repeat('b', 11)
  assert.deepEqual(waits(), [100, 1000])
  await clock.advance(100)
  repeat('b', 1)
  await clock.advance(200)
  assert.deepEqual(waits(), opening)
})

test('Nodes wait for a pod that was never told of, however many were', async () => {
  const { clock, waits, untell } = nominated({ a: 200, b: 200 })
  await clock.advance(1000)
  untell('a')
  assert.deepEqual(waits(), [100, 1000])
})
