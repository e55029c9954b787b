import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Condition, labels, type Node, type NodeClaim, type NodePool, type Pod } from '@tenon/api'
import { KubeError, type PatchOptions } from '@tenon/kube'
import { rfc3339 } from '@tenon/runtime'
import { ObservedCluster } from '../state/observed-cluster.test-support.ts'
import { ConsolidationPolicy } from '../disruption/policy.ts'
import { defaultSettings } from '../settings.ts'
import { notePodEvent, podEvents } from './pod-events.ts'

/** What the API server answers to a write; nobody looks at it. */
const unread = undefined as never
const accepted: Promise<never> = Promise.resolve(unread)
const { signal } = new AbortController()
const seconds = 1000
const minutes = 60 * seconds

function anInstance(lastPodEventTime?: string): readonly [Node, NodeClaim] {
  const node: Node = {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'node-a', uid: 'n' },
    spec: { providerID: 'p://a' },
  }
  const claim: NodeClaim = {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodeClaim',
    metadata: { name: 'a', uid: 'c' },
    spec: {
      nodeClassRef: { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'x' },
      requirements: [],
    },
    status: { providerID: 'p://a', ...(lastPodEventTime !== undefined && { lastPodEventTime }) },
  }
  return [node, claim]
}

function aPod({ metadata, status }: { metadata?: Partial<Pod['metadata']>; status?: Pod['status'] }): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p', namespace: 'default', uid: 'p', ...metadata },
    spec: { nodeName: 'node-a', containers: [] },
    ...(status !== undefined && { status }),
  }
}

const becameTrue = (type: string, atMs: number) => ({
  type,
  status: 'True',
  lastTransitionTime: rfc3339(atMs),
})

/** What a start writes that lists one pod, 30 minutes after the claim was stamped last. */
async function writesAtStart(pod: (stampedMs: number) => Pod, isStamped = true): Promise<readonly unknown[]> {
  const cluster = new ObservedCluster()
  const { caches, state, clock } = cluster
  const stampedMs = Math.floor(clock.now() / seconds) * seconds
  await clock.advance(30 * minutes)
  const patches: unknown[] = []
  const client = {
    patch: (_type: unknown, _key: unknown, patch: unknown) => {
      patches.push(patch)
      return accepted
    },
  }
  const events = podEvents(client, caches, state, clock)
  cluster.see(pod(stampedMs), ...anInstance(isStamped ? rfc3339(stampedMs) : undefined))
  caches.pods.onChange((change) => {
    assert.equal(notePodEvent(change, caches, state, clock.now()), 'node-a')
  })
  await events.reconcile('node-a', signal)
  await events.reconcile('node-a', signal)
  const now = { status: { lastPodEventTime: rfc3339(clock.now()) } }
  assert.ok(patches.every((patch) => JSON.stringify(patch) === JSON.stringify(now)))
  return patches
}

const boundAt = (atMs: number): Pod['status'] => ({
  phase: 'Running',
  startTime: rfc3339(atMs),
  conditions: [becameTrue('PodScheduled', atMs)],
})

test('a start does not note again what was noted: pods that were bound before, or within ten seconds', async () => {
  assert.equal((await writesAtStart((ms) => aPod({ status: boundAt(ms - 60 * minutes) }))).length, 0)
  assert.equal((await writesAtStart((ms) => aPod({ status: boundAt(ms) }))).length, 0)
  assert.equal((await writesAtStart((ms) => aPod({ status: boundAt(ms + 9 * seconds) }))).length, 0)
})

test('a start notes what happened since, once', async () => {
  const { length: bound } = await writesAtStart((ms) => aPod({ status: boundAt(ms + 10 * seconds) }))
  assert.equal(bound, 1)
  const { length: ended } = await writesAtStart((ms) =>
    aPod({
      status: {
        phase: 'Succeeded',
        conditions: [
          becameTrue('PodScheduled', ms - minutes),
          { type: 'Ready', status: 'False', lastTransitionTime: rfc3339(ms + minutes) },
        ],
      },
    }),
  )
  assert.equal(ended, 1)
  const leavingFrom = (ms: number): Pod =>
    aPod({
      metadata: { deletionTimestamp: rfc3339(ms + 60 * seconds), deletionGracePeriodSeconds: 60 },
      status: boundAt(ms - minutes),
    })
  assert.equal((await writesAtStart((ms) => leavingFrom(ms + minutes))).length, 1)
  assert.equal((await writesAtStart(leavingFrom)).length, 0)
})

test('a pod that serves again since is no event, one that says nothing of its times is', async () => {
  const flapped = (ms: number): Pod =>
    aPod({
      status: {
        phase: 'Running',
        conditions: [becameTrue('PodScheduled', ms), becameTrue('Ready', ms + 5 * minutes)],
      },
    })
  assert.equal((await writesAtStart(flapped)).length, 0)
  assert.equal((await writesAtStart(() => aPod({}))).length, 1)
  assert.equal((await writesAtStart((ms) => aPod({ status: boundAt(ms) }), false)).length, 1)
})

const condition = (type: string): Condition => ({
  type,
  status: 'True',
  reason: type,
  message: '',
  lastTransitionTime: rfc3339(0),
})

