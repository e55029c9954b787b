/** Names that users may give, plain or such as every JavaScript object inherits. */

/** Keys that a case uses for labels, taints, topologies, resources and the like. */
export interface Names {
  readonly team: string
  readonly rack: string
  readonly tier: string
  readonly taint: string
  /** Without a domain; the part behind the slash of a resource. */
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

/** Valid as label keys, and properties of every object or array. */
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

/** Each name in place of another; what is drawn decides which. */
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
