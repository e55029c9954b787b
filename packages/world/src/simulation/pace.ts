/** How often the parts of a run look and report; what costs much and shows little is rarer in large worlds. */
import type { DevClusterOptions } from '@tenon/devcluster'
import type { Settings } from '@tenon/operator'
import type { Story } from './story.ts'
import { csiDriver } from './workload/applications.ts'

/** Times of one run. */
export interface Pace {
  readonly cluster: Pick<DevClusterOptions, 'kubelets' | 'controllers' | 'scheduler' | 'recordsOwners'>
  readonly election: {
    readonly leaseDurationMs: number
    readonly renewDeadlineMs: number
    readonly retryPeriodMs: number
  }
  readonly settings: Partial<Settings>
  /** A scrape is compared every so many minutes. */
  readonly scrapeMinutes: number
}

/** From so many nodes on a world is large. */
const largeNodes = 50

/**
 * Heartbeats at a third of their usual rate; in large worlds at a thirtieth, with a leader that renews
 * every 10 s, pending pods that ask again every minute, no Events but the operator's own, no
 * metrics of single objects, and fewer scrapes.
 */
export function paceOf({ nodes }: Story): Pace {
  const isLarge = nodes >= largeNodes
  const beatMs = isLarge ? 300_000 : 30_000
  return {
    cluster: {
      // Half of every object, and nothing in the world reads it.
      recordsOwners: false,
      kubelets: {
        leaseRenewMs: beatMs,
        leaseDurationSeconds: (4 * beatMs) / 1000,
        statusReportMs: Math.max(600_000, 4 * beatMs),
        csiDrivers: [{ name: csiDriver, volumesPerNode: 16 }],
      },
      controllers: {
        nodeMonitorGraceMs: 3.5 * beatMs,
        nodeStartupGraceMs: 4 * beatMs,
        terminatedPodThreshold: 200,
        recordsEvents: !isLarge,
      },
      ...(isLarge && { scheduler: { eventsPerSecond: 0, eventBurst: 0 } }),
    },
    election: isLarge
      ? { leaseDurationMs: 75_000, renewDeadlineMs: 50_000, retryPeriodMs: 10_000 }
      : { leaseDurationMs: 15_000, renewDeadlineMs: 10_000, retryPeriodMs: 2000 },
    settings: isLarge
      ? { pendingRetryMs: 60_000, disruptionPollMs: 30_000, clusterStateObservability: false }
      : {},
    scrapeMinutes: isLarge ? 30 : 10,
  }
}
