/** Converts nodepools and Instance Pools to groups for `tenon init`. */
import type { Taint } from '@tenon/api'
import type { ExistingGroup } from '@tenon/provider'
import type { ExoscaleInstanceType, InstancePool, Reference, SksNodepool } from '../api/types.ts'
import { publishedTypes } from '../catalogue/published-catalogue.ts'
import type { ExoscaleNodeClassSpec, SelectorTerm } from '../nodeclass/types.ts'

type Types = readonly ExoscaleInstanceType[]

/** What both kinds of pools say about their instances. */
type Shape = Pick<
  InstancePool,
  'instance-type' | 'disk-size' | 'security-groups' | 'anti-affinity-groups' | 'private-networks'
>

const effects: ReadonlySet<string> = new Set(['NoSchedule', 'PreferNoSchedule', 'NoExecute'])

/** Undefined if its instance type is unknown. */
export function nodepoolGroup(nodepool: SksNodepool, types: Types): ExistingGroup | undefined {
  const { id, name = id, size, labels = {} } = nodepool
  const poolId = nodepool['instance-pool']?.id
  const instanceType = typeNameOf(nodepool, types)
  if (instanceType === undefined) return undefined
  return {
    source: 'SKS nodepool',
    name,
    otherNames: [id, ...(poolId === undefined ? [] : [poolId])],
    instanceType,
    ...(size !== undefined && { size }),
    labels,
    taints: taintsOf(nodepool),
    nodeClassSpec: { ...nodeClassSpecOf(instanceType), ...shapeOf(nodepool) },
    remarks: [],
  }
}

/** Undefined if its instance type is unknown. */
export function poolGroup(pool: InstancePool, types: Types): ExistingGroup | undefined {
  const { id, name = id, size } = pool
  const instanceType = typeNameOf(pool, types)
  if (instanceType === undefined) return undefined
  return {
    source: 'Instance Pool',
    name,
    otherNames: [id],
    instanceType,
    ...(size !== undefined && { size }),
    labels: {},
    taints: [],
    nodeClassSpec: { ...nodeClassSpecOf(instanceType), ...shapeOf(pool) },
    remarks: ['What its user data set up is not known: labels and taints of its nodes are not copied.'],
  }
}

/** GPU types need the template variant with the driver. */
export function nodeClassSpecOf(instanceType: string): ExoscaleNodeClassSpec {
  const gpus = publishedTypes.find(({ name }) => name === instanceType)?.gpus ?? 0
  return { imageTemplateSelector: { variant: gpus > 0 ? 'nvidia' : 'standard' }, diskSize: 50 }
}

function shapeOf(shape: Shape): ExoscaleNodeClassSpec {
  const { 'disk-size': diskSize } = shape
  const securityGroups = terms(shape['security-groups'])
  const antiAffinityGroups = terms(shape['anti-affinity-groups'])
  const privateNetworks = terms(shape['private-networks'])
  return {
    ...(diskSize !== undefined && { diskSize }),
    ...(securityGroups.length > 0 && { securityGroupSelectorTerms: securityGroups }),
    ...(antiAffinityGroups.length > 0 && { antiAffinityGroupSelectorTerms: antiAffinityGroups }),
    ...(privateNetworks.length > 0 && { privateNetworkSelectorTerms: privateNetworks }),
  }
}

function terms(references: readonly Reference[] = []): readonly SelectorTerm[] {
  return references.map(({ id }) => ({ id }))
}

function typeNameOf(shape: Shape, types: Types): string | undefined {
  const id = shape['instance-type']?.id
  const type = types.find((each) => each.id === id)
  return type?.family === undefined || type.size === undefined ? undefined : `${type.family}.${type.size}`
}

function taintsOf({ taints = {} }: SksNodepool): readonly Taint[] {
  return Object.entries(taints).flatMap(([key, { value, effect = '' }]) =>
    isEffect(effect) ? [{ key, effect, ...(value !== undefined && value !== '' && { value }) }] : [],
  )
}

function isEffect(text: string): text is Taint['effect'] {
  return effects.has(text)
}
