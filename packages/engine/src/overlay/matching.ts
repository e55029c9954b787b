/** Which types and offerings of which pools an overlay matches (scheduling.md 13.4). */
import {
  type InstanceType,
  labels,
  type NodeOverlay,
  type NodePool,
  parseResources,
  type Resources,
} from '@tenon/api'
import { canonicalKey, type EligibilityPolicy } from '../eligibility/lookups.ts'
import { intersection, oneOf, type ValueSet, valueSet } from '../requirements/requirement.ts'
import {
  compatible,
  labelRequirements,
  parseRequirements,
  type Requirements,
  requirementsOf,
} from '../requirements/requirements.ts'
import { offeringKey } from './overlaid-type.ts'

/** A pool with all instance types of its provider, before overlays. */
export interface OfferedPool {
  readonly nodePool: NodePool
  readonly instanceTypes: readonly InstanceType[]
  /** The unit of its prices, as named by the provider; undefined when it is unknown. */
  readonly priceUnit?: string | undefined
}

/** A value, and the last overlay that set it. */
export interface Setting<T> {
  readonly value: T
  readonly by: NodeOverlay
}

/** What overlays have set so far for one type of one pool. */
export interface TypeSettings {
  readonly prices: Map<string, Setting<string>>
  readonly resources: Map<string, Setting<number>>
}

/** A type in a pool that an overlay matches. */
export interface Match {
  readonly nodePool: string
  readonly instanceType: string
  readonly settings: TypeSettings
  /** Keys of the matching offerings; at least one. */
  readonly offerings: readonly string[]
}

/** An overlay with its parsed requirements. */
export interface CompiledOverlay {
  readonly overlay: NodeOverlay
  readonly requirements: Requirements
  readonly price: string | undefined
  readonly capacity: Resources
}

/** A type with its parsed requirements. */
export interface CompiledType {
  readonly requirements: Requirements
  readonly offerings: readonly { readonly key: string; readonly requirements: Requirements }[]
}

/** A pool with its requirements and what overlays set for its types. */
export interface CompiledPool {
  readonly nodePool: NodePool
  readonly instanceTypes: readonly InstanceType[]
  readonly priceUnit: string | undefined
  readonly requirements: Requirements
  /** By name of the type. */
  readonly settings: Map<string, TypeSettings>
}

const nothingUndefined: ReadonlySet<string> = new Set()

export function compilePool({ nodePool, instanceTypes, priceUnit }: OfferedPool): CompiledPool {
  const { name } = nodePool.metadata
  const tags = labelRequirements(nodePool.spec.template.metadata?.labels ?? {})
  return {
    nodePool,
    instanceTypes,
    priceUnit,
    requirements: requirementsOf([...tags.values(), oneOf(labels.nodePool, name)]),
    settings: new Map(),
  }
}

/** The overlay must be valid. */
export function compileOverlay(overlay: NodeOverlay, policy: EligibilityPolicy): CompiledOverlay {
  const { requirements, price, priceAdjustment, capacity } = overlay.spec
  return {
    overlay,
    requirements: requirementsOf(
      requirements.map((each) => valueSet({ ...each, key: canonicalKey(each.key, policy) })),
    ),
    price: price ?? priceAdjustment,
    capacity: parseResources(capacity),
  }
}

/** Compiles each type once, as pools often share their types. */
export function typeCompiler(): (type: InstanceType) => CompiledType {
  const known = new Map<InstanceType, CompiledType>()
  return (type) => {
    let compiled = known.get(type)
    if (compiled === undefined) {
      const offerings = type.offerings.map((offering) => ({
        key: offeringKey(offering),
        requirements: parseRequirements(offering.requirements),
      }))
      compiled = { requirements: parseRequirements(type.requirements), offerings }
      known.set(type, compiled)
    }
    return compiled
  }
}

/** The match of the overlay with a type in a pool; requirements of the pool do not matter. */
export function matchOf(
  { requirements }: CompiledOverlay,
  pool: CompiledPool,
  type: InstanceType,
  typeOf: (type: InstanceType) => CompiledType,
  { wellKnownLabels }: EligibilityPolicy,
): Match | undefined {
  const compiled = typeOf(type)
  const described = descriptionOf(requirements.keys(), pool.requirements, compiled.requirements)
  if (!compatible(described, requirements, nothingUndefined)) return undefined
  const offerings = compiled.offerings
    .filter((offering) => compatible(requirements, offering.requirements, wellKnownLabels))
    .map(({ key }) => key)
  if (offerings.length === 0) return undefined
  let settings = pool.settings.get(type.name)
  if (settings === undefined) {
    settings = { prices: new Map(), resources: new Map() }
    pool.settings.set(type.name, settings)
  }
  return { nodePool: pool.nodePool.metadata.name, instanceType: type.name, settings, offerings }
}

/** The values that both allow for `keys`. */
function descriptionOf(keys: Iterable<string>, a: Requirements, b: Requirements): Requirements {
  const sets = new Map<string, ValueSet>()
  for (const key of keys) {
    const [first, second] = [a.get(key), b.get(key)]
    const both = first === undefined || second === undefined ? (first ?? second) : intersection(first, second)
    if (both !== undefined) sets.set(key, both)
  }
  return sets
}
