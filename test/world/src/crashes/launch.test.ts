import { describe, test } from 'node:test'
import { playEveryDeath } from './crash-run.test-support.ts'
import { launch } from './journeys.test-support.ts'

for (const provider of ['kwok', 'exoscale', 'clever-cloud'] as const) {
  describe(`${provider}: death at any write of a launch`, () => {
    test('LIF-146 every claim gets its one instance, and every pod its node', async () => {
      await playEveryDeath(launch, provider, 5)
    })
  })
}
