import { describe, test } from 'node:test'
import { playEveryDeath } from './crash-run.test-support.ts'
import { registration } from './journeys.test-support.ts'

for (const provider of ['kwok', 'exoscale', 'clever-cloud'] as const) {
  describe(`${provider}: death at any write of a registration`, () => {
    test('the node gets its labels and taints once, and its startup taint is not put back', async () => {
      await playEveryDeath(registration, provider, 5)
    })
  })
}
