/** Which resources of the hub may be groups: `--node-group-auto-discovery`. */
import { type KubeObject, ownValue, setOwn } from '@tenon/api'
import { ProviderSettingError } from '@tenon/provider'
import type { ClusterApiNames } from '../names.ts'

/** One value of the flag. */
export interface DiscoverySpec {
  readonly clusterName?: string
  readonly namespace?: string
  /** Labels of the resource itself; all must have these values. */
  readonly labels: Readonly<Record<string, string>>
}

const flag = '--node-group-auto-discovery'
const example = 'write clusterapi:namespace=NAMESPACE,clusterName=NAME,LABEL=VALUE, each part optional'

/** @throws ProviderSettingError for a malformed value. */
export function parseDiscoverySpec(text: string): DiscoverySpec {
  const [cloud, list, ...more] = text.split(':')
  if (cloud !== 'clusterapi' || list === undefined || more.length > 0)
    throw new ProviderSettingError(`${flag} is "${text}", which is not clusterapi:PARTS; ${example}`)
  const labels: Record<string, string> = {}
  let [clusterName, namespace] = ['', '']
  for (const part of list.split(',')) {
    if (part === '') continue
    const [key = '', value, ...rest] = part.split('=')
    if (value === undefined || rest.length > 0 || key === '')
      throw new ProviderSettingError(`${flag} is "${text}": "${part}" is not KEY=VALUE; ${example}`)
    if (key === 'clusterName') clusterName = value
    else if (key === 'namespace') namespace = value
    else setOwn(labels, key, value)
  }
  return { labels, ...(clusterName !== '' && { clusterName }), ...(namespace !== '' && { namespace }) }
}

/** The namespaces to watch; undefined for all of them. */
export function namespacesOf(specs: readonly DiscoverySpec[]): readonly string[] | undefined {
  const named = specs.flatMap(({ namespace }) => namespace ?? [])
  return named.length === 0 || named.length < specs.length ? undefined : [...new Set(named)]
}

/** Specs that match a resource; without any spec, everything matches. */
export function matchesSpec(object: Owned, spec: DiscoverySpec, names: ClusterApiNames): boolean {
  const { labels, namespace } = object.metadata
  return (
    (spec.namespace === undefined || spec.namespace === namespace) &&
    (spec.clusterName === undefined || spec.clusterName === clusterNameOf(object, names)) &&
    Object.entries(spec.labels).every(([key, value]) => ownValue(labels, key) === value)
  )
}

/** An object that belongs to a Cluster. */
export type Owned = KubeObject & { readonly spec?: { readonly clusterName?: string } }

/** Empty if it names none. */
export function clusterNameOf({ metadata, spec }: Owned, { clusterName }: ClusterApiNames): string {
  return spec?.clusterName ?? ownValue(metadata.labels, clusterName) ?? ''
}

/** Identifies a Cluster: two in different namespaces may have one name. */
export function clusterKeyOf(object: Owned, names: ClusterApiNames): string {
  return `${object.metadata.namespace ?? ''}/${clusterNameOf(object, names)}`
}
