/** What a NodeGroup asks for. Groups of others may lack any of it, or have it in another form. */
import type { NodeGroup } from './types.ts'

type Loose = Partial<Readonly<Record<keyof NodeGroup['spec'], unknown>>> | null | undefined

/** The flavor of the group's nodes; empty when it names none. */
export function flavorOf({ spec }: NodeGroup): string {
  const flavor = (spec as Loose)?.flavor
  return typeof flavor === 'string' ? flavor : ''
}

/** Nodes that the group asks for; undefined when it does not say. */
export function nodeCountOf({ spec }: NodeGroup): number | undefined {
  const count = (spec as Loose)?.nodeCount
  return typeof count === 'number' ? count : undefined
}
