import { ownValue } from '@tenon/api'
import type { StoredObject } from '../../contract.ts'
import type { Loose } from '../columns/cells.ts'
import { cronSchedule } from '../cron-schedule.ts'
import { isRecord, jsonEqual } from '../shape-node.ts'
import { checkClaimSpec } from './claims.ts'
import { checkTemplate } from './pods.ts'
import { type Findings, listOf } from './reporting.ts'
import { checkLabelSelector, isEmptySelector, selectorMatches } from './selectors.ts'

type Check = (object: StoredObject, old: StoredObject | undefined, found: Findings) => void

function specOf(object: StoredObject): Loose {
  return object['spec'] ?? {}
}

function oldSpecOf(old: StoredObject | undefined): Loose | undefined {
  return old === undefined ? undefined : specOf(old)
}

/** Selector and template, which every workload has. `template` is what its pods will be made of. */
function checkSelectedTemplate(
  spec: Loose,
  workload: string,
  found: Findings,
  template: Loose | undefined = spec['template'],
): void {
  const { selector } = spec
  if (selector === undefined) found.required('spec.selector')
  else if (isEmptySelector(selector))
    found.invalid('spec.selector', selector, `empty selector is invalid for ${workload}`)
  checkLabelSelector(selector, 'spec.selector', found)
  if (template === undefined) return found.required('spec.template')
  const labels: Loose = template['metadata']?.labels ?? {}
  if (selector !== undefined && !isEmptySelector(selector) && !selectorMatches(selector, labels)) {
    found.invalid('spec.template.metadata.labels', labels, '`selector` does not match template `labels`')
  }
  checkTemplate(template, 'spec.template', found)
}

function alwaysRestarts(spec: Loose, found: Findings): void {
  const policy: unknown = spec['template']?.spec?.restartPolicy
  if (policy !== undefined && policy !== 'Always' && typeof policy === 'string') {
    found.oneOf('spec.template.spec.restartPolicy', policy, ['Always'])
  }
}

/** Checks `25%` or a whole number; `path` names the field. */
export function checkIntOrPercent(value: unknown, path: string, found: Findings): void {
  if (typeof value === 'number') found.notNegative(path, value)
  else if (typeof value === 'string' && !/^\d+%$/.test(value)) {
    found.invalid(
      path,
      value,
      "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')",
    )
  }
}

function isZero(value: unknown): boolean {
  return value === 0 || value === '0%'
}

export const checkDeployment: Check = (object, old, found) => {
  const spec = specOf(object)
  checkSelectedTemplate(spec, 'deployment', found)
  alwaysRestarts(spec, found)
  for (const field of ['replicas', 'minReadySeconds', 'revisionHistoryLimit', 'progressDeadlineSeconds']) {
    found.notNegative(`spec.${field}`, ownValue(spec, field))
  }
  if (spec['progressDeadlineSeconds'] <= (spec['minReadySeconds'] ?? 0)) {
    found.invalid(
      'spec.progressDeadlineSeconds',
      spec['progressDeadlineSeconds'],
      'must be greater than minReadySeconds',
    )
  }
  checkDeploymentStrategy(spec['strategy'], found)
  const before = oldSpecOf(old)
  if (before !== undefined) found.immutable('spec.selector', spec['selector'], before['selector'], jsonEqual)
}

function checkDeploymentStrategy(strategy: Loose | undefined, found: Findings): void {
  if (strategy === undefined) return
  found.oneOf('spec.strategy.type', strategy['type'], ['Recreate', 'RollingUpdate'])
  const update: unknown = strategy['rollingUpdate']
  if (strategy['type'] === 'Recreate' && update !== undefined) {
    found.forbidden('spec.strategy.rollingUpdate', "may not be specified when strategy `type` is 'Recreate'")
  }
  if (!isRecord(update)) return
  const path = 'spec.strategy.rollingUpdate'
  checkIntOrPercent(update['maxUnavailable'], `${path}.maxUnavailable`, found)
  checkIntOrPercent(update['maxSurge'], `${path}.maxSurge`, found)
  if (isZero(update['maxUnavailable']) && isZero(update['maxSurge'])) {
    found.invalid(`${path}.maxUnavailable`, update['maxUnavailable'], 'may not be 0 when `maxSurge` is 0')
  }
}

export const checkReplicaSet: Check = (object, old, found) => {
  const spec = specOf(object)
  checkSelectedTemplate(spec, 'deployment', found)
  alwaysRestarts(spec, found)
  found.notNegative('spec.replicas', spec['replicas'])
  found.notNegative('spec.minReadySeconds', spec['minReadySeconds'])
  const before = oldSpecOf(old)
  if (before !== undefined) found.immutable('spec.selector', spec['selector'], before['selector'], jsonEqual)
}

