/** A snapshot as a source of events: all of it at once (console.md 1). */
import { karpenterKinds, kinds } from '@tenon/api'
import type { Snapshot } from '@tenon/ask'
import { ofKind } from '@tenon/ask/cost'
import type { SourceEvent } from '../model/event.ts'

export function snapshotEvents(snapshot: Snapshot): readonly SourceEvent[] {
  const { catalogues, cloud, journal, nodeDecisions, origin } = snapshot
  const isTenon = origin.kind === 'controller'
  const why = 'the snapshot was taken of the objects, without a controller'
  const missing = ['journal', 'decisions'] as const
  return [
    {
      kind: 'catalogues',
      catalogues,
      ...(cloud.priceUnit !== undefined && { currency: cloud.priceUnit }),
    },
    { kind: 'replaced', resource: 'nodepools', objects: ofKind(snapshot, karpenterKinds.nodePool) },
    { kind: 'replaced', resource: 'nodeclaims', objects: ofKind(snapshot, karpenterKinds.nodeClaim) },
    { kind: 'replaced', resource: 'nodes', objects: ofKind(snapshot, kinds.node) },
    { kind: 'replaced', resource: 'pods', objects: ofKind(snapshot, kinds.pod) },
    ...(isTenon
      ? [
          { kind: 'journal' as const, entries: journal },
          { kind: 'decisions' as const, decisions: nodeDecisions },
        ]
      : missing.map((what) => ({ kind: 'absent' as const, what, why }))),
  ]
}
