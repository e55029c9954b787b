import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createKubeClient, isKubeError, KubeError } from '@tenon/kube'
import { oneChunk, VirtualClock } from '@tenon/runtime'
import { kindsOf } from '../objects.ts'
import { HubHealth } from './health.ts'
import { withServerNames } from './server-names.ts'

test('an error of the hub names the hub, and keeps its kind', async () => {
  const client = createKubeClient({
    transport: {
      send: async () => ({
        status: 403,
        headers: { 'content-type': 'application/json' },
        body: oneChunk(
          JSON.stringify({
            kind: 'Status',
            reason: 'Forbidden',
            code: 403,
            message: 'machines is forbidden',
          }),
        ),
      }),
    },
    clock: new VirtualClock(),
    userAgent: 'test',
  })
  const health = new HubHealth(new VirtualClock())
  const hub = withServerNames(client, 'https://hub.example:6443', health)
  const { machine } = kindsOf('cluster.x-k8s.io', 'v1beta2')
  for (const call of [
    () => hub.get(machine, { namespace: 'a', name: 'b' }),
    () => hub.patch(machine, { namespace: 'a', name: 'b' }, {}),
    () => hub.delete(machine, { namespace: 'a', name: 'b' }),
  ])
    await assert.rejects(call(), (error) => {
      assert.ok(isKubeError(error, 'forbidden'))
      assert.equal(error.status, 403)
      assert.match(error.message, /^management cluster https:\/\/hub\.example:6443: .*machines is forbidden/)
      return true
    })
})

test('a hub that does not answer is away until it does; a refusal is an answer', () => {
  const clock = new VirtualClock()
  const health = new HubHealth(clock)
  health.record()
  assert.equal(health.awayUntilMs, undefined)
  health.record(new KubeError('transport', 0, 'socket hang up'))
  const lostMs = clock.now()
  assert.equal(health.awayUntilMs, lostMs)
  assert.ok(health.isAway)
  health.record(new KubeError('forbidden', 403, 'no'))
  assert.ok(!health.isAway)
  health.record()
  assert.equal(health.awayUntilMs, lostMs)
})
