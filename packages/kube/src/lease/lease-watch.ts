/** Tells a candidate at once when a lease is renewed or released, so that nobody waits for the next look at it. */
import { kinds, type Lease } from '@tenon/api'
import type { Clock, Logger } from '@tenon/runtime'
import { withDeadline } from '../abortable.ts'
import type { WatchingKubeClient } from '../client/client.ts'
import { isKubeError, KubeError, type ObjectKey } from '../contract.ts'

export interface LeaseWatchOptions {
  readonly client: Pick<WatchingKubeClient, 'watch'>
  readonly clock: Clock
  readonly logger: Logger
  readonly key: ObjectKey
  /** Pause before a watch that has ended or failed is opened again. */
  readonly pauseMs: number
  /** The lease as it was last seen; while there is none, nothing is watched. */
  readonly seen: () => Lease | undefined
  /** Called with every state of the lease from then on; undefined when it is gone. */
  readonly onChange: (lease: Lease | undefined) => void
}

/** A server that can, ends a watch after so long; one that does not, is not waited for much longer. */
const watchSeconds = 120
const watchLimitMs = 150_000
/** Rights change seldom. */
const forbiddenPauseMs = 300_000

/**
 * Watches the lease until `signal` aborts. Only a hint: whoever stands for the lease goes on looking at it by
 * itself, so that a watch that fails, or is not allowed, costs time and nothing else.
 */
export async function watchLease(options: LeaseWatchOptions, signal: AbortSignal): Promise<void> {
  const { clock, logger, pauseMs, seen } = options
  while (!signal.aborted) {
    let waitMs = pauseMs
    const resourceVersion = seen()?.metadata.resourceVersion
    try {
      if (resourceVersion !== undefined) {
        const late = () => new KubeError('transport', 0, 'the watch of the lease does not end')
        await withDeadline(clock, { ms: watchLimitMs, late, signal }, (limited) =>
          follow(options, resourceVersion, limited),
        )
      }
    } catch (error) {
      if (!signal.aborted) logger.debug('watch of the lease broken', { error })
      if (isKubeError(error, 'forbidden')) waitMs = Math.max(waitMs, forbiddenPauseMs)
    }
    await clock.sleep(waitMs, signal).catch(ended)
  }
}

async function follow(
  { client, key, onChange }: LeaseWatchOptions,
  resourceVersion: string,
  signal: AbortSignal,
): Promise<void> {
  const rows = await client.watch(kinds.lease, {
    ...(key.namespace !== undefined && { namespace: key.namespace }),
    fieldSelector: `metadata.name=${key.name}`,
    resourceVersion,
    timeoutSeconds: watchSeconds,
    signal,
    lane: 'urgent',
  })
  for await (const events of rows)
    for (const event of events) {
      if (event.kind === 'bookmark' || event.object.metadata.name !== key.name) continue
      onChange(event.kind === 'deleted' ? undefined : event.object)
    }
}

/** Only the end of the candidacy ends a sleep early. */
function ended(): void {}
