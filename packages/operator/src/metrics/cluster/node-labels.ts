/** What series of nodes tell about their node (operations.md 9.2). */
import { wellKnownLabels, ownValue, setOwn } from '@tenon/api'

/** Names beside those that come from labels. */
const own = ['node_name', 'phase', 'managed']

/**
 * Label keys of nodes by the label of the metric that shows them, in order. Of two keys with the same end
 * the first one that a node has counts.
 * @param providerLabels keys that the provider adds to the core's.
 */
export function nodeLabelKeys(providerLabels: readonly string[]): ReadonlyMap<string, readonly string[]> {
  const keys = new Map<string, readonly string[]>()
  for (const key of new Set([...wellKnownLabels, ...providerLabels])) {
    const [, end, ...rest] = key.split('/')
    if (end === undefined || rest.length > 0) continue
    const name = end.toLowerCase().replaceAll('-', '_')
    // Others than these cannot be names of labels, and would keep the rest from being shown.
    if (!/^[a-z_][a-z0-9_]*$/.test(name) || own.includes(name) || name === 'resource_type') continue
    keys.set(name, [...(keys.get(name) ?? []), key])
  }
  return keys
}

/** Names of all labels of series about nodes. */
export function nodeLabelNames(providerLabels: readonly string[]): readonly string[] {
  return [...own, ...nodeLabelKeys(providerLabels).keys()]
}

/** The labels of one node; one without a value is empty. */
export function nodeLabelValues(
  keys: ReadonlyMap<string, readonly string[]>,
  node: {
    readonly name: string
    readonly phase: string
    readonly isManaged: boolean
    readonly labels: Readonly<Record<string, string>>
  },
): Readonly<Record<string, string>> {
  const values: Record<string, string> = {
    node_name: node.name,
    phase: node.phase,
    managed: String(node.isManaged),
  }
  for (const [name, from] of keys)
    setOwn(
      values,
      name,
      ownValue(node.labels, from.find((key) => ownValue(node.labels, key) !== undefined) ?? '') ?? '',
    )
  return values
}

/** A resource as metrics spell it: `ephemeral_storage`, `nvidia.com/gpu`. */
export function resourceLabel(resource: string): string {
  return resource.toLowerCase().replaceAll('-', '_')
}

/** An amount in canonical units as metrics show it: cores for `cpu`. */
export function shownAmount(resource: string, amount: number): number {
  return resource === 'cpu' ? amount / 1000 : amount
}
