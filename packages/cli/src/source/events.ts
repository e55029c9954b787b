/** Events of one object. */
import { kinds, type KubeObject } from '@tenon/api'
import type { ObjectEvent, ObjectRef } from '@tenon/console'
import type { ClusterConnection } from '../kubectl/connection.ts'

interface StoredEvent extends KubeObject {
  readonly involvedObject?: { readonly uid?: string }
  readonly type?: string
  readonly reason?: string
  readonly message?: string
  readonly count?: number
  readonly lastTimestamp?: string | null
  readonly eventTime?: string | null
  readonly series?: { readonly count?: number; readonly lastObservedTime?: string } | null
}

/**
 * Newest first. Events of objects without a namespace are in any.
 * @param uid leaves out events of an earlier object of the same name; undefined if unknown.
 * @throws KubeError if they cannot be listed.
 */
export async function eventsOf(
  { client }: Pick<ClusterConnection, 'client'>,
  { kind, name, namespace }: ObjectRef,
  uid: string | undefined,
  signal: AbortSignal,
): Promise<readonly ObjectEvent[]> {
  const events: readonly StoredEvent[] = await client.list(kinds.event, {
    fieldSelector: `involvedObject.kind=${kind},involvedObject.name=${name}`,
    signal,
    ...(namespace !== undefined && { namespace }),
  })
  // The kubelet and some controllers name a node where its uid belongs.
  const ofThis = new Set([undefined, '', uid, name])
  return events
    .filter(({ involvedObject }) => uid === undefined || ofThis.has(involvedObject?.uid))
    .map(shownEvent)
    .toSorted((a, b) => Date.parse(b.at ?? '') - Date.parse(a.at ?? ''))
}

function shownEvent(event: StoredEvent): ObjectEvent {
  const { count, eventTime, lastTimestamp, message = '', metadata, reason = '', series, type = '' } = event
  const at = series?.lastObservedTime ?? lastTimestamp ?? eventTime ?? metadata.creationTimestamp
  return { ...(at !== undefined && { at }), type, reason, message, count: series?.count ?? count ?? 1 }
}
