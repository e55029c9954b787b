/** Taints that the nodes of a MachineDeployment keep, and which NodePools expect them (cluster-api.md 6). */
import {
  isKnownEphemeralTaint,
  labelValueProblem,
  type NodeClaim,
  type NodePool,
  ownValue,
  qualifiedNameProblem,
  sameTaint,
  type Taint,
  taintText,
} from '@tenon/api'
import { type ClusterApiNames, capacityAnnotations } from '../names.ts'
import type { MachineDeployment } from '../objects.ts'
import { shortened } from './capacity.ts'
import type { Findings } from './findings.ts'

const effects = ['NoSchedule', 'PreferNoSchedule', 'NoExecute'] as const

/**
 * The taints of the template, or of the annotation if there is one. Invalid entries are left out and reported.
 */
export function nodeTaintsOf(
  { metadata, spec }: MachineDeployment,
  { uninitialized }: Pick<ClusterApiNames, 'uninitialized'>,
  findings: Findings,
): readonly Taint[] {
  const taints: Taint[] = []
  const add = (taint: Taint) => {
    const at = taints.findIndex((each) => sameTaint(each, taint))
    if (at < 0) taints.push(taint)
    else taints[at] = taint
  }
  for (const { key, value, effect } of spec?.template?.spec?.taints ?? [])
    add({ key, ...(value !== undefined && value !== '' && { value }), effect })
  const annotated = ownValue(metadata.annotations, capacityAnnotations.taints) ?? ''
  for (const text of annotated === '' ? [] : annotated.split(',')) {
    const taint = parseTaint(text.trim())
    if (taint !== undefined) add(taint)
    else
      findings.warnings.push(
        `annotation ${capacityAnnotations.taints}: "${shortened(text)}" is left out; write KEY=VALUE:EFFECT with NoSchedule, PreferNoSchedule or NoExecute`,
      )
  }
  // Cluster API removes its own taint once the node is ready.
  return taints.filter((taint) => !isKnownEphemeralTaint(taint) && taint.key !== uninitialized)
}

/** `key=value:effect` or `key:effect`; undefined if it is neither. */
function parseTaint(text: string): Taint | undefined {
  const [, key = '', value = '', named = ''] = /^([^=:]*)(?:=([^:]*))?:(\w+)$/.exec(text) ?? []
  const effect = effects.find((each) => each === named)
  if (effect === undefined) return undefined
  if (qualifiedNameProblem(key) !== undefined || labelValueProblem(value) !== undefined) return undefined
  return { key, ...(value !== '' && { value }), effect }
}

/** Taints that are known before a node exists. */
type Tainted = Pick<NodeClaim['spec'], 'taints' | 'startupTaints'>

/**
 * Hard taints that are neither in `taints` nor in `startupTaints`. Decisions only see the taints of NodePools, so pods
 * planned for such nodes would never run there.
 */
export function unforeseenTaints(
  taints: readonly Taint[],
  { taints: kept = [], startupTaints = [] }: Tainted,
): readonly Taint[] {
  const known = new Set([...kept, ...startupTaints].map(taintText))
  return taints.filter((taint) => taint.effect !== 'PreferNoSchedule' && !known.has(taintText(taint)))
}

/** Whether the template of a NodePool has all hard taints of a MachineDeployment's nodes. */
export function fitsPool(
  { taints }: { readonly taints: readonly Taint[] },
  { spec }: Pick<NodePool, 'spec'>,
): boolean {
  return unforeseenTaints(taints, spec.template.spec).length === 0
}

/** What a user must know about such taints; undefined if there are none. */
export function taintNotice(taints: readonly Taint[]): string | undefined {
  const texts = unforeseenTaints(taints, {}).map(taintText)
  if (texts.length === 0) return undefined
  return `its nodes have taints ${texts.join(', ')}: only NodePools get it that list them in spec.template.spec.taints or startupTaints`
}
