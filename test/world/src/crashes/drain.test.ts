import { describe, test } from 'node:test'
import { playEveryDeath } from './crash-run.test-support.ts'
import { drain, drainByDeadline } from './journeys.test-support.ts'

// What differs between the providers comes after the drain: half of the deaths are enough for one.
for (const [provider, share] of [
  ['kwok', 0.5],
  ['exoscale', 1],
] as const) {
  describe(`${provider}: death at any write of a drain`, () => {
    test('LIF-147 no PDB is broken, no pod goes too early or twice, and the node goes', async () => {
      await playEveryDeath(drain, provider, 5, share)
    })
  })
}

describe('exoscale: death at any write of a drain that its deadline ends', () => {
  test('LIF-147 the deadline stays, and no pod is deleted before it allows', async () => {
    await playEveryDeath(drainByDeadline, 'exoscale', 5)
  })
})
