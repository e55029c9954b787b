/** The effect of a changed manifest, as `tenon simulate` reports it (ask.md 5). */
import type { BilledHour, Simulation, Snapshot, SnapshotChange, SnapshotPlayReport } from '@tenon/ask'
import { changedSnapshot, simulate } from '@tenon/ask/simulate'
import { playSnapshot } from '@tenon/ask/play'
import type { ConsoleFacts, SimulatedChanges, TextProblem } from './facts.ts'

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
      /** The `tenon simulate` that gives the same answer. */
      readonly command: string
      readonly played?: { readonly before: PlayedAnswer; readonly after: PlayedAnswer }
    }

/** @param forMs how long to play the cluster; undefined: not at all. */
export async function whatIfAnswer(
  facts: Pick<ConsoleFacts, 'readManifests' | 'scaling' | 'simulateCommand' | 'simulationText'>,
  before: Snapshot,
  changes: SimulatedChanges,
  forMs: number | undefined,
): Promise<WhatIfAnswer> {
  const { manifests, scales } = changes
  // A scale alone needs no manifest.
  const { objects, problems } =
    manifests.trim() === '' && scales.length > 0
      ? { objects: [], problems: [] }
      : await facts.readManifests(manifests)
  if (problems.some(({ severity }) => severity === 'error')) return { kind: 'problems', problems }
  const scalings = readScales(facts, scales)
  if ('problem' in scalings) return refusal(scalings.problem)
  const changed = changedSnapshot(before, [
    ...objects.map((object): SnapshotChange => ({ kind: 'apply', object })),
    ...scalings.ok,
  ])
  if ('problem' in changed) return refusal(changed.problem)
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
    command: facts.simulateCommand(changes, forMs),
    ...(played !== undefined && { played }),
  }
}

/** More pods would keep the answer waiting for minutes. */
const mostReplicas = 20_000

function readScales(
  facts: Pick<ConsoleFacts, 'scaling'>,
  scales: readonly string[],
): { readonly ok: readonly SnapshotChange[] } | { readonly problem: string } {
  try {
    const ok = scales.map((text) => facts.scaling(text))
    const isTooLarge = ok.some((change) => change.kind === 'scale' && change.replicas > mostReplicas)
    return isTooLarge ? { problem: `a workload may have ${mostReplicas} replicas here` } : { ok }
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) }
  }
}

function refusal(message: string): WhatIfAnswer {
  return { kind: 'problems', problems: [{ line: 1, column: 1, severity: 'error', field: '', message }] }
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
