/** Objects for `tenon get`, from a snapshot or a live cluster. */
import {
  karpenterKinds,
  type KubeObject,
  kinds,
  matchesSelector,
  type NodeClaim,
  type Pod,
  type ResourceType,
} from '@tenon/api'
import { ofKind, type Snapshot } from '@tenon/ask'
import { isKubeError, type ListOptions } from '@tenon/kube'
import type { ClaimPrices, NodeDecision } from '@tenon/operator'
import { readText } from '@tenon/runtime'
import { KubectlError } from '../../errors.ts'
import type { Io } from '../../io.ts'
import { type ClusterConnection, namespaceOf } from '../../kubectl/connection.ts'
import type { ControllerReach } from '../../kubectl/controller.ts'
import type { SelectionFlags, SourceFlags } from '../../kubectl/flags.ts'
import { type NamedKind, nodeKind } from '../../kubectl/kinds.ts'
import { fieldMatch, labelSelectorOf } from '../../kubectl/selectors.ts'
import { reachOrTell } from '../../source/source.ts'
import { type Facts, liveFacts, snapshotFacts } from './facts.ts'

/** What a source gives. */
export interface Source {
  list(kind: NamedKind): Promise<readonly KubeObject[]>
  get(kind: NamedKind, name: string): Promise<KubeObject | undefined>
  /** For tables. */
  facts(asked: ReadonlySet<NamedKind>): Promise<Facts>
  /** For the table of NodePools. */
  claims(): Promise<readonly NodeClaim[]>
  /** Each object of a kind as it changes from now on, until Ctrl-C. */
  changes(kind: NamedKind): AsyncIterable<KubeObject>
}

export function snapshotSource(snapshot: Snapshot, flags: SelectionFlags): Source {
  const { selector, fieldSelector, allNamespaces, namespace = 'default' } = flags
  const labelled = selector === undefined ? undefined : labelSelectorOf(selector)
  const fielded = fieldSelector === undefined ? () => true : fieldMatch(fieldSelector)
  const isHere = ({ type }: NamedKind, { metadata }: KubeObject) =>
    !type.namespaced || allNamespaces === true || metadata.namespace === namespace
  const of = (kind: NamedKind) =>
    ofKind(snapshot, kind.type)
      .filter((object) => isHere(kind, object))
      .toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))
  return {
    list: (kind) =>
      Promise.resolve(
        of(kind).filter(
          (object) =>
            fielded(object) &&
            (labelled === undefined || matchesSelector(labelled, object.metadata.labels ?? {})),
        ),
      ),
    get: (kind, name) => Promise.resolve(of(kind).find(({ metadata }) => metadata.name === name)),
    facts: () => Promise.resolve(snapshotFacts(snapshot)),
    claims: () => Promise.resolve(ofKind(snapshot, karpenterKinds.nodeClaim)),
    changes: () => {
      throw new KubectlError('error: a snapshot does not change: leave out --watch')
    },
  }
}

function keyOf({ metadata }: KubeObject): string {
  return `${metadata.namespace ?? ''}/${metadata.name}`
}

/** Requests of a pod, and what it takes to know whether it counts. */
const podFields = {
  members: {
    metadata: true,
    spec: true,
    status: { members: { phase: true, conditions: true }, others: false },
  },
  others: false,
}

export function liveSource(
  io: Io,
  flags: SourceFlags & SelectionFlags,
  connection: ClusterConnection,
): Source {
  const { client, clock } = connection
  const { selector, fieldSelector } = flags
  const signal = io.interrupted
  const namespace = namespaceOf(flags, connection)
  const selection = {
    signal,
    ...(selector !== undefined && { labelSelector: labelSelectorOf(selector) }),
    ...(fieldSelector !== undefined && { fieldSelector }),
  }
  const claims = async () => await listServed(connection, signal)
  return {
    list: ({ type }) =>
      served(type.plural, () =>
        client.list(type, {
          ...selection,
          ...(type.namespaced && namespace !== undefined && { namespace }),
        }),
      ),
    get: ({ type }, name) =>
      client.get(
        type,
        { name, ...(type.namespaced && namespace !== undefined && { namespace }) },
        { signal },
      ),
    claims,
    changes: ({ type }) => {
      const scope = type.namespaced && namespace !== undefined ? { namespace } : {}
      return changesOf(connection, type, { ...selection, ...scope })
    },
    facts: async (asked) => {
      const reach = await reachOrTell(io, flags, connection, 'prices and reasons')
      const pods = asked.has(nodeKind) ? await podsOf(io, connection) : undefined
      const page = async <T>(path: string) =>
        reach === undefined ? undefined : await jsonPage<T>(reach, path, signal)
      const prices = await page<ClaimPrices>('/debug/prices')
      const decided = await page<{ readonly decisions: readonly NodeDecision[] }>('/debug/decisions')
      return liveFacts({
        nowMs: clock.now(),
        ...(prices !== undefined && { prices }),
        decisions: decided?.decisions ?? [],
        ...(pods !== undefined && { pods }),
        claims: await claims(),
      })
    },
  }
}

async function jsonPage<T>(reach: ControllerReach, path: string, signal: AbortSignal): Promise<T> {
  return JSON.parse(await readText(await reach.get(path, signal))) as T
}

/** Whoever may not list pods sees nodes all the same. */
async function podsOf(
  { err, interrupted }: Io,
  { client }: ClusterConnection,
): Promise<readonly Pod[] | undefined> {
  try {
    return await client.list(kinds.pod, {
      fields: podFields,
      fieldSelector: 'spec.nodeName!=',
      signal: interrupted,
    })
  } catch (error) {
    if (!isKubeError(error, 'forbidden')) throw error
    err(`note: without requests: the right is missing: list pods (${error.serverMessage ?? error.message})\n`)
    return undefined
  }
}

/** Without the definition, or the right, there are no claims to tell of. */
async function listServed({ client }: ClusterConnection, signal: AbortSignal): Promise<readonly NodeClaim[]> {
  try {
    return await client.list(karpenterKinds.nodeClaim, { signal })
  } catch (error) {
    if (isKubeError(error, 'notFound', 'other', 'forbidden')) return []
    throw error
  }
}

async function served<T>(plural: string, list: () => Promise<T>): Promise<T> {
  try {
    return await list()
  } catch (error) {
    if (!isKubeError(error) || error.status !== 404) throw error
    throw new KubectlError(`error: the server doesn't have a resource type "${plural}"`, { cause: error })
  }
}

/** Longer than API servers let a watch live. */
const watchSeconds = 3600

/** Begins again where the server ends a watch; what changed meanwhile is told then. */
async function* changesOf(
  { client }: ClusterConnection,
  type: ResourceType,
  selection: ListOptions & { readonly signal: AbortSignal },
): AsyncIterable<KubeObject> {
  const told = new Map<string, string | undefined>()
  const isNews = (object: KubeObject) => {
    const isNew = told.get(keyOf(object)) !== object.metadata.resourceVersion
    told.set(keyOf(object), object.metadata.resourceVersion)
    return isNew
  }
  for (let isFirst = true; !selection.signal.aborted; isFirst = false) {
    const { items, resourceVersion } = await client.listing(type, selection, (object) => object)
    for (const object of items) if (isNews(object) && !isFirst) yield object
    const rows = await client.watch(type, { ...selection, resourceVersion, timeoutSeconds: watchSeconds })
    for await (const row of rows)
      for (const event of row) if (event.kind !== 'bookmark' && isNews(event.object)) yield event.object
  }
}
