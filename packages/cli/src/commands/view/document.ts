/** The state of a cluster as `tenon view -o json` prints it (console.md 2). */
import type { PrintedEntry } from '@tenon/ask'
import type { ConsoleView, DecisionRow } from '@tenon/console'
import { rfc3339 } from '@tenon/runtime'

/** The view, with journal entries as `tenon journal -o json` prints them. */
export interface PrintedView extends Omit<ConsoleView, 'decisions'> {
  /** RFC 3339. */
  readonly takenAt: string
  readonly decisions: readonly PrintedEntry[]
}

/** Rows are sorted by id, so that equal states print equal text. */
export function viewDocument(
  view: ConsoleView,
  atMs: number,
): PrintedView & { readonly apiVersion: string; readonly kind: string } {
  const { header, problems, absent, decisions } = view
  return {
    apiVersion: 'tenon.sh/v1alpha1',
    kind: 'ClusterView',
    takenAt: rfc3339(atMs),
    header,
    problems,
    absent,
    nodes: sorted(view.nodes),
    claims: sorted(view.claims),
    pools: sorted(view.pools),
    groups: sorted(view.groups),
    pendingPods: sorted(view.pendingPods),
    decisions: decisions.map(printed),
    offerings: sorted(view.offerings),
  }
}

function sorted<R extends { readonly id: string }>(rows: readonly R[]): readonly R[] {
  return rows.toSorted((a, b) => (a.id < b.id ? -1 : 1))
}

function printed({ kind: type, ...entry }: DecisionRow): PrintedEntry {
  return { type, ...entry }
}
