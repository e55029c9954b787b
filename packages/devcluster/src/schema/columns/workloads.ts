import { age, humanDuration } from '@tenon/api'
import type { TableColumn } from '../../contract.ts'
import {
  ageColumn,
  column,
  containerColumns,
  formatLabels,
  formatSelector,
  type Loose,
  nameColumn,
  orElse,
} from './cells.ts'

const templateSpec = (object: Loose): Loose | undefined => object['spec']?.template?.spec

const count = (name: string, field: (object: Loose) => number | undefined): TableColumn =>
  column(name, 'integer', (object) => field(object) ?? 0)

const selectorColumn = column('Selector', 'string', (object) => formatSelector(object['spec']?.selector), 1)

export const deploymentColumns: readonly TableColumn[] = [
  nameColumn,
  column('Ready', 'string', ({ spec, status }) => `${status?.readyReplicas ?? 0}/${spec?.replicas ?? 0}`),
  count('Up-to-date', ({ status }) => status?.updatedReplicas),
  count('Available', ({ status }) => status?.availableReplicas),
  ageColumn,
  ...containerColumns(templateSpec),
  selectorColumn,
]

const minimum = ({ spec }: Loose): string => orElse(spec?.schedulingPolicy?.gang?.minCount, '<none>')
const policy = ({ spec }: Loose): string => (spec?.schedulingPolicy?.gang ? 'Gang' : 'Basic')

export const podGroupColumns: readonly TableColumn[] = [
  nameColumn,
  column('Policy', 'string', policy),
  column('Min', 'string', minimum),
  column('Scheduled', 'string', ({ status }) => scheduledOf(status?.conditions)),
  ageColumn,
]

function scheduledOf(conditions: readonly Loose[] | undefined): string {
  return orElse(conditions?.find(({ type }) => type === 'PodGroupScheduled')?.['status'], '<none>')
}

export const replicaSetColumns: readonly TableColumn[] = [
  nameColumn,
  count('Desired', ({ spec }) => spec?.replicas),
  count('Current', ({ status }) => status?.replicas),
  count('Ready', ({ status }) => status?.readyReplicas),
  ageColumn,
  ...containerColumns(templateSpec),
  selectorColumn,
]

export const replicationControllerColumns: readonly TableColumn[] = [
  ...replicaSetColumns.slice(0, -1),
  column('Selector', 'string', (object) => formatLabels(object['spec']?.selector), 1),
]

export const statefulSetColumns: readonly TableColumn[] = [
  nameColumn,
  column('Ready', 'string', ({ spec, status }) => `${status?.readyReplicas ?? 0}/${spec?.replicas ?? 0}`),
  ageColumn,
  ...containerColumns(templateSpec),
]

export const daemonSetColumns: readonly TableColumn[] = [
  nameColumn,
  count('Desired', ({ status }) => status?.desiredNumberScheduled),
  count('Current', ({ status }) => status?.currentNumberScheduled),
  count('Ready', ({ status }) => status?.numberReady),
  count('Up-to-date', ({ status }) => status?.updatedNumberScheduled),
  count('Available', ({ status }) => status?.numberAvailable),
  column('Node Selector', 'string', (object) => formatLabels(templateSpec(object)?.['nodeSelector'])),
  ageColumn,
  ...containerColumns(templateSpec),
  selectorColumn,
]

export const controllerRevisionColumns: readonly TableColumn[] = [
  nameColumn,
  column('Controller', 'string', ({ metadata }) => {
    const owner = (metadata?.ownerReferences ?? []).find((one: Loose) => one['controller'] === true)
    if (owner === undefined) return '<none>'
    const group = String(owner.apiVersion).split('/').slice(0, -1).join('')
    const kind = String(owner.kind).toLowerCase()
    return `${group === '' ? kind : `${kind}.${group}`}/${owner.name}`
  }),
  count('Revision', ({ revision }) => revision),
  ageColumn,
]

function jobStatus(job: Loose): string {
  const is = (type: string): boolean =>
    (job['status']?.conditions ?? []).some((one: Loose) => one['type'] === type && one['status'] === 'True')
  if (is('Complete')) return 'Complete'
  if (is('Failed')) return 'Failed'
  if (job['metadata']?.deletionTimestamp !== undefined) return 'Terminating'
  if (is('Suspended')) return 'Suspended'
  if (is('FailureTarget')) return 'FailureTarget'
  if (is('SuccessCriteriaMet')) return 'SuccessCriteriaMet'
  return 'Running'
}

function jobCompletions({ spec, status }: Loose): string {
  const succeeded = status?.succeeded ?? 0
  if (spec?.completions !== undefined) return `${succeeded}/${spec.completions}`
  const parallelism = spec?.parallelism ?? 0
  return parallelism > 1 ? `${succeeded}/1 of ${parallelism}` : `${succeeded}/1`
}

function jobDuration({ status }: Loose, nowMs: number): string {
  const start = Date.parse(status?.startTime ?? '')
  if (Number.isNaN(start)) return ''
  const end = status?.completionTime === undefined ? nowMs : Date.parse(status.completionTime)
  return humanDuration(end - start)
}

export const jobColumns: readonly TableColumn[] = [
  nameColumn,
  column('Status', 'string', jobStatus),
  column('Completions', 'string', jobCompletions),
  column('Duration', 'string', jobDuration),
  ageColumn,
  ...containerColumns(templateSpec),
  selectorColumn,
]

export const cronJobColumns: readonly TableColumn[] = [
  nameColumn,
  column('Schedule', 'string', ({ spec }) => spec?.schedule),
  column('Timezone', 'string', ({ spec }) => spec?.timeZone),
  column('Suspend', 'string', ({ spec }) => (spec?.suspend === true ? 'True' : 'False')),
  column('Active', 'integer', ({ status }) => status?.active?.length ?? 0),
  column('Last Schedule', 'string', ({ status }, nowMs) =>
    status?.lastScheduleTime === undefined ? '<none>' : age(status.lastScheduleTime, nowMs),
  ),
  ageColumn,
  ...containerColumns((object) => object['spec']?.jobTemplate?.spec?.template?.spec),
  column('Selector', 'string', (object) => formatSelector(object['spec']?.jobTemplate?.spec?.selector), 1),
]

export const podTemplateColumns: readonly TableColumn[] = [
  nameColumn,
  column('Containers', 'string', ({ template }) =>
    (template?.spec?.containers ?? []).map((one: Loose) => one['name']).join(','),
  ),
  column('Images', 'string', ({ template }) =>
    (template?.spec?.containers ?? []).map((one: Loose) => one['image']).join(','),
  ),
  column('Pod Labels', 'string', ({ template }) => formatLabels(template?.metadata?.labels)),
]
