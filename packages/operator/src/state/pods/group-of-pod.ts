/** Which group a pod says it belongs to (gangs.md 5.2, 6.3, 6.4). */
import { autoscalingKinds, ownValue, type Pod, podGroupKinds } from '@tenon/api'

/** What makes pods a group. */
export type GroupSource = 'podgroup' | 'coscheduling' | 'volcano' | 'request'

export interface GroupRef {
  readonly source: GroupSource
  readonly namespace: string
  readonly name: string
  /** `PLURAL.GROUP/NAMESPACE/NAME`: three kinds are called PodGroup. */
  readonly id: string
}

const coschedulingLabel = 'scheduling.x-k8s.io/pod-group'
const volcanoAnnotations = ['scheduling.k8s.io/group-name', 'scheduling.volcano.sh/group-name']

/** Undefined for a pod of no group, or one that stands for the room of a request; of a pod that cannot be read, as far as it says. */
export function groupOf({ metadata, spec }: Pod): GroupRef | undefined {
  const { namespace = '', labels, annotations } = metadata
  const given: unknown = (spec as Partial<Pod['spec']> | undefined)?.schedulingGroup?.podGroupName
  if (isName(given)) return refOf('podgroup', namespace, given)
  const label: unknown = ownValue(labels, coschedulingLabel)
  if (isName(label)) return refOf('coscheduling', namespace, label)
  for (const key of volcanoAnnotations) {
    const annotation: unknown = ownValue(annotations, key)
    if (isName(annotation)) return refOf('volcano', namespace, annotation)
  }
  return undefined
}

const prefixes: Readonly<Record<GroupSource, string>> = {
  podgroup: `podgroups.${podGroupKinds.kubernetes[0]?.group ?? ''}`,
  coscheduling: `podgroups.${podGroupKinds.coscheduling.group}`,
  volcano: `podgroups.${podGroupKinds.volcano.group}`,
  request: `provisioningrequests.${autoscalingKinds.provisioningRequest.group}`,
}
export const groupSources: readonly GroupSource[] = ['podgroup', 'coscheduling', 'volcano', 'request']

export function refOf(source: GroupSource, namespace: string, name: string): GroupRef {
  return { source, namespace, name, id: `${prefixes[source]}/${namespace}/${name}` }
}

/**
 * Why nothing becomes of the pods of a group that is not there.
 * @param problem what is wrong with the object; undefined where there is none.
 */
export function missingGroupText({ id }: GroupRef, problem: string | undefined): string {
  return problem === undefined
    ? `its ${id} does not exist; create it`
    : `its ${id} is invalid: ${problem}; correct it`
}

function isName(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}
