/** Whether a MachineDeployment may get more replicas (cluster-api.md 5.2, 18, reports-2.md 12). */
import { ownValue, type Unavailability } from '@tenon/api'
import type { ClusterApiNames } from '../names.ts'
import type { Cluster, MachineDeployment } from '../objects.ts'
import type { Findings } from './findings.ts'

/** Maximum replicas; undefined without a limit. */
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

/** Desired replicas; an absent number counts as 0. */
export function replicasOf({ spec }: MachineDeployment): number {
  return spec?.replicas ?? 0
}

/** Who else manages its replicas and would overwrite ours: a clause without a full stop. */
export function ownerOfReplicas(
  { metadata }: MachineDeployment,
  { topologyOwned, clusterName }: Pick<ClusterApiNames, 'topologyOwned' | 'clusterName'>,
): string | undefined {
  const owner = metadata.managedFields?.find(
    ({ operation, fieldsV1 }) => operation === 'Apply' && hasField(fieldsV1, 'f:spec', 'f:replicas'),
  )
  if (owner === undefined) return undefined
  const { manager = 'a field manager' } = owner
  if (ownValue(metadata.labels, topologyOwned) === undefined)
    return `its replicas belong to ${manager}, which applies them: leave spec.replicas out of what it applies`
  const cluster = ownValue(metadata.labels, clusterName) ?? ''
  return `its replicas belong to the topology of Cluster ${cluster}: leave replicas out of spec.topology.workers.machineDeployments there`
}

/** Who wrote its replicas last, by its managed fields. */
export function managerOfReplicas({ metadata }: MachineDeployment): string | undefined {
  return metadata.managedFields?.find(({ fieldsV1 }) => hasField(fieldsV1, 'f:spec', 'f:replicas'))?.manager
}

/** Only the managed fields about replicas. */
export function managersOfReplicas({ metadata }: MachineDeployment): typeof metadata.managedFields {
  return metadata.managedFields?.filter(({ fieldsV1 }) => hasField(fieldsV1, 'f:spec', 'f:replicas'))
}

function hasField(fields: unknown, ...path: readonly string[]): boolean {
  if (typeof fields !== 'object' || fields === null) return path.length === 0
  const [first, ...rest] = path
  return (
    first === undefined || (Object.hasOwn(fields, first) && hasField(Reflect.get(fields, first), ...rest))
  )
}

/** Why it or its Cluster creates no Machines whatever its replicas: a clause without a full stop. */
export function standstillOf(
  deployment: MachineDeployment,
  names: Pick<ClusterApiNames, 'paused' | 'topologyOwned' | 'clusterName'>,
  cluster?: Cluster,
): string | undefined {
  if (deployment.metadata.deletionTimestamp !== undefined) return 'it is being deleted'
  return pauseOf(deployment, names, cluster) ?? ownerOfReplicas(deployment, names)
}

/** Who paused it: a clause without a full stop; undefined if it is not paused. */
export function pauseOf(
  { metadata, spec }: MachineDeployment,
  { paused }: Pick<ClusterApiNames, 'paused'>,
  cluster?: Cluster,
): string | undefined {
  if (spec?.paused === true) return 'it is paused by spec.paused'
  if (ownValue(metadata.annotations, paused) !== undefined) return `it is paused by annotation ${paused}`
  if (cluster?.spec?.paused === true)
    return `its Cluster ${cluster.metadata.namespace ?? ''}/${cluster.metadata.name} is paused by spec.paused`
  return undefined
}

/** Why it cannot grow now; undefined if it can. */
export function unavailabilityOf(
  deployment: MachineDeployment,
  names: Pick<ClusterApiNames, 'maxSize' | 'paused' | 'topologyOwned' | 'clusterName'>,
  maxReplicas: number | undefined,
): Unavailability | undefined {
  const { metadata } = deployment
  const named = `MachineDeployment ${metadata.namespace ?? ''}/${metadata.name}`
  const standstill = standstillOf(deployment, names)
  if (standstill !== undefined) return { because: `${named}: ${standstill}` }
  const replicas = replicasOf(deployment)
  if (maxReplicas === undefined || replicas < maxReplicas) return undefined
  return {
    because: `${named} has ${replicas} of at most ${Math.max(0, maxReplicas)} replicas (annotation ${names.maxSize})`,
  }
}
