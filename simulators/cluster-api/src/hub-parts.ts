/** What all controllers of the simulated Cluster API share. */
import { type KubeObject, ownValue, type ResourceType } from '@tenon/api'
import type { LocalApi } from '@tenon/devcluster'
import { type Random, type Runtime, unit } from '@tenon/runtime'
import type { ClusterApiNames } from '@tenon/provider-cluster-api'
import type { SimulatedKinds } from './kinds.ts'
import type { ClusterApiSettings } from './settings.ts'

/** Pause between checks while a controller's manager is down. */
export const awayMs = 1_000

export interface HubParts {
  /** API server of the hub. */
  readonly api: LocalApi
  readonly runtime: Runtime
  readonly settings: ClusterApiSettings
  readonly names: ClusterApiNames
  readonly kinds: SimulatedKinds
}

interface OfCluster extends KubeObject {
  readonly spec?: { readonly clusterName?: string }
}

/**
 * Whether controllers ignore the object: it or its Cluster is paused, or there is no Cluster (cluster-api.md 18).
 * `spec.paused` of a MachineDeployment only stops rollouts.
 */
export function isPaused(
  { api, kinds, names }: Pick<HubParts, 'api' | 'kinds' | 'names'>,
  { metadata, spec }: OfCluster,
): boolean {
  if (ownValue(metadata.annotations, names.paused) !== undefined) return true
  const cluster = api.get(kinds.cluster, metadata.namespace, spec?.clusterName ?? '')
  return cluster === undefined || cluster.spec?.paused === true
}

/**
 * Replicas of an object that sets none, as the webhooks of Cluster API default them.
 * @param before its replicas until they were removed.
 */
export function defaultReplicas(
  { maxSize, minSize }: ClusterApiNames,
  annotations: Readonly<Record<string, string>> | undefined,
  before: number | undefined,
): number {
  const [min = Number.NaN, max = Number.NaN] = [minSize, maxSize].map((key) =>
    Number.parseInt(ownValue(annotations, key) ?? '', 10),
  )
  if (Number.isNaN(min) || Number.isNaN(max)) return before ?? 1
  return Math.max(min, Math.min(max, before ?? min))
}

const letters = 'bcdfghjklmnpqrstvwxz2456789'

/** Five random characters for the name of a generated object. */
export function nameSuffix(random: Random): string {
  return Array.from({ length: 5 }, () => letters[Math.floor(unit(random) * letters.length)] ?? 'b').join('')
}

/** The latest version of the object; undefined if it is gone or replaced. */
export function latest<T extends KubeObject>(api: LocalApi, type: ResourceType<T>, object: T): T | undefined {
  const { namespace, name, uid } = object.metadata
  const found = api.get(type, namespace, name)
  return found?.metadata.uid === uid ? found : undefined
}

/** Adds a finalizer unless it exists. */
export function hold(api: LocalApi, type: ResourceType, object: KubeObject, finalizer: string): void {
  const { finalizers = [], namespace, name } = object.metadata
  if (!finalizers.includes(finalizer))
    api.patch(type, namespace, name, { metadata: { finalizers: [...finalizers, finalizer] } })
}

/** Removes a finalizer. */
export function release(api: LocalApi, type: ResourceType, object: KubeObject, finalizer: string): void {
  const { namespace, name } = object.metadata
  const { finalizers = [] } = api.get(type, namespace, name)?.metadata ?? {}
  if (!finalizers.includes(finalizer)) return
  const others = finalizers.filter((each) => each !== finalizer)
  api.patch(type, namespace, name, { metadata: { finalizers: others.length === 0 ? null : others } })
}
