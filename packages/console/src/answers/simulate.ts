/** The effect of a changed manifest, as `tenon simulate` reports it (ask.md 5). */
import type { BilledHour, Simulation, Snapshot, SnapshotPlayReport } from '@tenon/ask'
import { changedSnapshot, simulate } from '@tenon/ask/simulate'
import { playSnapshot } from '@tenon/ask/play'
import type { ConsoleFacts, TextProblem } from './facts.ts'

/** A simulated cluster over time. */
export interface PlayedAnswer {
  readonly cost: number
  readonly peakPricePerHour: number
  readonly nodes: number
  readonly unpricedNodes: number
  readonly launches: number
  readonly moves: number
  readonly longestPendingMs?: number
  readonly hours: readonly BilledHour[]
}

export type WhatIfAnswer =
  | { readonly kind: 'problems'; readonly problems: readonly TextProblem[] }
  | {
      readonly kind: 'simulated'
      readonly simulation: Simulation
      readonly text: string
      readonly played?: { readonly before: PlayedAnswer; readonly after: PlayedAnswer }
    }

/** @param forMs how long to play the cluster; undefined: not at all. */
export async function whatIfAnswer(
  facts: Pick<ConsoleFacts, 'readManifests' | 'simulationText'>,
  before: Snapshot,
  manifests: string,
  forMs: number | undefined,
): Promise<WhatIfAnswer> {
  const { objects, problems } = await facts.readManifests(manifests)
  if (problems.some(({ severity }) => severity === 'error')) return { kind: 'problems', problems }
  const changed = changedSnapshot(
    before,
    objects.map((object) => ({ kind: 'apply', object })),
  )
  if ('problem' in changed)
    return {
      kind: 'problems',
      problems: [{ line: 1, column: 1, severity: 'error', field: '', message: changed.problem }],
    }
  const simulation = await simulate(before, changed.ok)
  const played =
    forMs === undefined
      ? undefined
      : {
          before: playedOf(await playSnapshot(before, { forMs })),
          after: playedOf(await playSnapshot(changed.ok, { forMs })),
        }
  return {
    kind: 'simulated',
    simulation,
    text: facts.simulationText(simulation),
    ...(played !== undefined && { played }),
  }
}

function playedOf(report: SnapshotPlayReport): PlayedAnswer {
  const { cost, peakPricePerHour, instances, unpricedInstances, launches, movesTotal, pending, hours } =
    report
  return {
    cost,
    peakPricePerHour,
    nodes: instances,
    unpricedNodes: unpricedInstances,
    launches,
    moves: movesTotal,
    ...(pending.maxMs !== undefined && { longestPendingMs: pending.maxMs }),
    hours,
  }
}
