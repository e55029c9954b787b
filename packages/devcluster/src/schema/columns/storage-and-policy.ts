import { ownValue } from '@tenon/api'
import type { TableColumn } from '../../contract.ts'
import { ageColumn, column, type Loose, nameColumn, orElse } from './cells.ts'

const accessModes: Readonly<Record<string, string>> = {
  ReadWriteOnce: 'RWO',
  ReadOnlyMany: 'ROX',
  ReadWriteMany: 'RWX',
  ReadWriteOncePod: 'RWOP',
}

function modes(list: readonly string[] | undefined): string {
  const given = new Set(list ?? [])
  return Object.keys(accessModes)
    .filter((mode) => given.has(mode))
    .map((mode) => ownValue(accessModes, mode))
    .join(',')
}

function deletionOr(object: Loose, phase: unknown): string {
  return object['metadata']?.deletionTimestamp === undefined ? orElse(phase, '') : 'Terminating'
}

function storageClassOf({ metadata, spec }: Loose): string {
  return metadata?.annotations?.['volume.beta.kubernetes.io/storage-class'] ?? spec?.storageClassName ?? ''
}

const attributesClassColumn = column('VolumeAttributesClass', 'string', ({ spec }) =>
  orElse(spec?.volumeAttributesClassName, '<unset>'),
)

const volumeMode = column('VolumeMode', 'string', ({ spec }) => orElse(spec?.volumeMode, '<unset>'), 1)

export const persistentVolumeColumns: readonly TableColumn[] = [
  nameColumn,
  column('Capacity', 'string', ({ spec }) => spec?.capacity?.storage ?? ''),
  column('Access Modes', 'string', ({ spec }) => modes(spec?.accessModes)),
  column('Reclaim Policy', 'string', ({ spec }) => orElse(spec?.persistentVolumeReclaimPolicy, '')),
  column('Status', 'string', (volume) => deletionOr(volume, volume['status']?.phase)),
  column('Claim', 'string', ({ spec }) =>
    spec?.claimRef === undefined ? '' : `${spec.claimRef.namespace}/${spec.claimRef.name}`,
  ),
  column('StorageClass', 'string', storageClassOf),
  attributesClassColumn,
  column('Reason', 'string', ({ status }) => orElse(status?.reason, '')),
  ageColumn,
  volumeMode,
]

export const persistentVolumeClaimColumns: readonly TableColumn[] = [
  nameColumn,
  column('Status', 'string', (claim) => deletionOr(claim, claim['status']?.phase)),
  column('Volume', 'string', ({ spec }) => orElse(spec?.volumeName, '')),
  column('Capacity', 'string', ({ spec, status }) =>
    spec?.volumeName ? (status?.capacity?.storage ?? '') : '',
  ),
  column('Access Modes', 'string', ({ spec, status }) =>
    spec?.volumeName ? modes(status?.accessModes) : '',
  ),
  column('StorageClass', 'string', storageClassOf),
  attributesClassColumn,
  ageColumn,
  volumeMode,
]

export const storageClassColumns: readonly TableColumn[] = [
  {
    ...nameColumn,
    cell: ({ metadata }) =>
      metadata.annotations?.['storageclass.kubernetes.io/is-default-class'] === 'true'
        ? `${metadata.name} (default)`
        : metadata.name,
  },
  column('Provisioner', 'string', ({ provisioner }) => provisioner),
  column('ReclaimPolicy', 'string', ({ reclaimPolicy }) => reclaimPolicy ?? 'Delete'),
  column('VolumeBindingMode', 'string', ({ volumeBindingMode }) => volumeBindingMode ?? 'Immediate'),
  column('AllowVolumeExpansion', 'boolean', ({ allowVolumeExpansion }) => allowVolumeExpansion === true),
  ageColumn,
]

export const volumeAttributesClassColumns: readonly TableColumn[] = [
  nameColumn,
  column('DriverName', 'string', ({ driverName }) => driverName),
  ageColumn,
]

export const csiNodeColumns: readonly TableColumn[] = [
  nameColumn,
  column('Drivers', 'integer', ({ spec }) => spec?.drivers?.length ?? 0),
  ageColumn,
]

export const csiDriverColumns: readonly TableColumn[] = [
  nameColumn,
  column('AttachRequired', 'boolean', ({ spec }) => spec?.attachRequired ?? true),
  column('PodInfoOnMount', 'boolean', ({ spec }) => spec?.podInfoOnMount ?? false),
  column('StorageCapacity', 'boolean', ({ spec }) => spec?.storageCapacity ?? false),
  column('TokenRequests', 'string', ({ spec }) =>
    (spec?.tokenRequests ?? []).length === 0
      ? '<unset>'
      : spec.tokenRequests.map((one: Loose) => one['audience']).join(','),
  ),
  column('RequiresRepublish', 'boolean', ({ spec }) => spec?.requiresRepublish ?? false),
  column('Modes', 'string', ({ spec }) => orElse((spec?.volumeLifecycleModes ?? []).join(','), '<none>')),
  ageColumn,
]

export const csiStorageCapacityColumns: readonly TableColumn[] = [
  nameColumn,
  column('StorageClassName', 'string', ({ storageClassName }) => storageClassName),
  column('Capacity', 'string', ({ capacity }) => orElse(capacity, '<unset>')),
]

