import { describe, test } from 'node:test'
import { playEveryDeath } from './crash-run.test-support.ts'
import { termination } from './journeys.test-support.ts'

for (const provider of ['kwok', 'exoscale', 'clever-cloud'] as const) {
  describe(`${provider}: death at any write of a termination`, () => {
    test('a deleted NodePool leaves no node, no claim and no instance, not even one on its way', async () => {
      await playEveryDeath(termination, provider, 5)
    })
  })
}
