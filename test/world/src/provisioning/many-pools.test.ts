/** What many NodePools cost that offer the same types. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { InstanceType } from '@tenon/api'
import { aKwokPool } from '../world.ts'
import { aType, createPool, madeClaims, PoolCloud, waitingPod } from '../testing/pools.test-support.ts'
import { minutes, Stage } from '../testing/stage.test-support.ts'

const zones = ['zone-a', 'zone-b', 'zone-c']
const catalogue: readonly InstanceType[] = Array.from({ length: 600 }, (_, i) =>
  aType(`type-${i}`, 1 + i, zones),
)

/** Decisions of a cluster with `count` NodePools beside `default`; answers the most memory of the process so far, in MiB. */
async function play(t: TestContext, count: number): Promise<number> {
  let stage: Stage | undefined
  const cloud = new PoolCloud(() => (stage as Stage).world.clock)
  cloud.instanceTypes = catalogue
  // A provider may make a new list for each question; its types are the same objects.
  cloud.onListTypes = () => [...catalogue]
  stage = await Stage.open(t, { idle: true, provider: cloud })
  for (let i = 0; i < count; i++) {
    const { template, ...spec } = aKwokPool().spec
    const own = [
      ...(template.spec.requirements ?? []),
      { key: 'team', operator: 'In' as const, values: [`team-${i}`] },
    ]
    createPool(
      stage,
      aKwokPool(`pool-${i}`, { ...spec, template: { spec: { ...template.spec, requirements: own } } }),
    )
  }
  await stage.start()
  for (let round = 0; round < 3; round++) {
    waitingPod(stage, `any-${round}`)
    if (count > 0) waitingPod(stage, `own-${round}`, { spec: { nodeSelector: { team: `team-${round}` } } })
    await stage.pass(1 * minutes)
  }
  const pools = new Set(madeClaims(stage).map(({ metadata }) => metadata.labels?.['karpenter.sh/nodepool']))
  if (count > 0) for (const team of [0, 1, 2]) assert.ok(pools.has(`pool-${team}`))
  return process.resourceUsage().maxRSS / 1024
}

test('SCA-6 200 NodePools of 600 types take hardly more memory than one', async (t) => {
  const one = await play(t, 0)
  const many = await play(t, 200)
  t.diagnostic(`${Math.round(one)} MiB at most with one, ${Math.round(many)} with 200`)
  assert.ok(many - one <= 150, `${many - one} MiB more`)
})
