import { describe, test } from 'node:test'
import { playEveryDeath } from './crash-run.test-support.ts'
import { staticDrift } from './journeys.test-support.ts'

describe('kwok: death at any write of the drift of a pool that keeps two nodes', () => {
  test('two nodes of the new template are left, whichever of a sample of writes was the last', async () => {
    await playEveryDeath(staticDrift, 'kwok', 1, 0.25)
  })
})
