/** Names of objects of the hub. */
import type { KubeObject } from '@tenon/api'

/** Identifies an object of a known kind. */
export interface HubKey {
  readonly namespace: string
  readonly name: string
}

export function hubKeyOf({ metadata }: Pick<KubeObject, 'metadata'>): HubKey {
  return { namespace: metadata.namespace ?? '', name: metadata.name }
}

/** `namespace/name`, as in the annotation of a NodeClaim. */
export function hubText({ namespace, name }: HubKey): string {
  return `${namespace}/${name}`
}

/** Orders by namespace, then name. */
export function compareKeys(a: HubKey, b: HubKey): number {
  return compareTexts(a.namespace, b.namespace) || compareTexts(a.name, b.name)
}

/** Orders by code units. */
export function compareTexts(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

/** Oldest first, then by name. */
export function compareAges(
  { metadata: a }: Pick<KubeObject, 'metadata'>,
  { metadata: b }: Pick<KubeObject, 'metadata'>,
): number {
  return compareTexts(a.creationTimestamp ?? '', b.creationTimestamp ?? '') || compareTexts(a.name, b.name)
}
