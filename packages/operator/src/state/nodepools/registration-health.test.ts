import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { NodeClaim, NodePool } from '@tenon/api'
import type { Change } from '@tenon/kube'
import { RegistrationHealth } from './registration-health.ts'

const nodeClassRef = { group: 'g', kind: 'K', name: 'n' }

function aPool(uid: string, health?: 'True' | 'False' | 'Unknown'): NodePool {
  const lastTransitionTime = '2026-01-01T00:00:00Z'
  const known = { reason: 'X', message: '', lastTransitionTime }
  return {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodePool',
    metadata: { name: 'default', uid },
    spec: { template: { spec: { nodeClassRef, requirements: [] } } },
    ...(health !== undefined && {
      status: { conditions: [{ type: 'NodeRegistrationHealthy', status: health, ...known }] },
    }),
  }
}

const claim: NodeClaim = {
  apiVersion: 'karpenter.sh/v1',
  kind: 'NodeClaim',
  metadata: {
    name: 'default-x',
    labels: { 'karpenter.sh/nodepool': 'default' },
    ownerReferences: [
      { apiVersion: 'v1', kind: 'ConfigMap', name: 'other', uid: 'other' },
      { apiVersion: 'karpenter.sh/v1', kind: 'NodePool', name: 'default', uid: 'one' },
    ],
  },
  spec: { nodeClassRef, requirements: [] },
}

/** What is known of a pool, and what was told of it, while launches succeed (`+`) and fail (`-`). */
class Story {
  pool: NodePool
  readonly told: string[] = []
  readonly health: RegistrationHealth
  #listener: (change: Change<NodePool>) => void = () => undefined

  constructor(pool: NodePool) {
    this.pool = pool
    this.health = new RegistrationHealth({
      get: () => this.pool,
      onChange: (listener) => {
        this.#listener = listener
        return () => undefined
      },
    })
    this.health.samples.add((name) => {
      this.told.push(name)
    })
  }

  /** @returns the verdict after these outcomes. */
  after(outcomes: string, reason = 'RegistrationFailed'): string {
    for (const outcome of outcomes)
      this.health.record(claim, outcome === '+' ? undefined : { reason, message: '' })
    const verdict = this.health.verdictOn(this.pool)
    return verdict === undefined ? 'none' : `${verdict.status}/${verdict.reason ?? ''}`
  }

  deletePool(): void {
    this.#listener({ kind: 'deleted', object: this.pool })
  }
}

const failed = 'False/RegistrationFailed'

test('STA-67 two failures among the last four make a pool unhealthy, fewer samples count as four', () => {
  for (const [outcomes, verdict] of [
    ['', 'none'],
    ['+', 'True/'],
    ['-', 'none'],
    ['--', failed],
    ['--+', failed],
    ['-+-', failed],
    ['-+++', 'True/'],
    ['--++', failed],
    ['--+++', 'True/'],
    ['++++-', 'True/'],
    ['++++--', failed],
  ] as const)
    assert.equal(new Story(aPool('one')).after(outcomes), verdict, outcomes)
})

test('STA-68 a healthy pool stays healthy with one failure, which would be too many with another', () => {
  const story = new Story(aPool('one', 'True'))
  assert.equal(story.after('+-'), 'True/')
  assert.equal(new Story(aPool('one', 'True')).after('+--'), failed)
  assert.equal(story.after(''), 'True/')
})

test('the first failure that makes a pool unhealthy stays the reason until it is healthy again', () => {
  const story = new Story(aPool('one'))
  assert.equal(story.after('--', 'NoQuota'), 'False/NoQuota')
  assert.equal(story.after('-', 'Other'), 'False/NoQuota')
  assert.equal(story.after('+++'), 'True/')
  assert.equal(story.after('-', 'Other'), 'True/')
  assert.equal(story.after('-', 'Other'), 'False/Other')
  assert.equal(story.told.length, 8)
})

test('STA-69 after a restart the condition stands for what was forgotten', () => {
  assert.equal(new Story(aPool('one', 'False')).after('+'), 'none')
  assert.equal(new Story(aPool('one', 'False')).after('+++'), 'True/')
  assert.equal(new Story(aPool('one', 'True')).after('-'), 'none')
  assert.equal(new Story(aPool('one', 'True')).after('--'), failed)
  assert.equal(new Story(aPool('one', 'Unknown')).after('-'), 'none')
})

test('a pool that starts over is new, whatever an old copy of it says', () => {
  const story = new Story(aPool('one', 'False'))
  story.health.reset(story.pool)
  assert.equal(story.after('+'), 'True/')
  story.health.reset(story.pool)
  assert.equal(story.after('-'), 'none')
})

test('claims that the pool does not own say nothing about it', () => {
  const story = new Story(aPool('two'))
  assert.equal(story.after('--'), 'none')
  assert.deepEqual(story.told, [])
})

test('what was known of a pool goes with it', () => {
  const story = new Story(aPool('one'))
  assert.equal(story.after('--'), failed)
  story.deletePool()
  assert.equal(story.after('-'), 'none')
})
