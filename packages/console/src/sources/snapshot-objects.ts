/** Objects of a snapshot, for their pages. */
import type { Snapshot } from '@tenon/ask'
import type { ObjectReader } from '../answers/object.ts'
import type { ObjectRef } from '../model/object-ref.ts'

/** Kinds of which snapshots have every object. */
const wholeKinds: ReadonlySet<string> = new Set(['Node', 'NodeClaim', 'NodePool', 'Pod'])

/** @param latest the snapshot that is shown now. */
export function snapshotObjects(latest: () => Snapshot): ObjectReader {
  return {
    read: (ref) => {
      const object = latest().objects.find((each) => isNamed(ref, each))
      if (object !== undefined) return Promise.resolve({ kind: 'read', object })
      if (wholeKinds.has(ref.kind)) return Promise.resolve({ kind: 'gone' })
      return Promise.resolve({
        kind: 'unread',
        why: `a snapshot has only what decisions need, and not this ${ref.kind}`,
      })
    },
    events: () => Promise.resolve({ absent: 'a snapshot has no events' }),
  }
}

function isNamed(
  { group, kind, namespace, name }: ObjectRef,
  { apiVersion, kind: own, metadata }: Snapshot['objects'][number],
): boolean {
  if (own !== kind || metadata.name !== name) return false
  if (group !== undefined && !apiVersion.startsWith(`${group}/`)) return false
  return namespace === undefined || (metadata.namespace ?? 'default') === namespace
}
