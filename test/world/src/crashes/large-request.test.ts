import { describe, test } from 'node:test'
import { playEveryDeath } from './crash-run.test-support.ts'
import { largeRequest } from './journeys.test-support.ts'

describe('kwok: death at any write while nodes are launched for thousands of pods of one request', () => {
  test('GNG-13 there are as many nodes as without a death, and no other instance', async () => {
    // Each pass decides about thousands of pods: of the deaths some are played.
    await playEveryDeath(largeRequest, 'kwok', 1, 0.15)
  })
})
