/** Whether a MachineDeployment may have more replicas (cluster-api.md 5.2, 18). */
import { ownValue, type Unavailability } from '@tenon/api'
import type { ClusterApiNames } from '../names.ts'
import type { MachineDeployment } from '../objects.ts'
import type { Findings } from './findings.ts'

/** Most replicas that it may have; undefined when nothing bounds it. */
export function maxReplicasOf(
  { metadata: { annotations } }: MachineDeployment,
  { maxSize }: Pick<ClusterApiNames, 'maxSize'>,
  findings: Findings,
): number | undefined {
  const text = ownValue(annotations, maxSize)
  if (text === undefined) return undefined
  if (/^[+-]?\d{1,9}$/.test(text)) return Number(text)
  findings.warnings.push(`annotation ${maxSize} is not an integer and is ignored; use an integer such as 10`)
  return undefined
}

/** Replicas that it is to have; a number that is not set counts as none. */
export function replicasOf({ spec }: MachineDeployment): number {
  return spec?.replicas ?? 0
}

/** Why it cannot grow now; undefined when it can. */
export function unavailabilityOf(
  deployment: MachineDeployment,
  { maxSize, paused }: Pick<ClusterApiNames, 'maxSize' | 'paused'>,
  maxReplicas: number | undefined,
): Unavailability | undefined {
  const { metadata, spec } = deployment
  const named = `MachineDeployment ${metadata.namespace ?? ''}/${metadata.name}`
  if (metadata.deletionTimestamp !== undefined) return { because: `${named} is being deleted` }
  if (spec?.paused === true) return { because: `${named} is paused by spec.paused` }
  if (ownValue(metadata.annotations, paused) !== undefined)
    return { because: `${named} is paused by annotation ${paused}` }
  const replicas = replicasOf(deployment)
  if (maxReplicas === undefined || replicas < maxReplicas) return undefined
  return {
    because: `${named} has ${replicas} of at most ${Math.max(0, maxReplicas)} replicas (annotation ${maxSize})`,
  }
}
