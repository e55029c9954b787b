/** A pod that cannot get a node is told the same, with the same time, by every surface (page.md 1). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { NodePool } from '@tenon/api'
import { emptyMemory } from '@tenon/operator'
import { podOutlooks } from '@tenon/operator/questions'
import type { Snapshot } from '@tenon/ask'
import { PodExplainer, Study } from '@tenon/ask/explain'
import { simulate } from '@tenon/ask/simulate'
import { aPending, aPool, aSnapshot, aType } from '@tenon/ask/test-clusters'
import { pendingAnswer } from './explain.ts'

const pod = aPending('web', { cpu: '1' })
const at = '2026-11-26T13:00:00Z'
const type = aType('small', 2)

function paused(pool: NodePool): NodePool {
  const value = JSON.stringify({ until: at, reason: 'incident', includes: ['launches'] })
  return { ...pool, metadata: { ...pool.metadata, annotations: { 'tenon.sh/paused': value } } }
}

function remembering(memory: Partial<Snapshot['memory']>): Snapshot {
  return { ...aSnapshot([aPool('blue'), pod], [type]), memory: { ...emptyMemory, ...memory } }
}

const soldOut = {
  ...type,
  offerings: type.offerings.map((offering) => ({
    ...offering,
    available: false,
    unavailability: { because: 'it is sold out', untilMs: Date.parse(at) },
  })),
}

/** What holds launches back, and what is told of it. */
const rows: Readonly<Record<string, readonly [snapshot: Snapshot, code: string, told: RegExp]>> = {
  'a refusal after the fact': [
    remembering({
      refusedClaims: {
        'pod-web': { message: 'the API server rejects its NodeClaim: no', untilMs: Date.parse(at) },
      },
    }),
    'claimRefused',
    /^Nothing is launched for it: the API server rejects its NodeClaim: no, next try at 2026-11-26T13:00:00Z$/,
  ],
  'offering back-off': [
    aSnapshot([aPool('blue'), pod], [soldOut]),
    'noTemplate',
    /NodePool blue: .*it is sold out, next try at 2026-11-26T13:00:00Z/,
  ],
  'a limit': [
    aSnapshot([aPool('blue', { limits: { cpu: '1' } }), pod], [type]),
    'noTemplate',
    /NodePool blue: .*limits of NodePool blue; raise its spec\.limits/,
  ],
  'a pause': [
    aSnapshot([paused(aPool('blue')), pod], [type]),
    'noPools',
    /^It waits: no NodePool launches nodes now \(NodePool blue: .*launches paused until 2026-11-26T13:00:00Z: incident/,
  ],
  'nodes that did not take pods': [
    remembering({ pausedUntilMs: { blue: Date.parse(at) } }),
    'noPools',
    /^It waits: .*NodePool blue: its last nodes did not take pods, next try at 2026-11-26T13:00:00Z/,
  ],
}

for (const [what, [snapshot, code, told]] of Object.entries(rows))
  test(`PGE-1 held back by ${what}, every surface tells the same`, async () => {
    const study = await Study.open(snapshot)
    try {
      const explanation = await new PodExplainer(study).explain(pod, { missesMs: 0 })
      const { pending, summary } = explanation
      const lines = [
        summary,
        ...(pending?.nodePools ?? []).map((each) => `NodePool ${each.nodePool}: ${each.message}`),
      ]
      assert.match(lines.join('\n'), new RegExp(told, 'm'))
      assert.equal(pending?.code, code)
      const outlook = podOutlooks(await study.decide(), study.operator.questions().unreadyPools()).get(
        'pod-web',
      )?.()
      assert.deepEqual([outlook?.code, outlook?.summary], [code, summary], 'the controller')
      const { groups } = await pendingAnswer(snapshot)
      assert.deepEqual(
        groups.map((group) => [
          group.code,
          group.summary,
          ...group.reasons.filter((each) => each.startsWith('NodePool')),
        ]),
        [[code, ...lines]],
        'the page',
      )
      assert.equal((await simulate(snapshot, snapshot)).podsStillWaiting, 1, 'simulate promises no node')
    } finally {
      await study.close()
    }
  })