export const volumeAttachmentColumns: readonly TableColumn[] = [
  nameColumn,
  column('Attacher', 'string', ({ spec }) => spec?.attacher),
  column('PV', 'string', ({ spec }) => orElse(spec?.source?.persistentVolumeName, '')),
  column('Node', 'string', ({ spec }) => spec?.nodeName),
  column('Attached', 'boolean', ({ status }) => status?.attached === true),
  ageColumn,
]

export const podDisruptionBudgetColumns: readonly TableColumn[] = [
  nameColumn,
  column('Min Available', 'string', ({ spec }) => orElse(spec?.minAvailable, 'N/A')),
  column('Max Unavailable', 'string', ({ spec }) => orElse(spec?.maxUnavailable, 'N/A')),
  column('Allowed Disruptions', 'integer', ({ status }) => status?.disruptionsAllowed ?? 0),
  ageColumn,
]

function usage(fields: (resource: string) => boolean): (quota: Loose) => string {
  return ({ spec, status }) =>
    Object.keys(status?.hard ?? spec?.hard ?? {})
      .filter(fields)
      .sort()
      .map(
        (resource) =>
          `${resource}: ${status?.used?.[resource] ?? 0}/${(status?.hard ?? spec.hard)[resource]}`,
      )
      .join(', ')
}

export const resourceQuotaColumns: readonly TableColumn[] = [
  nameColumn,
  column(
    'Request',
    'string',
    usage((resource) => !resource.startsWith('limits')),
  ),
  column(
    'Limit',
    'string',
    usage((resource) => resource.startsWith('limits')),
  ),
  ageColumn,
]

function metricTarget(target: Loose | undefined, current: Loose | undefined): string {
  if (target?.['averageUtilization'] !== undefined) {
    const now = current?.['averageUtilization']
    return `${now === undefined ? '<unknown>' : `${now}%`}/${target['averageUtilization']}%`
  }
  const field = target?.['averageValue'] === undefined ? 'value' : 'averageValue'
  const suffix = field === 'averageValue' ? ' (avg)' : ''
  return `${current?.[field] ?? '<unknown>'}/${target?.[field] ?? '<unknown>'}${suffix}`
}

function autoscalerTargets({ spec, status }: Loose): string {
  if (spec?.targetCPUUtilizationPercentage !== undefined) {
    const now = status?.currentCPUUtilizationPercentage
    return `cpu: ${now === undefined ? '<unknown>' : `${now}%`}/${spec.targetCPUUtilizationPercentage}%`
  }
  const texts = (spec?.metrics ?? []).map((metric: Loose, index: number) => {
    const kind = String(metric['type'] ?? '')
    const field = kind.charAt(0).toLowerCase() + kind.slice(1)
    const source: Loose = ownValue(metric, field) ?? {}
    const text = metricTarget(source['target'], status?.currentMetrics?.[index]?.[field]?.current)
    return source['name'] === undefined ? text : `${source['name']}: ${text}`
  })
  if (texts.length === 0) return '<none>'
  return texts.length > 2 ? `${texts.slice(0, 2).join(', ')} + ${texts.length - 2} more...` : texts.join(', ')
}

export const autoscalerColumns: readonly TableColumn[] = [
  nameColumn,
  column('Reference', 'string', ({ spec }) => `${spec?.scaleTargetRef?.kind}/${spec?.scaleTargetRef?.name}`),
  column('Targets', 'string', autoscalerTargets),
  column('MinPods', 'string', ({ spec }) => orElse(spec?.minReplicas, '<unset>')),
  column('MaxPods', 'integer', ({ spec }) => spec?.maxReplicas ?? 0),
  column('Replicas', 'integer', ({ status }) => status?.currentReplicas ?? 0),
  ageColumn,
]

function claimState({ status }: Loose): string {
  const states: string[] = []
  if (status?.allocation !== undefined) states.push('allocated')
  if ((status?.reservedFor ?? []).length > 0) states.push('reserved')
  return states.length === 0 ? 'pending' : states.join(',')
}

export const resourceClaimColumns: readonly TableColumn[] = [
  nameColumn,
  column('State', 'string', claimState),
  ageColumn,
]

export const resourceSliceColumns: readonly TableColumn[] = [
  nameColumn,
  column('Node', 'string', ({ spec }) => orElse(spec?.nodeName, '<none>')),
  column('Driver', 'string', ({ spec }) => spec?.driver),
  column('Pool', 'string', ({ spec }) => spec?.pool?.name),
  ageColumn,
]

export const flowSchemaColumns: readonly TableColumn[] = [
  nameColumn,
  column('PriorityLevel', 'string', ({ spec }) => spec?.priorityLevelConfiguration?.name),
  column('MatchingPrecedence', 'integer', ({ spec }) => spec?.matchingPrecedence ?? 0),
  column('DistinguisherMethod', 'string', ({ spec }) => orElse(spec?.distinguisherMethod?.type, '<none>')),
  ageColumn,
  column('MissingPL', 'string', ({ status }) => {
    const dangling = (status?.conditions ?? []).find((one: Loose) => one['type'] === 'Dangling')
    return dangling?.status ?? '?'
  }),
]
