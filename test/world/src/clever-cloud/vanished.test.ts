/** NodeGroups that the platform removes before their nodes have joined (reports-2.md 10). */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { isConditionTrue } from '@tenon/api'
import { aPool, CleverStage, minutes, plenty, seconds } from './stage.test-support.ts'

/** How long it takes until pods on nodes of their own run, once the NodeGroups of all have vanished. */
async function replacementMs(t: TestContext, count: number): Promise<number> {
  const stage = await CleverStage.open(t, {
    pool: aPool(['M'], { disruption: { consolidateAfter: 'Never' } }),
    cleverCloud: { settings: { quota: plenty, nodeDelay: { minMs: 28 * seconds, maxMs: 28 * seconds } } },
  })
  stage.deploy('web', count, { cpu: '6', memory: '1Gi' })
  const areLaunched = () => {
    const claims = stage.world.claims()
    return claims.length === count && claims.every((claim) => isConditionTrue(claim, 'Launched'))
  }
  assert.ok(await stage.until(areLaunched, minutes))
  const { clock } = stage.world
  const vanished = stage.groups().map(({ metadata }) => metadata.name)
  for (const name of vanished) stage.platform.vanish(name)
  assert.equal(stage.groups().length, 0)
  const fromMs = clock.monotonic()
  assert.ok(await stage.until(() => stage.allRun(count), 30 * minutes))
  const tookMs = clock.monotonic() - fromMs
  assert.equal(stage.eventCount('NodeGroupVanished'), count)
  assert.equal(stage.groups().length, count, 'each is replaced once')
  return tookMs
}

test('RPB-25 NodeGroups that vanish in a burst are replaced as fast as one, and within three minutes', async (t) => {
  const one = await replacementMs(t, 1)
  assert.ok(one <= 3 * minutes, `${one / seconds} s`)
  for (const count of [2, 5, 20]) {
    const many = await replacementMs(t, count)
    assert.ok(many <= 1.1 * one, `${count}: ${many / seconds} s, one: ${one / seconds} s`)
  }
})
