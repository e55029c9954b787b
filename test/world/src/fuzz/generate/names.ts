/** Names that users may choose: plain ones, or those that every JavaScript object inherits. */

/** Keys that a case uses for labels, taints, topologies, resources and so on. */
export interface Names {
  readonly team: string
  readonly rack: string
  readonly tier: string
  readonly taint: string
  /** Without a domain: the part of a resource name after the slash. */
  readonly device: string
  readonly version: string
}

export const plainNames: Names = {
  team: 'team',
  rack: 'rack',
  tier: 'tier',
  taint: 'dedicated',
  device: 'device',
  version: 'version',
}

/** Properties of every object or array that are valid label keys. */
export const inheritedNames = [
  'constructor',
  'toString',
  'valueOf',
  'hasOwnProperty',
  'isPrototypeOf',
  'propertyIsEnumerable',
  'toLocaleString',
  'length',
] as const

/** Assigns inherited names in an order that depends on `offset`. */
export function hostileNames(offset: number): Names {
  const name = (index: number): string =>
    inheritedNames[(offset + index) % inheritedNames.length] ?? inheritedNames[0]
  return {
    team: name(0),
    rack: name(1),
    tier: name(2),
    taint: name(3),
    device: name(4),
    version: name(5),
  }
}
