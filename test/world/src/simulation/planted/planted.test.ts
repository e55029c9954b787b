import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { simulate } from '../simulation.ts'
import { plantedBug, plantedBugs, storyOf } from './bugs.ts'

/** Bugs that show within seconds of CPU time, each with a seed; `npm run world:planted` looks for all. */
const quick = [
  ['finalizer-late', 1, 'finalizerFirst'],
  ['lease-ignored', 1, 'onlyTheLeaderWrites'],
  ['secret-logged', 1, 'noSecretsInLogs'],
  ['limit-off-by-one', 1, 'limitsKept'],
  ['scrapes-fail', 1, 'metricsAnswer'],
  ['undrained', 1, 'drainedBeforeEnd'],
  ['counters-reset', 1, 'countersRise'],
  ['option-ignored', 1, 'optionsObeyed'],
  ['neighbour-deleted', 1, 'healthyInstancesKept'],
  ['gang-in-part', 1, 'gangNodesOpenTogether'],
  ['adopts-by-label', 1, 'foreignGroupsKept'],
  ['every-node-stamped', 1, 'onlyFirstNodesStamped'],
  ['any-deployment', 4, 'foreignDeploymentsKept'],
  ['double-binding', 4, 'machinesBoundOnce'],
  ['starting-devices-overlooked', 1, 'noSecondNodeForDevices'],
  ['drivers-not-awaited', 1, 'driversAwaited'],
] as const

describe('the world finds planted bugs', () => {
  for (const [name, seed, invariant] of quick) {
    test(`${name} breaks ${invariant}`, async () => {
      const bug = plantedBug(name)
      const { violation } = await simulate(storyOf(bug, seed), bug)
      assert.equal(violation?.invariant, invariant)
    })
  }

  test('a name that is unknown is refused with the known ones', () => {
    assert.throws(() => plantedBug('gremlin'), /no planted bug gremlin; known are finalizer-late, /)
  })
})

test('the page of the world lists every planted bug and its mistake', async () => {
  const page = await readFile(join(import.meta.dirname, '../../../../../docs/world.md'), 'utf8')
  const rows = plantedBugs.map(({ name, mistake }) => `| \`${name}\` | ${mistake} |`)
  assert.deepEqual(
    rows.filter((row) => !page.includes(row)),
    [],
  )
})