/** What is written when a pod comes to a node that may be consolidated. */
async function writesForRested(
  disruption: object,
  more: object = {},
  refusals = 0,
): Promise<readonly unknown[]> {
  const cluster = new ObservedCluster()
  const { caches, state, clock } = cluster
  const patches: unknown[] = []
  let left = refusals
  const client = {
    patch: (_type: unknown, _key: unknown, patch: unknown, options: PatchOptions = {}) => {
      const { subresource, resourceVersion } = options
      patches.push([patch, { subresource, resourceVersion }])
      return left-- > 0 ? Promise.reject(new KubeError('conflict', 409, 'changed')) : accepted
    },
  }
  const [node, claim] = anInstance()
  const { nodeClassRef } = claim.spec
  const pool: NodePool = {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodePool',
    metadata: { name: 'general', uid: 'pool' },
    spec: { disruption, template: { spec: { nodeClassRef, requirements: [] } }, ...more },
  }
  const conditions = ['Launched', 'Registered', 'Initialized', 'Consolidatable', 'Ready'].map(condition)
  cluster.see(pool, node, {
    ...claim,
    metadata: { ...claim.metadata, resourceVersion: '7', labels: { [labels.nodePool]: 'general' } },
    status: { ...claim.status, conditions },
  } as NodeClaim)
  const events = podEvents(client, caches, state, clock)
  assert.equal(notePodEvent({ kind: 'added', object: aPod({}) }, caches, state, clock.now()), 'node-a')
  await events.reconcile('node-a', signal)
  const now = { lastPodEventTime: rfc3339(clock.now()) }
  const left4 = ['Initialized', 'Launched', 'Ready', 'Registered'].map(condition)
  const both = [{ status: { ...now, conditions: left4 } }, { subresource: 'status', resourceVersion: '7' }]
  const only = [{ status: now }, { subresource: 'status' }]
  return patches.map((patch) => {
    const text = JSON.stringify(patch)
    return text === JSON.stringify(both) ? 'both' : text === JSON.stringify(only) ? 'time' : patch
  })
}

test('a pod that comes is noted together with the end of Consolidatable, in one write', async () => {
  assert.deepEqual(await writesForRested({ consolidateAfter: '30s' }), ['both'])
  assert.deepEqual(await writesForRested({ consolidateAfter: 'Never' }), ['both'])
})

test('it is noted alone where Consolidatable stays, or the claim has changed meanwhile', async () => {
  assert.deepEqual(await writesForRested({ consolidateAfter: '0s' }), ['time'])
  assert.deepEqual(await writesForRested({ consolidateAfter: '30s' }, { replicas: 3 }), ['time'])
  assert.deepEqual(await writesForRested({ consolidateAfter: '30s' }, {}, 1), ['both', 'time'])
})

test('while it cannot be written that a pod has left, its node is not at rest', async () => {
  const cluster = new ObservedCluster()
  const { caches, state, clock } = cluster
  const written = Promise.withResolvers<never>()
  const client = { patch: () => written.promise }
  const events = podEvents(client, caches, state, clock)
  const policy = new ConsolidationPolicy({ state, clock, settings: defaultSettings })
  const [node, bare] = anInstance(rfc3339(clock.now() - 30 * minutes))
  const claim = { ...bare, status: { ...bare.status, conditions: [condition('Consolidatable')] } }
  cluster.see(node, claim, aPod({ status: boundAt(clock.now() - 20 * minutes) }))
  caches.pods.onChange((change) => {
    if (change.kind === 'updated') notePodEvent(change, caches, state, clock.now())
  })
  assert.ok(policy.isAtRest({ node, claim }))
  cluster.see(
    aPod({
      metadata: { deletionTimestamp: rfc3339(clock.now()) },
      status: boundAt(clock.now() - 20 * minutes),
    }),
  )
  const reconciled = events.reconcile('node-a', signal)
  assert.ok(!policy.isAtRest({ node, claim }))
  written.resolve(unread)
  await reconciled
  // From now on the claim tells.
  assert.ok(policy.isAtRest({ node, claim }))
})

test('an event that needs no writing is over at once, and the node is looked at again', async () => {
  const cluster = new ObservedCluster()
  const { caches, state, clock } = cluster
  const client = { patch: () => assert.fail('nothing is to be written') }
  const events = podEvents(client, caches, state, clock)
  caches.pods.onChange((change) => void notePodEvent(change, caches, state, clock.now()))
  const nowMs = clock.now()
  cluster.see(...anInstance(rfc3339(nowMs)), aPod({ status: boundAt(nowMs + 5 * seconds) }))
  assert.ok(state.unnotedPodEvents.has('node-a'))
  const version = state.consolidation.read()
  await events.reconcile('node-a', signal)
  assert.ok(!state.unnotedPodEvents.has('node-a'))
  assert.notEqual(state.consolidation.read(), version)
})

/** Whether pods of a node that was just filled may be moved after one of a Job has begun to end there. */
function mayMoveAfterEnd(isMovedJob: boolean): boolean {
  const cluster = new ObservedCluster()
  const { caches, state, clock } = cluster
  const ownerReferences = [
    { apiVersion: 'batch/v1', kind: 'Job', name: 'job', uid: 'job', controller: true as const },
  ]
  const running = aPod({ metadata: { ownerReferences } })
  cluster.see(...anInstance(), running)
  state.recentlyFilledNodes.fill('a')
  if (isMovedJob) state.movedPods.move([running], true)
  caches.pods.onChange((change) => {
    if (change.kind === 'updated') notePodEvent(change, caches, state, clock.now())
  })
  cluster.see(aPod({ metadata: { ownerReferences, deletionTimestamp: rfc3339(clock.now()) } }))
  return state.recentlyFilledNodes.leftMs('a', clock.now(), 0) === 0
}

test('RPT-26 pods that end because their workload was moved are no reason to move others again', () => {
  assert.equal(mayMoveAfterEnd(false), true)
  assert.equal(mayMoveAfterEnd(true), false)
})
