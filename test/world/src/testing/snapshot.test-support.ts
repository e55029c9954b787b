/** Snapshots as the controller of a stage answers them. */
import { type Snapshot, takeSnapshot } from '@tenon/ask'
import { eventLoopTurns } from '@tenon/runtime'
import type { Stage } from './stage.test-support.ts'

/** @param identity of the controller. */
export async function snapshotOf(
  stage: Pick<Stage, 'operator' | 'world'>,
  identity = 'world',
): Promise<Snapshot> {
  const { operator } = stage.operator
  const { clock } = stage.world
  const source = {
    operator,
    provider: operator.provider,
    origin: { kind: 'controller', identity, isLeading: true },
    program: 'test',
    clock,
    slicing: { clock, turns: eventLoopTurns, sliceMs: 10 },
  } as const
  return await takeSnapshot(source, new AbortController().signal)
}
