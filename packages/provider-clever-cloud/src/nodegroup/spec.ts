/** The spec of a NodeGroup. In groups of other creators, fields may be absent or invalid. */
import type { NodeGroup } from './types.ts'

type Loose = Partial<Readonly<Record<keyof NodeGroup['spec'], unknown>>> | null | undefined

/** The flavor of the group's nodes; empty if absent. */
export function flavorOf({ spec }: NodeGroup): string {
  const flavor = (spec as Loose)?.flavor
  return typeof flavor === 'string' ? flavor : ''
}

/** The requested number of nodes; undefined if absent. */
export function nodeCountOf({ spec }: NodeGroup): number | undefined {
  const count = (spec as Loose)?.nodeCount
  return typeof count === 'number' ? count : undefined
}
