/** Many nodes that flap for hours (wanted.md 2). */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { conditionOf, karpenterKinds, kinds, labels, type NodeClaim } from '@tenon/api'
import { defaultSettings } from '@tenon/operator/objects'
import { decorated, type RepairPolicy } from '@tenon/provider'
import { rfc3339, SeededRandom } from '@tenon/runtime'
import { minutes, seconds, type Stage } from '../testing/stage.test-support.ts'
import { is, openKwok } from '../testing/kwok-stage.test-support.ts'
import { aDeployment, deploymentKind } from '../world.ts'

const nodes = 40
const share = 0.3
const budget = 4
/** More of both take their time: `FLAPPING_HOURS=24 FLAPPING_SEEDS=20`. */
const hours = Number(process.env['FLAPPING_HOURS'] ?? 1)
const seeds = Number(process.env['FLAPPING_SEEDS'] ?? 1)

/** Not of the kubelet, which would set it right with its next report. */
const broken: Pick<RepairPolicy, 'conditionStatus' | 'conditionType'> = {
  conditionType: 'example.com/FabricBroken',
  conditionStatus: 'True',
}
const policies: readonly RepairPolicy[] = [{ ...broken, tolerationMs: 10 * minutes }]

async function openFlapping(t: TestContext): Promise<Stage> {
  const featureGates = { ...defaultSettings.featureGates, nodeRepair: true }
  const stage = await openKwok(t, {
    settings: { featureGates },
    wrapProvider: (inner) => decorated(inner, { repairPolicies: policies }),
    pool: {
      disruption: { consolidateAfter: 'Never', budgets: [{ nodes: '100%' }] },
    },
  })
  const { template } = stage.poolNow()?.spec ?? {}
  stage.patch(karpenterKinds.nodePool, 'default', {
    metadata: { annotations: { 'tenon.sh/repair-budget': String(budget) } },
    spec: {
      template: {
        ...template,
        spec: {
          ...template?.spec,
          requirements: [is(labels.instanceType, 'c-1x-amd64-linux'), is(labels.capacityType, 'on-demand')],
        },
      },
    },
  })
  stage.world.create(deploymentKind, aDeployment('app', nodes, { cpu: '600m', memory: '100Mi' }))
  await stage.pass(2 * minutes)
  assert.equal(stage.world.nodes().length, nodes)
  return stage
}

function press(stage: Stage, node: string, status: 'True' | 'False'): void {
  const found = stage.nodeNow(node)
  if (found === undefined) return
  const others = (found.status?.conditions ?? []).filter(({ type }) => type !== broken.conditionType)
  const condition = { type: broken.conditionType, status, lastTransitionTime: rfc3339(stage.now) }
  stage.patch(kinds.node, node, { status: { conditions: [...others, condition] } }, 'status')
}

const isInRepair = (claim: NodeClaim) =>
  claim.metadata.deletionTimestamp !== undefined || conditionOf(claim, 'DisruptionReason')?.status === 'True'

for (let seed = 1; seed <= seeds; seed++)
  test(`WNT-18 with a third of 40 nodes flapping for hours the budget holds, and no healthy node goes; seed ${seed}`, async (t) => {
    const random = new SeededRandom(`flapping-${seed}`)
    const below = (count: number) => random.uint32() % count
    const stage = await openFlapping(t)
    /** Until when the present phase of each node that flaps lasts. */
    const flapping = new Map<string, { isBad: boolean; untilMs: number }>()
    const everBad = new Set<string>()
    const everHealthy = new Map<string, string>()
    let most = 0
    const endMs = stage.now + hours * 60 * minutes
    while (stage.now < endMs) {
      const claims = stage.world.claims()
      const going = claims.filter(isInRepair)
      most = Math.max(most, going.length)
      assert.ok(going.length <= budget, `${going.length} nodes are being repaired at once`)
      const present = stage.world.nodes().map(({ metadata }) => metadata.name)
      for (const name of flapping.keys()) if (!present.includes(name)) flapping.delete(name)
      while (flapping.size < share * nodes) {
        const name = present[below(present.length)] ?? ''
        flapping.set(name, { isBad: false, untilMs: stage.now })
        everBad.add(name)
      }
      for (const [name, phase] of flapping) {
        if (phase.untilMs > stage.now) continue
        const isBad = !phase.isBad
        press(stage, name, isBad ? 'True' : 'False')
        flapping.set(name, { isBad, untilMs: stage.now + (20 + below(120)) * seconds })
      }
      for (const { metadata, status } of claims) {
        const name = status?.nodeName ?? ''
        if (name !== '') everHealthy.set(metadata.uid ?? '', name)
      }
      const uids = new Set(claims.map(({ metadata }) => metadata.uid))
      for (const [uid, name] of everHealthy)
        assert.ok(uids.has(uid) || everBad.has(name), `${name} went and was never unhealthy`)
      if (below(240) === 0) await stage.restart()
      await stage.pass(10 * seconds)
    }
    assert.ok(most > 0, 'nodes are repaired')
    for (const name of flapping.keys()) press(stage, name, 'False')
    await stage.pass(30 * minutes)
    assert.deepEqual(stage.world.claims().filter(isInRepair), [])
    assert.ok(stage.world.pods().every(({ status }) => status?.phase === 'Running'))
    assert.equal(stage.world.claims().length, stage.world.nodes().length)
  })
