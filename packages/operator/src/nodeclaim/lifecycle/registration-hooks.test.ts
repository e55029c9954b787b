import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { NodeClaim } from '@tenon/api'
import type { RegistrationHook, RegistrationVerdict } from '@tenon/provider'
import { askHooks } from './registration-hooks.ts'

const claim: NodeClaim = {
  apiVersion: 'karpenter.sh/v1',
  kind: 'NodeClaim',
  metadata: { name: 'a' },
  spec: { nodeClassRef: { group: 'g', kind: 'K', name: 'n' }, requirements: [] },
}
const { signal } = new AbortController()

function hook(name: string, verdict: RegistrationVerdict | Error): RegistrationHook {
  return {
    name,
    check: async () => await (verdict instanceof Error ? Promise.reject(verdict) : Promise.resolve(verdict)),
  }
}

test('without hooks nothing holds registration back', async () => {
  const outcome = await askHooks([], claim, signal)
  assert.deepEqual(outcome, { pending: [], labels: {}, retryAfterMs: undefined, error: undefined })
})

test('who waits is named in order, the shortest pause of those who ask for one counts', async () => {
  const hooks = [
    hook('long', { kind: 'pending', retryAfterMs: 10_000 }),
    hook('failing', new Error('no answer')),
    hook('passed', { kind: 'passed', labels: { rack: 'r1' } }),
    hook('none', { kind: 'pending' }),
    hook('zero', { kind: 'pending', retryAfterMs: 0 }),
    hook('short', { kind: 'pending', retryAfterMs: 5_000 }),
  ]
  const outcome = await askHooks(hooks, claim, signal)
  assert.deepEqual(outcome.pending, ['long', 'failing', 'none', 'zero', 'short'])
  assert.equal(outcome.retryAfterMs, 5_000)
  assert.deepEqual(outcome.labels, { rack: 'r1' })
})

test('errors name their hooks', async () => {
  const one = await askHooks([hook('volumes', new Error('no answer'))], claim, signal)
  assert.equal(one.error?.message, 'registration hook volumes: no answer')
  const both = [hook('volumes', new Error('no answer')), hook('dns', new Error('no zone'))]
  const { error } = await askHooks(both, claim, signal)
  assert.equal(error?.message, 'registration hook volumes: no answer; registration hook dns: no zone')
})
