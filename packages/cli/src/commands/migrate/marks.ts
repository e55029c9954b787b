/** What a migration stores on Nodes: enough for a second run to go on after the first was killed (adoption.md 2). */
import { isRecord, kinds, type Node, ownValue } from '@tenon/api'
import type { KubeClient } from '@tenon/kube'

/** On every node of the source. Without it a node is new; with it and schedulable, a person has uncordoned it. */
const migratingAnnotation = 'tenon.sh/migrating'
/** Whether the migration has cordoned the node, or somebody before it. */
const cordonedBy = { migration: 'cordoned', others: 'found-cordoned' } as const
/** On the node being drained: how many Ready pods each workload had before. */
const workloadsAnnotation = 'tenon.sh/migrating-workloads'

/** A workload with pods on a drained node. */
export interface Workload {
  readonly apiVersion: string
  readonly kind: string
  readonly namespace: string
  readonly name: string
  readonly uid: string
  /** Ready pods in the cluster before the first was evicted. */
  readonly ready: number
}

/** `leaving`: the migration drains it. `kept`: a person has uncordoned it. */
export type Mark = 'new' | 'leaving' | 'kept'

export function markOf({ metadata, spec }: Node): Mark {
  if (ownValue(metadata.annotations, migratingAnnotation) === undefined) return 'new'
  return spec?.unschedulable === true ? 'leaving' : 'kept'
}

/** Cordons a node. One patch, so that no node is cordoned without the mark. */
export async function cordon(
  client: Pick<KubeClient, 'patch'>,
  { metadata: { name }, spec }: Node,
): Promise<void> {
  const by = spec?.unschedulable === true ? cordonedBy.others : cordonedBy.migration
  const annotations = { [migratingAnnotation]: by }
  await client.patch(kinds.node, { name }, { metadata: { annotations }, spec: { unschedulable: true } })
}

/** Takes a mark off, and the cordon unless it was there before. */
export async function unmark(
  client: Pick<KubeClient, 'patch'>,
  { metadata: { name, annotations } }: Node,
): Promise<void> {
  const isOurs = ownValue(annotations, migratingAnnotation) === cordonedBy.migration
  await client.patch(
    kinds.node,
    { name },
    {
      metadata: { annotations: { [migratingAnnotation]: null, [workloadsAnnotation]: null } },
      ...(isOurs && { spec: { unschedulable: null } }),
    },
  )
}

/** Undefined for a node whose drain has not begun, or whose annotation somebody has changed. */
export function recordedWorkloads({ metadata }: Node): readonly Workload[] | undefined {
  let read: unknown
  try {
    read = JSON.parse(ownValue(metadata.annotations, workloadsAnnotation) ?? '')
  } catch {
    return undefined
  }
  return Array.isArray(read) && read.every(isWorkload) ? read : undefined
}

export async function recordWorkloads(
  client: Pick<KubeClient, 'patch'>,
  { metadata: { name } }: Node,
  workloads: readonly Workload[],
): Promise<void> {
  const annotations = { [workloadsAnnotation]: JSON.stringify(workloads) }
  await client.patch(kinds.node, { name }, { metadata: { annotations } })
}

function isWorkload(value: unknown): value is Workload {
  if (!isRecord(value)) return false
  const texts = ['apiVersion', 'kind', 'namespace', 'name', 'uid']
  return (
    texts.every((key) => typeof ownValue(value, key) === 'string') &&
    Number.isSafeInteger(value['ready']) &&
    Number(value['ready']) >= 0
  )
}
