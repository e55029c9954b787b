/** Controllers that die, stand still, or are told the wrong time. */
import { integerBetween } from '@tenon/runtime'
import type { OperatorFleet } from '../process/operator-fleet.ts'
import type { FaultDependencies } from './api-faults.ts'

const minute = 60_000
const stepMs = minute

/** Looks once a minute whether something strikes. Call the result to stop. */
export function playProcessFaults(
  fleet: OperatorFleet,
  { weather, clock, log }: FaultDependencies,
): () => void {
  let isStopped = false
  const step = (): void => {
    if (isStopped) return
    const leader = fleet.leader()
    if (leader !== undefined && weather.strikes('crash')) {
      const random = weather.source('crash')
      const point = (['now', 'beforeWrite', 'afterWrite'] as const)[random.uint32() % 3] ?? 'now'
      log.record('fault', `crash ${leader.name} ${point}`)
      if (point === 'now') leader.port.kill()
      else leader.port.crashAt(point)
    }
    if (leader !== undefined && weather.strikes('pause')) {
      const ms = integerBetween(weather.source('pause'), 1000, 60_000)
      log.record('fault', `pause ${leader.name} ${ms}`)
      leader.clock.pause(ms)
    }
    if (leader !== undefined && weather.strikes('clockJump')) {
      const ms = integerBetween(weather.source('clockJump'), -20_000, 20_000)
      log.record('fault', `clockJump ${leader.name} ${ms}`)
      leader.clock.skewMs = ms
    }
    clock.after(stepMs, step)
  }
  clock.after(stepMs, step)
  return () => {
    isStopped = true
    for (const each of fleet.running()) each.clock.skewMs = 0
  }
}
