import { barePod, deployment, type Draw, type Item, type PodParts } from './objects.ts'

/** Pods with one kind of constraint, placed in an otherwise empty cluster. */
export interface Round {
  /** Also the name of its namespace, `proof-<kind>`, and the label of its random source. */
  readonly kind: string
  /** Further namespaces and their labels. */
  readonly namespaces?: Readonly<Record<string, Readonly<Record<string, string>>>>
  readonly items: (make: Maker, draw: Draw) => readonly Item[]
}

/** Builders that fill in the namespace of a round. */
export interface Maker {
  readonly namespace: string
  readonly pod: (parts: Omit<PodParts, 'namespace'>) => Item
  readonly deployment: (replicas: number, parts: Omit<PodParts, 'namespace'>) => Item
}

export const namespaceOf = (kind: string): string => `proof-${kind}`

export function makerOf(kind: string): Maker {
  const namespace = namespaceOf(kind)
  return {
    namespace,
    pod: (parts) => barePod({ namespace, ...parts }),
    deployment: (replicas, parts) => deployment(replicas, { namespace, ...parts }),
  }
}
