/** How often the parts of a run check and report; expensive checks are rarer in large worlds. */
import type { DevClusterOptions } from '@tenon/devcluster'
import type { Exoscale, ExoscaleSettings } from '@tenon/simulator-exoscale'
import type { Settings } from '@tenon/operator'
import { isLarge, type Story } from './story.ts'
import { csiDriver } from './workload/applications.ts'

/** Intervals of one run. */
export interface Pace {
  readonly cluster: Pick<
    DevClusterOptions<Exoscale>,
    'kubelets' | 'controllers' | 'scheduler' | 'recordsOwners'
  >
  readonly cloud: Partial<ExoscaleSettings>
  readonly election: {
    readonly leaseDurationMs: number
    readonly renewDeadlineMs: number
    readonly retryPeriodMs: number
  }
  readonly settings: Partial<Settings>
  /** Whether controllers write Events. */
  readonly writesEvents: boolean
  /** Minutes between checks of metrics. */
  readonly scrapeMinutes: number
}

/**
 * Heartbeats at a third of their usual rate. In large worlds: heartbeats at a thirtieth, lease renewals every
 * 20 s, pending pods batched for three seconds and retried every ten minutes, disruption checks every minute
 * while there is nothing to do (a longer interval would not replace a drifted fleet within the calm phase),
 * drift checks every half hour, controllers of many pods every five seconds, no Events, no metrics of single
 * objects, and fewer scrapes.
 */
export function paceOf(story: Story): Pace {
  const large = isLarge(story)
  const beatMs = large ? 300_000 : 30_000
  return {
    cluster: {
      // Half of every object, and nothing in the world reads it.
      recordsOwners: false,
      kubelets: {
        leaseRenewMs: beatMs,
        leaseDurationSeconds: (4 * beatMs) / 1000,
        statusReportMs: large ? 3_600_000 : 600_000,
        csiDrivers: [{ name: csiDriver, volumesPerNode: 16 }],
      },
      controllers: {
        nodeMonitorGraceMs: 3.5 * beatMs,
        nodeStartupGraceMs: 4 * beatMs,
        terminatedPodThreshold: 200,
        recordsEvents: !large,
        ...(large && { leastRestMs: 5000 }),
      },
      ...(large && { scheduler: { eventsPerSecond: 0, eventBurst: 0 } }),
    },
    // Changed nodes are checked at once; this check finds nodes whose instances are gone.
    cloud: large ? { cloudControllerPeriodMs: 180_000 } : {},
    election: large
      ? { leaseDurationMs: 120_000, renewDeadlineMs: 80_000, retryPeriodMs: 20_000 }
      : { leaseDurationMs: 15_000, renewDeadlineMs: 10_000, retryPeriodMs: 2000 },
    settings: large
      ? {
          batchIdleMs: 3000,
          pendingRetryMs: 600_000,
          disruptionPollMs: 60_000,
          driftPeriodMs: 1_800_000,
          clusterStateObservability: false,
        }
      : {},
    writesEvents: !large,
    scrapeMinutes: large ? 30 : 10,
  }
}
