import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { karpenterKinds, type NodeClaim } from '@tenon/api'
import type { KubeClient } from '@tenon/kube'
import { rfc3339, silentLogger, VirtualClock } from '@tenon/runtime'
import { OtherControllers } from './other-controllers.ts'

const minute = 60_000
const start = Date.UTC(2026, 0, 1, 12)

interface Entry {
  readonly manager: string
  readonly atMs: number
  readonly subresource?: 'status'
}

/** A controller that begins to lead, and the states of objects that it sees. */
class Stand {
  readonly clock = new VirtualClock(start, 1)
  readonly others: OtherControllers
  readonly #kept = new Map<string, object>()

  constructor(t: TestContext, isServed = true) {
    const stopping = new AbortController()
    t.after(() => {
      stopping.abort()
    })
    const { clock } = this
    const settings = { takeOver: false }
    this.others = new OtherControllers({ clock, logger: silentLogger, settings, isServed: () => isServed })
    this.others.follow(stopping.signal)
  }

  see(kind: 'NodeClaim' | 'NodePool', name: string, ...entries: readonly Entry[]): void {
    const managedFields = entries.map(({ atMs, ...entry }) => ({ ...entry, time: rfc3339(atMs) }))
    const object = Object.assign({} as NodeClaim, { metadata: { name, managedFields }, spec: {} })
    const kept = { ...object }
    this.others.seen(kind, object, kept, this.#kept.get(name))
    this.#kept.set(name, kept)
  }

  /** The object is gone from the cache. */
  lose(name: string): void {
    this.#kept.delete(name)
  }

  async writeOwn(name: string): Promise<void> {
    const inner = Object.assign({} as KubeClient, { patch: () => Promise.resolve({}) })
    await this.others.client(inner).patch(karpenterKinds.nodeClaim, { name }, {})
  }
}

const status = (manager: string, atMs: number): Entry => ({ manager, atMs, subresource: 'status' })
const created = (manager: string, atMs: number): Entry => ({ manager, atMs })

test('ADO-6 writes of the leader before that show minutes later stop nothing', async (t) => {
  const stand = new Stand(t)
  const { clock, others } = stand
  stand.see(
    'NodeClaim',
    'a',
    created('karpenter', start - 90 * minute),
    status('karpenter', start - 80 * minute),
  )
  await clock.advance(3 * minute)
  // The watch was interrupted during the failover, and is listed again.
  const last = start - 20_000
  stand.see('NodeClaim', 'a', created('karpenter', start - 90 * minute), status('karpenter', last))
  stand.see('NodeClaim', 'b', created('karpenter', last), status('karpenter', last))
  assert.equal(others.isOpen, true)
  stand.see('NodeClaim', 'c', created('karpenter', clock.now()))
  assert.equal(others.isOpen, false, 'another one creates a claim now')
})

test('ADO-6 objects that a backup, a wrong list or a lagging server brings back stop nothing', async (t) => {
  const stand = new Stand(t)
  const { clock, others } = stand
  await clock.advance(minute)
  const wrote = clock.now()
  await stand.writeOwn('a')
  stand.see('NodeClaim', 'a', created('karpenter', wrote), status('karpenter', wrote))
  await clock.advance(60 * minute)
  await stand.writeOwn('b')
  stand.lose('a')
  stand.see('NodeClaim', 'a', created('karpenter', wrote), status('karpenter', wrote))
  stand.see('NodeClaim', 'a', created('karpenter', wrote), status('karpenter', wrote - 30_000))
  stand.see('NodeClaim', 'a', created('karpenter', wrote), status('karpenter', wrote))
  assert.equal(others.isOpen, true)
})

test('ADO-6 our writes may show late where the clock of the API server is five minutes ahead', async (t) => {
  const stand = new Stand(t)
  const { clock, others } = stand
  const ahead = 5 * minute
  stand.see('NodeClaim', 'a', created('karpenter', start), status('karpenter', start + ahead))
  await clock.advance(minute)
  await stand.writeOwn('a')
  const wrote = clock.now() + ahead
  await clock.advance(8 * minute)
  stand.see('NodeClaim', 'a', created('karpenter', start), status('karpenter', wrote))
  assert.equal(others.isOpen, true)
  stand.see('NodeClaim', 'b', created('karpenter', clock.now() + ahead))
  assert.equal(others.isOpen, false)
})

test('ADO-6 a time far in the future hides nobody for long', async (t) => {
  const stand = new Stand(t)
  const { clock, others } = stand
  stand.see('NodeClaim', 'a', created('x', start), status('liar', Date.UTC(9999, 0)))
  await clock.advance(12 * minute)
  stand.see('NodeClaim', 'b', created('karpenter', clock.now()))
  assert.equal(others.isOpen, false)
})

test('ADO-6 who only writes conditions of NodePools launches nothing', async (t) => {
  const stand = new Stand(t)
  const { clock, others } = stand
  stand.see('NodePool', 'default', created('helm', start))
  await clock.advance(minute)
  stand.see('NodePool', 'default', created('helm', start), status('background-controller', clock.now()))
  assert.equal(others.isOpen, true)
  stand.see('NodePool', 'default', created('helm', start), status('karpenter', clock.now()))
  assert.equal(others.isOpen, false)
})

test('ADO-6 claims that this process does not serve prove nothing', async (t) => {
  const stand = new Stand(t, false)
  await stand.clock.advance(minute)
  stand.see('NodeClaim', 'a', created('karpenter', stand.clock.now()))
  assert.equal(stand.others.isOpen, true)
})

test('ADO-6 writes that wait for an answer do not keep others remembered for ever', async (t) => {
  const stand = new Stand(t)
  let answer: (() => void) | undefined
  const hanging = Object.assign({} as KubeClient, {
    patch: () => new Promise<object>((resolve) => (answer = () => resolve({}))),
  })
  const pending = stand.others.client(hanging).patch(karpenterKinds.nodeClaim, { name: 'hangs' }, {})
  await stand.writeOwn('a')
  await stand.clock.advance(40 * minute)
  await stand.writeOwn('b')
  stand.see('NodeClaim', 'a', created('karpenter', stand.clock.now()))
  assert.equal(stand.others.isOpen, false, 'the claim of that name is not ours')
  answer?.()
  await pending
})
