import { age } from '@tenon/api'
import type { TableColumn } from '../../contract.ts'
import { ageColumn, column, type Loose, nameColumn, orElse } from './cells.ts'

export const plainColumns: readonly TableColumn[] = [nameColumn, ageColumn]

/** NAME and CREATED AT, the columns of kinds without their own. */
export const createdAtColumns: readonly TableColumn[] = [
  nameColumn,
  column('Created At', 'date', ({ metadata }) => metadata?.creationTimestamp ?? null),
]

export const namespaceColumns: readonly TableColumn[] = [
  nameColumn,
  column('Status', 'string', ({ status }) => orElse(status?.phase, '')),
  ageColumn,
]

export const configMapColumns: readonly TableColumn[] = [
  nameColumn,
  column(
    'Data',
    'string',
    ({ data, binaryData }) => `${Object.keys(data ?? {}).length + Object.keys(binaryData ?? {}).length}`,
  ),
  ageColumn,
]

export const secretColumns: readonly TableColumn[] = [
  nameColumn,
  column('Type', 'string', ({ type }) => orElse(type, '')),
  column('Data', 'integer', ({ data }) => Object.keys(data ?? {}).length),
  ageColumn,
]

export const serviceAccountColumns: readonly TableColumn[] = [
  nameColumn,
  column('Secrets', 'integer', ({ secrets }) => secrets?.length ?? 0),
  ageColumn,
]

function lastSeen(event: Loose, nowMs: number): string {
  const seen = event['series']?.lastObservedTime ?? event['lastTimestamp'] ?? event['deprecatedLastTimestamp']
  return age(
    seen ?? event['firstTimestamp'] ?? event['deprecatedFirstTimestamp'] ?? event['eventTime'],
    nowMs,
  )
}

function firstSeen(event: Loose, nowMs: number): string {
  return age(event['firstTimestamp'] ?? event['deprecatedFirstTimestamp'] ?? event['eventTime'], nowMs)
}

function regarding(event: Loose): string {
  const object = event['involvedObject'] ?? event['regarding'] ?? {}
  const kind = String(object.kind ?? '').toLowerCase()
  return object.name ? `${kind}/${object.name}` : kind
}

function eventSource(event: Loose): string {
  const source = event['source'] ?? event['deprecatedSource'] ?? {}
  const component = source.component ?? event['reportingComponent'] ?? event['reportingController'] ?? ''
  const host = source.host ?? event['reportingInstance']
  return host ? `${component}, ${host}` : component
}

export const eventColumns: readonly TableColumn[] = [
  column('Last Seen', 'string', lastSeen),
  column('Type', 'string', ({ type }) => orElse(type, '')),
  column('Reason', 'string', ({ reason }) => orElse(reason, '')),
  column('Object', 'string', regarding),
  column(
    'Subobject',
    'string',
    ({ involvedObject, regarding: other }) => orElse((involvedObject ?? other)?.fieldPath, ''),
    1,
  ),
  column('Source', 'string', eventSource, 1),
  column('Message', 'string', ({ message, note }) => String(message ?? note ?? '').trim()),
  column('First Seen', 'string', firstSeen, 1),
  column(
    'Count',
    'string',
    (event) => event['series']?.count ?? event['count'] ?? event['deprecatedCount'] ?? 1,
    1,
  ),
  { ...nameColumn, priority: 1 },
]

export const leaseColumns: readonly TableColumn[] = [
  nameColumn,
  column('Holder', 'string', ({ spec }) => orElse(spec?.holderIdentity, '')),
  ageColumn,
]

export const priorityClassColumns: readonly TableColumn[] = [
  nameColumn,
  column('Value', 'integer', ({ value }) => value ?? 0),
  column('Global-Default', 'boolean', ({ globalDefault }) => globalDefault === true),
  ageColumn,
  column('PreemptionPolicy', 'string', ({ preemptionPolicy }) => orElse(preemptionPolicy, '')),
]

export const runtimeClassColumns: readonly TableColumn[] = [
  nameColumn,
  column('Handler', 'string', ({ handler }) => handler),
  ageColumn,
]

function subjects(kind: string): (binding: Loose) => string {
  return ({ subjects: list }) =>
    (list ?? [])
      .filter((one: Loose) => one['kind'] === kind)
      .map((one: Loose) => (kind === 'ServiceAccount' ? `${one['namespace']}/${one['name']}` : one['name']))
      .join(', ')
}

export const roleBindingColumns: readonly TableColumn[] = [
  nameColumn,
  column('Role', 'string', ({ roleRef }) => `${roleRef?.kind}/${roleRef?.name}`),
  ageColumn,
  column('Users', 'string', subjects('User'), 1),
  column('Groups', 'string', subjects('Group'), 1),
  column('ServiceAccounts', 'string', subjects('ServiceAccount'), 1),
]

export const signingRequestColumns: readonly TableColumn[] = [
  nameColumn,
  ageColumn,
  column('SignerName', 'string', ({ spec }) => spec?.signerName),
  column('Requestor', 'string', ({ spec }) => spec?.username),
  column('RequestedDuration', 'string', ({ spec }) =>
    spec?.expirationSeconds === undefined ? '<none>' : `${spec.expirationSeconds}s`,
  ),
  column('Condition', 'string', ({ status }) => {
    const types: string[] = (status?.conditions ?? []).map((one: Loose) => one['type'])
    const words = types.length === 0 ? ['Pending'] : types
    return [...words, ...(status?.certificate ? ['Issued'] : [])].join(',')
  }),
]

export const apiServiceColumns: readonly TableColumn[] = [
  nameColumn,
  column('Service', 'string', ({ spec }) =>
    spec?.service ? `${spec.service.namespace}/${spec.service.name}` : 'Local',
  ),
  column('Available', 'string', ({ status }) => {
    const condition = (status?.conditions ?? []).find((one: Loose) => one['type'] === 'Available')
    if (condition === undefined) return 'Unknown'
    return condition.status === 'True' ? 'True' : `${condition.status} (${condition.reason})`
  }),
  ageColumn,
]

const webhookCount = column('Webhooks', 'integer', ({ webhooks }) => webhooks?.length ?? 0)

export const webhookColumns: readonly TableColumn[] = [nameColumn, webhookCount, ageColumn]
