/** What a resource with replicas says of itself as a node group. */
import { ownValue } from '@tenon/api'
import { parseDuration } from '@tenon/api/duration'
import type { NodeGroupOptions } from '@tenon/provider'
import { shortened } from '../catalogue/capacity.ts'
import { type HubKey, hubKeyOf, hubText } from '../hub/keys.ts'
import { type ClusterApiNames, fixedNames } from '../names.ts'
import type { MachineDeployment, MachinePool, MachineSet } from '../objects.ts'

export const groupKinds = ['MachineDeployment', 'MachineSet', 'MachinePool'] as const

/** Kinds that can be node groups. */
export type GroupKind = (typeof groupKinds)[number]

/** A resource with replicas. */
export type Scalable = MachineDeployment & MachineSet & MachinePool

/** Names a group. */
export interface GroupRef extends HubKey {
  readonly kind: GroupKind
}

/** As in metrics, events and the priority expander: `MachineDeployment/default/md-0`. */
export function groupIdOf({ kind, ...key }: GroupRef): string {
  return `${kind}/${hubText(key)}`
}

export function refOf(kind: GroupKind, object: Scalable): GroupRef {
  return { kind, ...hubKeyOf(object) }
}

/** The bounds of a resource. */
export type Bounds =
  /** It is no group. */
  | { readonly kind: 'none' }
  | { readonly kind: 'bounds'; readonly min: number; readonly max: number }
  /** `reason` names annotation and value. */
  | { readonly kind: 'invalid'; readonly reason: string }

export function boundsOf(
  { metadata: { annotations } }: Scalable,
  { minSize, maxSize }: Pick<ClusterApiNames, 'minSize' | 'maxSize'>,
): Bounds {
  const [minText, maxText] = [ownValue(annotations, minSize), ownValue(annotations, maxSize)]
  if (minText === undefined && maxText === undefined) return { kind: 'none' }
  for (const [annotation, text] of [
    [minSize, minText],
    [maxSize, maxText],
  ] as const)
    if (text !== undefined && !/^\+?\d{1,9}$/.test(text))
      return {
        kind: 'invalid',
        reason: `annotation ${annotation} is "${shortened(text)}", which is not an integer of 0 or more; write one such as 3`,
      }
  const [min, max] = [Number(minText ?? 0), Number(maxText ?? 0)]
  if (maxText === undefined && min > 0)
    return {
      kind: 'invalid',
      reason: `annotation ${minSize} is "${minText ?? ''}", but annotation ${maxSize} is missing; set it`,
    }
  if (max === 0 && min === 0) return { kind: 'none' }
  if (max < min)
    return {
      kind: 'invalid',
      reason: `annotation ${maxSize} is "${maxText ?? ''}", less than "${minText ?? ''}" of annotation ${minSize}; raise it`,
    }
  return { kind: 'bounds', min, max }
}

/** Who else sets its replicas, or takes its Machines: clauses without a full stop. */
export function ownerWarnings(
  { metadata: { annotations, labels } }: Scalable,
  { member }: Pick<ClusterApiNames, 'member'>,
): readonly string[] {
  const manager = ownValue(annotations, fixedNames.replicasManagedBy)
  return [
    ...(manager === undefined || manager === 'false'
      ? []
      : [
          `annotation ${fixedNames.replicasManagedBy} says that ${manager || 'someone else'} sets its replicas: remove one of that annotation and those of the group`,
        ]),
    ...(ownValue(labels, member) === undefined
      ? []
      : [
          `label ${member} gives its Machines to tenon controller: remove the label or the annotations of the group`,
        ]),
  ]
}

/** The MachineSets of a MachineDeployment that a rollout has not emptied yet: a clause; undefined without one. */
export function rolloutOf(sets: readonly MachineSet[]): string | undefined {
  const revisions = new Map(
    sets.map((set) => {
      const text = ownValue(set.metadata.annotations, fixedNames.revision) ?? ''
      return [set, /^\d+$/.test(text) ? Number(text) : Number.NaN]
    }),
  )
  const highest = Math.max(...[...revisions.values()].filter((revision) => !Number.isNaN(revision)))
  for (const [set, revision] of revisions) {
    const isFilled = (set.spec?.replicas ?? 0) > 0 || (set.status?.replicas ?? 0) > 0
    if (isFilled && revision !== highest)
      return `it is rolling: MachineSet ${set.metadata.name} of an earlier revision still has Machines`
  }
  return undefined
}

const optionNames = {
  scaledownutilizationthreshold: 'scaleDownUtilizationThreshold',
  scaledowngpuutilizationthreshold: 'scaleDownGpuUtilizationThreshold',
  scaledownunneededtime: 'scaleDownUnneededMs',
  scaledownunreadytime: 'scaleDownUnreadyMs',
  maxnodeprovisiontime: 'maxNodeProvisionMs',
  maxnodestartuptime: 'maxNodeStartupMs',
} as const satisfies Readonly<Record<string, keyof NodeGroupOptions>>

/** Options in annotations; a value that cannot be read is a warning, and the flag applies. */
export function groupOptionsOf(
  { metadata: { annotations } }: Scalable,
  { group }: Pick<ClusterApiNames, 'group'>,
): { readonly options: NodeGroupOptions; readonly warnings: readonly string[] } {
  const warnings: string[] = []
  const options: { -readonly [name in keyof NodeGroupOptions]: NodeGroupOptions[name] } = {}
  for (const [key, name] of Object.entries(optionNames)) {
    const annotation = `${group}/autoscaling-options-${key}`
    const text = (ownValue(annotations, annotation) ?? '').toLowerCase()
    if (text === '') continue
    const isTime = name.endsWith('Ms')
    const value = isTime ? parseDuration(text) : numberIn(text)
    if (value !== undefined && value >= 0) options[name] = value
    else
      warnings.push(
        `annotation ${annotation} is "${shortened(text)}" and is ignored; write ${isTime ? 'a duration such as 10m' : 'a number such as 0.5'}`,
      )
  }
  return { options, warnings }
}

function numberIn(text: string): number | undefined {
  return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/.test(text) ? Number(text) : undefined
}