export const checkDaemonSet: Check = (object, old, found) => {
  const spec = specOf(object)
  checkSelectedTemplate(spec, 'daemonset', found)
  alwaysRestarts(spec, found)
  found.oneOf('spec.updateStrategy.type', spec['updateStrategy']?.type, ['OnDelete', 'RollingUpdate'])
  const update: unknown = spec['updateStrategy']?.rollingUpdate
  if (isRecord(update)) {
    checkIntOrPercent(update['maxUnavailable'], 'spec.updateStrategy.rollingUpdate.maxUnavailable', found)
    checkIntOrPercent(update['maxSurge'], 'spec.updateStrategy.rollingUpdate.maxSurge', found)
  }
  found.notNegative('spec.minReadySeconds', spec['minReadySeconds'])
  const before = oldSpecOf(old)
  if (before !== undefined) found.immutable('spec.selector', spec['selector'], before['selector'], jsonEqual)
}

const statefulSetMutable: ReadonlySet<string> = new Set([
  'replicas',
  'ordinals',
  'template',
  'updateStrategy',
  'revisionHistoryLimit',
  'persistentVolumeClaimRetentionPolicy',
  'minReadySeconds',
])

/**
 * The template as the controller will complete it: each claim template is a volume of the pods, in the
 * place of a volume of that name, and host name and subdomain come from the set.
 */
function completedTemplate(spec: Loose): Loose | undefined {
  const { template, volumeClaimTemplates } = spec
  if (!isRecord(template) || !isRecord(template['spec'])) return template
  const { hostname: _hostname, subdomain: _subdomain, ...pod } = template['spec'] as Loose
  const claims = listOf(spec, 'volumeClaimTemplates').map(({ metadata }) => String(metadata?.name ?? ''))
  if (volumeClaimTemplates === undefined) return { ...template, spec: pod }
  const own = listOf(pod, 'volumes').filter(({ name }) => !claims.includes(name))
  const claimed = claims.map((name) => ({ name, persistentVolumeClaim: { claimName: name } }))
  return { ...template, spec: { ...pod, volumes: [...claimed, ...own] } }
}

const retentionPolicies = ['Retain', 'Delete']

function checkClaimRetention(policy: Loose | undefined, found: Findings): void {
  for (const event of ['whenDeleted', 'whenScaled']) {
    found.oneOf(
      `spec.persistentVolumeClaimRetentionPolicy.${event}`,
      ownValue(policy, event),
      retentionPolicies,
    )
  }
}

export const checkStatefulSet: Check = (object, old, found) => {
  const spec = specOf(object)
  checkSelectedTemplate(spec, 'statefulset', found, completedTemplate(spec))
  checkClaimRetention(spec['persistentVolumeClaimRetentionPolicy'], found)
  if (old === undefined) {
    for (const [index, claim] of listOf(spec, 'volumeClaimTemplates').entries()) {
      checkClaimSpec(claim['spec'], `spec.volumeClaimTemplates[${index}].spec`, found)
    }
  }
  alwaysRestarts(spec, found)
  found.notNegative('spec.replicas', spec['replicas'])
  found.notNegative('spec.minReadySeconds', spec['minReadySeconds'])
  found.oneOf('spec.podManagementPolicy', spec['podManagementPolicy'], ['OrderedReady', 'Parallel'])
  found.oneOf('spec.updateStrategy.type', spec['updateStrategy']?.type, ['OnDelete', 'RollingUpdate'])
  const before = oldSpecOf(old)
  if (before === undefined) return
  const fixed = (value: Loose): Loose =>
    Object.fromEntries(Object.entries(value).filter(([key]) => !statefulSetMutable.has(key)))
  if (!jsonEqual(fixed(spec), fixed(before))) {
    found.forbidden(
      'spec',
      "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', " +
        "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
    )
  }
}

const jobImmutable = [
  'selector',
  'completionMode',
  'podFailurePolicy',
  'backoffLimitPerIndex',
  'managedBy',
  'successPolicy',
]

function checkJobSpec(spec: Loose, path: string, found: Findings): void {
  for (const field of [
    'parallelism',
    'completions',
    'backoffLimit',
    'ttlSecondsAfterFinished',
    'activeDeadlineSeconds',
  ]) {
    found.notNegative(`${path}.${field}`, ownValue(spec, field))
  }
  found.oneOf(`${path}.completionMode`, spec['completionMode'], ['Indexed', 'NonIndexed'])
  if (spec['completionMode'] === 'Indexed' && spec['completions'] === undefined) {
    found.required(`${path}.completions`, 'when completion mode is Indexed')
  }
  checkTemplate(spec['template'], `${path}.template`, found)
  const policy: unknown = spec['template']?.spec?.restartPolicy
  if (policy === 'Always' || policy === '') {
    found.required(`${path}.template.spec.restartPolicy`, 'valid values: "OnFailure", "Never"')
  }
}

