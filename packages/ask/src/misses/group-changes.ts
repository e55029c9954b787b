import { counted } from '@tenon/api'
import type { PodGroupInput, PodReason } from '@tenon/engine'
import type { OperatorCore } from '@tenon/operator'
import { type Change, pointer } from './change.ts'

/** Lets the group run with the pods that fit, or without its topology constraint. */
export function groupChanges(
  operator: Pick<OperatorCore, 'state'>,
  reason: PodReason | undefined,
): readonly Change[] {
  if (reason?.kind !== 'podGroup' && reason?.kind !== 'podGroupTopology') return []
  const { podGroups } = operator.state
  const ref = podGroups.ref(reason.group)
  const group = ref && podGroups.get(ref)
  if (ref === undefined || group === undefined) return []
  const target = { kind: 'podGroup', id: ref.id } as const
  const isOfKubernetes = ref.source === 'podgroup'
  const path = isOfKubernetes ? ['spec', 'schedulingPolicy', 'gang', 'minCount'] : ['spec', 'minMember']
  const changes: Change[] = []
  if (reason.kind === 'podGroup' && reason.placed + reason.bound > 0) {
    const least = reason.placed + reason.bound
    changes.push({
      kind: 'lowerMinCount',
      target,
      field: path.join('.'),
      words: `let ${ref.name} run with ${counted(least, 'pod')} instead of ${reason.minCount}${madeAgain(ref.source)}`,
      operations: [{ op: 'replace', path: pointer(...path), value: least }],
    })
  }
  if (group.topologyKey !== undefined)
    changes.push({
      kind: 'dropGroupTopology',
      target,
      field: 'spec.schedulingConstraints.topology',
      words: `let the pods of ${ref.name} run in several domains of ${group.topologyKey}${madeAgain(ref.source)}`,
      operations: [{ op: 'remove', path: pointer('spec', 'schedulingConstraints', 'topology') }],
    })
  return changes
}

/** PodGroups of Kubernetes are immutable. */
function madeAgain(source: string): string {
  return source === 'podgroup' ? ', which takes a new PodGroup' : ''
}

/** Applies the change to the engine's input of the group. */
export function changedGroup(group: PodGroupInput, { kind, operations }: Change): PodGroupInput {
  if (kind === 'dropGroupTopology') {
    const { topology: _, ...rest } = group
    return rest
  }
  const [operation] = operations
  const least: unknown = operation !== undefined && 'value' in operation ? operation.value : undefined
  return typeof least === 'number' ? { ...group, minCount: least } : group
}
