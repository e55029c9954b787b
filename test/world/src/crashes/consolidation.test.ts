import { describe, test } from 'node:test'
import { playEveryDeath } from './crash-run.test-support.ts'
import { consolidation } from './journeys.test-support.ts'

// All deaths take half a minute of CPU time; each run plays some of them.
for (const [provider, share] of [
  ['kwok', 0.2],
  ['exoscale', 0.3],
] as const) {
  describe(`${provider}: death at any write of the replacement of a node by a cheaper one`, () => {
    test('one cheaper node is left, launched once, and its pod runs, whichever of a sample of writes was the last', async () => {
      await playEveryDeath(consolidation, provider, 1, share)
    })
  })
}