export const checkJob: Check = (object, old, found) => {
  const spec = specOf(object)
  checkJobSpec(spec, 'spec', found)
  const before = oldSpecOf(old)
  if (before === undefined) return
  for (const field of jobImmutable)
    found.immutable(`spec.${field}`, ownValue(spec, field), ownValue(before, field), jsonEqual)
  // A suspended job that never ran may still be directed elsewhere.
  const mayChange =
    before['suspend'] === true && (old?.['status'] as Loose | undefined)?.['startTime'] === undefined
  if (!mayChange) found.immutable('spec.template', spec['template'], before['template'], jsonEqual)
  if (spec['completionMode'] !== 'Indexed') {
    found.immutable('spec.completions', spec['completions'], before['completions'], jsonEqual)
  }
}

export const checkCronJob: Check = (object, old, found) => {
  const spec = specOf(object)
  checkSchedule(spec, oldSpecOf(old), found)
  const { name } = object.metadata
  if (old === undefined && name.length > longestCronJobName)
    found.invalid('metadata.name', name, `must be no more than ${longestCronJobName} characters`)
  found.oneOf('spec.concurrencyPolicy', spec['concurrencyPolicy'], ['Allow', 'Forbid', 'Replace'])
  for (const field of ['startingDeadlineSeconds', 'successfulJobsHistoryLimit', 'failedJobsHistoryLimit']) {
    found.notNegative(`spec.${field}`, ownValue(spec, field))
  }
  const job: Loose | undefined = spec['jobTemplate']?.spec
  if (job !== undefined) checkJobSpec(job, 'spec.jobTemplate.spec', found)
}

/** Eleven characters are kept for the time in the names of its Jobs. */
const longestCronJobName = 52

function checkSchedule(spec: Loose, before: Loose | undefined, found: Findings): void {
  const { schedule, timeZone } = spec
  if (schedule === '') found.required('spec.schedule')
  else if (typeof schedule === 'string' && schedule !== before?.['schedule']) {
    const problem = scheduleProblem(schedule)
    if (problem !== undefined) found.invalid('spec.schedule', schedule, problem)
  }
  if (typeof timeZone !== 'string' || timeZone === before?.['timeZone']) return
  if (timeZone === '') found.invalid('spec.timeZone', timeZone, 'must be nil or non-empty string')
  else if (timeZone.toLowerCase() === 'local')
    found.invalid(
      'spec.timeZone',
      timeZone,
      'timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones',
    )
  else if (cronSchedule('@daily', timeZone) === undefined)
    found.invalid('spec.timeZone', timeZone, `unknown time zone ${timeZone}`)
}

function scheduleProblem(schedule: string): string | undefined {
  if (/TZ=/.test(schedule)) return 'cannot use TZ or CRON_TZ in schedule, use timeZone field instead'
  if (cronSchedule(schedule, 'UTC') !== undefined) return undefined
  const fields = schedule.trim().split(/\s+/)
  if (schedule.startsWith('@')) return `unrecognized descriptor: ${schedule}`
  if (fields.length !== 5) return `expected exactly 5 fields, found ${fields.length}: [${fields.join(' ')}]`
  return 'a field is not a number, a name, a range or a list of them, or is out of its range'
}

export const checkReplicationController: Check = (object, _old, found) => {
  const spec = specOf(object)
  found.notNegative('spec.replicas', spec['replicas'])
  const { selector = {}, template } = spec
  if (Object.keys(selector).length === 0) found.required('spec.selector')
  if (template === undefined) return found.required('spec.template')
  const labels: Loose = template.metadata?.labels ?? {}
  if (!selectorMatches({ matchLabels: selector }, labels)) {
    found.invalid('spec.template.metadata.labels', labels, '`selector` does not match template `labels`')
  }
  checkTemplate(template, 'spec.template', found)
}

export const checkAutoscaler: Check = (object, _old, found) => {
  const spec = specOf(object)
  const { minReplicas, maxReplicas } = spec
  if (typeof minReplicas === 'number' && minReplicas < 1) {
    found.invalid('spec.minReplicas', minReplicas, 'must be greater than or equal to 1')
  }
  if (typeof maxReplicas === 'number' && maxReplicas < 1) {
    found.invalid('spec.maxReplicas', maxReplicas, 'must be greater than 0')
  } else if (typeof minReplicas === 'number' && maxReplicas < minReplicas) {
    found.invalid('spec.maxReplicas', maxReplicas, 'must be greater than or equal to `minReplicas`')
  }
  for (const [index, { type }] of listOf(spec, 'metrics').entries()) {
    found.oneOf(`spec.metrics[${index}].type`, type, [
      'ContainerResource',
      'External',
      'Object',
      'Pods',
      'Resource',
    ])
  }
}
