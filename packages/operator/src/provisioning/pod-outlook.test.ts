/** Every code of what happens next to a pod, and that all surfaces tell the same of it (page.md 1). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod } from '@tenon/api'
import { type PodReason, renderPodReason, type TemplateReason } from '@tenon/engine'
import type { UnreadyPool } from './input/eligible-pools.ts'
import { type OutlookCode, outlookCases, podOutlooks, waitingByCode } from './pod-outlook.ts'

const pod: Pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web', namespace: 'shop', uid: 'u' },
  spec: { containers: [] },
}
const atMs = Date.parse('2026-11-30T12:00:00Z')
const claim = { nodePool: 'blue', instanceTypes: ['small'], pods: [pod] }

type Decided = Parameters<typeof podOutlooks>[0]
const nothing: Decided = {
  input: { ignored: [], refused: [] },
  result: { claims: [], deferred: [], failures: [], placements: [], undecided: [] },
}
const failing = (reason: PodReason): Decided => ({
  ...nothing,
  result: { ...nothing.result, failures: [{ pod, reason }] },
})
const deferred = (because: Decided['result']['deferred'][number]['because']): Decided => ({
  ...nothing,
  result: { ...nothing.result, deferred: [{ claim, because }] },
})
const noTemplate = (reason: TemplateReason): PodReason => ({
  kind: 'noTemplate',
  templates: [{ nodePool: 'blue', reason }],
})
const soldOut = noTemplate({
  kind: 'unavailable',
  offerings: [
    {
      instanceType: 'small',
      zone: 'a',
      capacityType: 'spot',
      unavailability: { because: 'it is sold out', untilMs: atMs },
    },
  ],
})

/** A decision for each code. */
const rows: Readonly<Record<OutlookCode, Decided>> = {
  noPools: failing({ kind: 'noPools' }),
  noTypesInPools: failing({ kind: 'noTypesInPools' }),
  noTemplate: failing(soldOut),
  truncationBrokeMinValues: failing({ kind: 'truncationBrokeMinValues', nodePool: 'blue' }),
  reservationDeferred: failing({ kind: 'reservationDeferred', variant: 'noneLeft' }),
  uninitializedNode: failing({ kind: 'uninitializedNode', node: 'n' }),
  resourceClaims: failing({ kind: 'resourceClaims' }),
  devices: failing({ kind: 'devices', claim: 'shop/gpu', because: { kind: 'noDevices' } }),
  extendedResources: failing({
    kind: 'extendedResources',
    resources: ['nvidia.com/gpu'],
    because: { kind: 'noDevices' },
  }),
  exclusiveClaim: failing({ kind: 'exclusiveClaim', claim: 'shop/data' }),
  malformed: failing({ kind: 'malformed', problem: 'spec: no' }),
  podGroupShort: failing({ kind: 'podGroupShort', group: 'g', members: 1, bound: 0, minCount: 2 }),
  podGroup: failing({ kind: 'podGroup', group: 'g', placed: 1, bound: 0, minCount: 2, because: soldOut }),
  podGroupTopology: failing({ kind: 'podGroupTopology', group: 'g', key: 'rack' }),
  unexplained: failing({ kind: 'unexplained' }),
  undecidable: failing({ kind: 'undecidable', problem: 'it throws' }),
  offeringsOnTrial: deferred({ kind: 'offeringsOnTrial' }),
  limitReserved: deferred({ kind: 'limitReserved', limit: 'cpu' }),
  quotaReserved: deferred({ kind: 'quotaReserved', quota: 'team', limit: 'cpu' }),
  claimRefused: { ...nothing, input: { ignored: [], refused: [{ pod, reason: 'denied', untilMs: atMs }] } },
  leftOut: { ...nothing, input: { ignored: [], refused: [{ pod, reason: 'its volume is missing' }] } },
  undecided: { ...nothing, result: { ...nothing.result, undecided: [pod] } },
  placed: { ...nothing, result: { ...nothing.result, placements: [{ pod, node: 'n' }] } },
  newNode: { ...nothing, result: { ...nothing.result, claims: [claim] } },
}
const unready: readonly UnreadyPool[] = [
  { nodePool: 'blue', code: 'paused', because: 'launches paused until 2026-11-30T14:00:00Z: incident' },
]

test('PGE-1 each code has its case, one sentence, and is counted under itself', () => {
  for (const [code, decided] of Object.entries(rows) as [OutlookCode, Decided][]) {
    const outlook = podOutlooks(decided, unready).get('u')?.()
    assert.ok(outlook, code)
    assert.deepEqual([outlook.code, outlook.case], [code, outlookCases[code]])
    assert.match(outlook.summary, /^[A-Z].*[^.\n]$/, code)
    const counted = code === 'placed' ? [] : [[code, 1]]
    assert.deepEqual([...waitingByCode(decided)], counted, code)
    assert.equal(/launches a node/.test(outlook.summary), code === 'newNode', `${code} promises no node`)
  }
})

test('PGE-1 the sentence has the reason of the event, and the time of the next try', () => {
  for (const [code, decided] of Object.entries(rows) as [OutlookCode, Decided][]) {
    const outlook = podOutlooks(decided, unready).get('u')?.()
    const { reason, summary = '' } = outlook ?? {}
    // A NodePool at a time is told of the one, and which NodePools are held of the other.
    if (reason === undefined || code === 'noTemplate' || code === 'noPools') continue
    assert.equal(summary, `It waits: ${renderPodReason(reason)}`)
  }
  const timeOf = (code: OutlookCode) => podOutlooks(rows[code], unready).get('u')?.().untilMs
  assert.deepEqual(
    ['noTemplate', 'podGroup', 'claimRefused'].map((code) => timeOf(code as OutlookCode)),
    [atMs, atMs, atMs],
  )
})

test('PGE-1 while launches are held every NodePool is named with why, and none is promised', () => {
  const told = (pools: readonly UnreadyPool[]) => podOutlooks(rows.noPools, pools).get('u')?.().summary
  assert.equal(
    told(unready),
    'It waits: no NodePool launches nodes now (NodePool blue: launches paused until 2026-11-30T14:00:00Z: incident)',
  )
  const many = Array.from({ length: 5 }, (_, at) => ({ ...(unready[0] as UnreadyPool), nodePool: `p${at}` }))
  assert.match(told(many) ?? '', /NodePool p0: .*NodePool p2: .*; and 2 more\)$/)
  assert.match(told([]) ?? '', /^It waits: no NodePool is ready to launch nodes; create one/)
})
