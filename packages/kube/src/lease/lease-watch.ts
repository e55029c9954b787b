/** Notifies a candidate when a lease is renewed or released, so that it need not wait for its next read. */
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
  /** Pause before a watch that ended or failed is reopened. */
  readonly pauseMs: number
  /** The lease as last seen; nothing is watched while there is none. */
  readonly seen: () => Lease | undefined
  /** Called with every later state of the lease; undefined if it was deleted. */
  readonly onChange: (lease: Lease | undefined) => void
}

/** The requested timeout of a watch; a server that ignores it is not waited for much longer. */
const watchSeconds = 120
const watchLimitMs = 150_000
/** Permissions rarely change. */
const forbiddenPauseMs = 300_000

/**
 * Watches the lease until `signal` aborts. It is only a hint: the candidate also reads the lease by itself, so a watch
 * that fails or is forbidden only costs time.
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

/** A sleep only ends early when the candidacy ends. */
function ended(): void {}
