/** Objects of a cluster, from the API server or a snapshot (ask.md 11). */
import type { KubeObject, ResourceType } from '@tenon/api'
import type { Snapshot } from '@tenon/ask'
import { ofKind } from '@tenon/ask/cost'
import { isKubeError, type ListOptions } from '@tenon/kube'
import { KubectlError } from '../errors.ts'
import { type ClusterConnection, namespaceOf } from '../kubectl/connection.ts'
import type { SelectionFlags } from '../kubectl/flags.ts'
import type { NamedKind } from '../kubectl/kinds.ts'
import { labelSelectorOf, selects } from '../kubectl/selectors.ts'

export interface ClusterObjects {
  /** The objects that the flags select. */
  list(kind: NamedKind): Promise<readonly KubeObject[]>
  get(kind: NamedKind, name: string): Promise<KubeObject | undefined>
  /** Objects of a kind as they change, until Ctrl-C. */
  changes(kind: NamedKind): AsyncIterable<KubeObject>
}

export function objectsOfSnapshot(snapshot: Snapshot, flags: SelectionFlags): ClusterObjects {
  const { allNamespaces, namespace = 'default' } = flags
  const isSelected = selects(flags)
  const of = ({ type }: NamedKind) =>
    ofKind(snapshot, type)
      .filter(
        ({ metadata }) => !type.namespaced || allNamespaces === true || metadata.namespace === namespace,
      )
      .toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))
  return {
    list: (kind) => Promise.resolve(of(kind).filter(isSelected)),
    get: (kind, name) => Promise.resolve(of(kind).find(({ metadata }) => metadata.name === name)),
    changes: () => {
      throw new KubectlError('error: a snapshot does not change: leave out --watch')
    },
  }
}

export function objectsOfCluster(
  connection: ClusterConnection,
  flags: SelectionFlags,
  signal: AbortSignal,
): ClusterObjects {
  const { client } = connection
  const { selector, fieldSelector } = flags
  const namespace = namespaceOf(flags, connection)
  const scopeOf = ({ namespaced }: ResourceType) =>
    namespaced && namespace !== undefined ? { namespace } : {}
  const selection = {
    signal,
    ...(selector !== undefined && { labelSelector: labelSelectorOf(selector) }),
    ...(fieldSelector !== undefined && { fieldSelector }),
  }
  return {
    list: ({ type }) => served(type.plural, () => client.list(type, { ...selection, ...scopeOf(type) })),
    get: ({ type }, name) => client.get(type, { name, ...scopeOf(type) }, { signal }),
    changes: ({ type }) => changesOf(connection, type, { ...selection, ...scopeOf(type) }),
  }
}

function keyOf({ metadata }: KubeObject): string {
  return `${metadata.namespace ?? ''}/${metadata.name}`
}

async function served<T>(plural: string, list: () => Promise<T>): Promise<T> {
  try {
    return await list()
  } catch (error) {
    if (!isKubeError(error) || error.status !== 404) throw error
    throw new KubectlError(`error: the server doesn't have a resource type "${plural}"`, { cause: error })
  }
}

/** Longer than API servers keep a watch open. */
const watchSeconds = 3600

/** Restarts the watch when the server ends it, and then yields what changed in between. */
async function* changesOf(
  { client }: ClusterConnection,
  type: ResourceType,
  selection: ListOptions & { readonly signal: AbortSignal },
): AsyncIterable<KubeObject> {
  const seen = new Map<string, string | undefined>()
  const isUnseen = (object: KubeObject) => {
    const isNew = seen.get(keyOf(object)) !== object.metadata.resourceVersion
    seen.set(keyOf(object), object.metadata.resourceVersion)
    return isNew
  }
  for (let isFirst = true; !selection.signal.aborted; isFirst = false) {
    const { items, resourceVersion } = await client.listing(type, selection, (object) => object)
    for (const object of items) if (isUnseen(object) && !isFirst) yield object
    const rows = await client.watch(type, { ...selection, resourceVersion, timeoutSeconds: watchSeconds })
    for await (const row of rows)
      for (const event of row) if (event.kind !== 'bookmark' && isUnseen(event.object)) yield event.object
  }
}
