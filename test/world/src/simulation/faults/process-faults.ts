/** Controllers that crash, pause, restart with other options, or have a wrong clock. */
import { defaultSettings, type Settings } from '@tenon/operator'
import { integerBetween, type Random } from '@tenon/runtime'
import type { OperatorProcess } from '../process/operator-process.ts'
import type { OperatorFleet } from '../process/operator-fleet.ts'
import type { FaultDependencies } from './api-faults.ts'

const minute = 60_000
const stepMs = minute

/** Settings that are tried one by one; the invariants hold with all of them. */
const changes: readonly ((random: Random) => Partial<Settings>)[] = [
  (random) => ({ batchIdleMs: integerBetween(random, 100, 5000), batchMaxMs: 10_000 }),
  (random) => ({ cpuRequestsMillis: integerBetween(random, 1, 16) * 1000 }),
  () => ({ preferences: 'Ignore' }),
  () => ({ minValues: 'BestEffort' }),
  () => ({ metricsDetail: 'reduced' }),
  () => ({ clusterStateObservability: false }),
  () => ({ compatibility: 'karpenter' }),
  () => ({}),
]

/** Gates that may be changed while nodes exist; those of the workload stay as they are. */
const gates = ['nodeRepair', 'plannedPlacement', 'spotToSpotConsolidation', 'globalConsolidation'] as const

/**
 * @param settings of the processes so far.
 * @param keepsMode whether the compatibility mode, in which Karpenter's rules hold alone, is not among the changes.
 */
function otherSettings(settings: Partial<Settings>, random: Random, keepsMode: boolean): Partial<Settings> {
  const change = changes[random.uint32() % changes.length] ?? (() => ({}))
  const gate = gates[random.uint32() % gates.length] ?? 'nodeRepair'
  const featureGates = { ...defaultSettings.featureGates, ...settings.featureGates }
  return {
    ...settings,
    ...change(random),
    ...(keepsMode && { compatibility: 'none' }),
    featureGates: { ...featureGates, [gate]: random.uint32() % 2 === 0 },
  }
}

/**
 * Decides once a minute whether a fault strikes. Call the result to stop.
 * @param keepsMode whether no process starts in the compatibility mode.
 */
export function playProcessFaults(
  fleet: OperatorFleet,
  { weather, clock, log }: FaultDependencies,
  keepsMode: boolean,
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
    if (leader !== undefined && weather.strikes('reconfigure')) {
      fleet.settings = otherSettings(fleet.settings, weather.source('reconfigure'), keepsMode)
      log.record('fault', `reconfigure ${JSON.stringify(fleet.settings)}`)
      for (const each of fleet.running()) void each.stop()
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
    if (leader !== undefined && weather.strikes('starvation')) {
      const random = weather.source('starvation')
      const ms = integerBetween(random, minute, 5 * minute)
      log.record('fault', `starvation ${leader.name} ${ms}`)
      starve(leader, random, clock.monotonic() + ms)
    }
    clock.after(stepMs, step)
  }
  /** Pauses are shorter than renewals may be late, so that the process keeps its lease. */
  const starve = (process: OperatorProcess, random: Random, untilMs: number): void => {
    if (isStopped || clock.monotonic() >= untilMs) return
    const standsMs = integerBetween(random, 500, 7000)
    process.clock.pause(standsMs)
    clock.after(standsMs + integerBetween(random, 50, 1000), () => starve(process, random, untilMs))
  }
  clock.after(stepMs, step)
  return () => {
    isStopped = true
    for (const each of fleet.running()) each.clock.skewMs = 0
  }
}
