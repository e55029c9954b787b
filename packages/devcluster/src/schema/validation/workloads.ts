import { isRecord, matchesSelector, ownValue } from '@tenon/api'
import type { StoredObject } from '../../contract.ts'
import type { Loose } from '../columns/cells.ts'
import { cronSchedule } from '../cron-schedule.ts'
import { jsonEqual } from '../shape-node.ts'
import { checkClaimSpec } from './claims.ts'
import { dnsLabelErrors } from './metadata.ts'
import { checkJobSpec } from './jobs.ts'
import { checkTemplate } from './pods.ts'
import { type Findings, listOf } from './reporting.ts'
import { checkLabelSelector, isEmptySelector, isSelector } from './selectors.ts'

type Check = (object: StoredObject, old: StoredObject | undefined, found: Findings) => void

function specOf(object: StoredObject): Loose {
  return object['spec'] ?? {}
}

function oldSpecOf(old: StoredObject | undefined): Loose | undefined {
  return old === undefined ? undefined : specOf(old)
}

/** Validates selector and template of a workload. `template` is the one that its pods are created from. */
function checkSelectedTemplate(
  spec: Loose,
  workload: string,
  found: Findings,
  template: Loose | undefined = spec['template'],
): void {
  const { selector } = spec
  if (selector === undefined) {
    // A DaemonSet without a selector selects nothing, and so not its own pods.
    if (workload !== 'daemonset') found.required('spec.selector')
  } else if (isEmptySelector(selector))
    found.invalid('spec.selector', selector, `empty selector is invalid for ${workload}`)
  checkLabelSelector(selector, 'spec.selector', found)
  if (template === undefined) return found.required('spec.template')
  const labels: Loose = template['metadata']?.labels ?? {}
  if (!isSelector(selector)) {
    if (workload !== 'daemonset') return found.invalid('spec.selector', selector, 'invalid label selector')
  } else if (selector === undefined || (isEmptySelector(selector) && workload !== 'deployment')) {
    if (selector === undefined) {
      found.invalid('spec.template.metadata.labels', labels, '`selector` does not match template `labels`')
    }
  } else if (!isEmptySelector(selector) && !matchesSelector(selector, labels)) {
    found.invalid('spec.template.metadata.labels', labels, '`selector` does not match template `labels`')
  }
  checkTemplate(template, 'spec.template', found)
}

function alwaysRestarts(spec: Loose, kind: string, found: Findings): void {
  if (spec['template']?.spec?.activeDeadlineSeconds !== undefined) {
    found.forbidden(
      'spec.template.spec.activeDeadlineSeconds',
      `activeDeadlineSeconds in ${kind} is not Supported`,
    )
  }
  const policy: unknown = spec['template']?.spec?.restartPolicy
  if (policy !== undefined && policy !== 'Always' && typeof policy === 'string') {
    found.oneOf('spec.template.spec.restartPolicy', policy, ['Always'])
  }
}

/** Validates `25%` or an integer; `path` names the field. */
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

/** Refuses percentages above 100 %. */
export function checkAtMostAll(value: unknown, path: string, found: Findings): void {
  if (typeof value === 'string' && /^\d+%$/.test(value) && Number.parseInt(value, 10) > 100) {
    found.invalid(path, value, 'must not be greater than 100%')
  }
}

function isZero(value: unknown): boolean {
  return value === 0 || value === '0%'
}

/** The number of an amount or percentage; undefined if it is invalid. */
function amountOf(value: unknown): number | undefined {
  if (typeof value === 'number') return value
  return typeof value === 'string' && /^\d+%$/.test(value) ? Number.parseInt(value, 10) : undefined
}

export const checkDeployment: Check = (object, old, found) => {
  const spec = specOf(object)
  checkSelectedTemplate(spec, 'deployment', found)
  alwaysRestarts(spec, 'ReplicaSet', found)
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
  checkAtMostAll(update['maxUnavailable'], `${path}.maxUnavailable`, found)
  if (isZero(update['maxUnavailable']) && isZero(update['maxSurge'])) {
    found.invalid(`${path}.maxUnavailable`, update['maxUnavailable'], 'may not be 0 when `maxSurge` is 0')
  }
}

export const checkReplicaSet: Check = (object, old, found) => {
  const spec = specOf(object)
  checkSelectedTemplate(spec, 'deployment', found)
  alwaysRestarts(spec, 'ReplicaSet', found)
  found.notNegative('spec.replicas', spec['replicas'])
  found.notNegative('spec.minReadySeconds', spec['minReadySeconds'])
  const before = oldSpecOf(old)
  if (before !== undefined) found.immutable('spec.selector', spec['selector'], before['selector'], jsonEqual)
}

export const checkDaemonSet: Check = (object, old, found) => {
  const spec = specOf(object)
  checkSelectedTemplate(spec, 'daemonset', found)
  alwaysRestarts(spec, 'DaemonSet', found)
  found.oneOf('spec.updateStrategy.type', spec['updateStrategy']?.type, ['OnDelete', 'RollingUpdate'])
  const update: unknown = spec['updateStrategy']?.rollingUpdate
  if (isRecord(update)) {
    const path = 'spec.updateStrategy.rollingUpdate'
    for (const field of ['maxUnavailable', 'maxSurge'] as const) {
      checkIntOrPercent(update[field], `${path}.${field}`, found)
      checkAtMostAll(update[field], `${path}.${field}`, found)
    }
    const [unavailable, surge] = [update['maxUnavailable'], update['maxSurge']].map(amountOf)
    if (unavailable !== undefined && unavailable !== 0 && surge !== undefined && surge !== 0) {
      found.invalid(`${path}.maxSurge`, update['maxSurge'], 'may not be set when maxUnavailable is non-zero')
    } else if (unavailable === 0 && surge === 0) {
      found.required(`${path}.maxUnavailable`, 'cannot be 0 when maxSurge is 0')
    }
  }
  found.notNegative('spec.revisionHistoryLimit', spec['revisionHistoryLimit'])
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
 * The template as completed by the controller: each claim template is a volume, replacing one of that name, and host
 * name and subdomain come from the set.
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
  alwaysRestarts(spec, 'StatefulSet', found)
  found.notNegative('spec.replicas', spec['replicas'])
  found.notNegative('spec.minReadySeconds', spec['minReadySeconds'])
  found.notNegative('spec.ordinals.start', spec['ordinals']?.start)
  const service: unknown = spec['serviceName']
  if (old === undefined && typeof service === 'string' && service !== '') {
    for (const words of dnsLabelErrors(service)) found.invalid('spec.serviceName', service, words)
  }
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

export const checkJob: Check = (object, old, found) => {
  const spec = specOf(object)
  checkJobSpec(spec, 'spec', false, found)
  if (old === undefined && spec['manualSelector'] === true) {
    if (spec['selector'] === undefined) found.required('spec.selector')
    if (
      !matchesSelector(spec['selector'] ?? {}, spec['template']?.metadata?.labels ?? {}) ||
      spec['selector'] === undefined
    ) {
      const labels: unknown = spec['template']?.metadata?.labels
      found.invalid('spec.template.metadata.labels', labels, '`selector` does not match template `labels`')
    }
  }
  const before = oldSpecOf(old)
  if (before === undefined) return
  for (const field of jobImmutable)
    found.immutable(`spec.${field}`, ownValue(spec, field), ownValue(before, field), jsonEqual)
  // Node selection of a suspended job that never ran may change.
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
  if (job !== undefined) checkJobSpec(job, 'spec.jobTemplate.spec', true, found)
}

/** Eleven characters are reserved for the timestamp in the names of its Jobs. */
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
  found.notNegative('spec.minReadySeconds', spec['minReadySeconds'])
  alwaysRestarts(spec, 'ReplicationController', found)
  const { selector = {}, template } = spec
  if (Object.keys(selector).length === 0) found.required('spec.selector')
  if (template === undefined) return found.required('spec.template')
  const labels: Loose = template.metadata?.labels ?? {}
  if (!matchesSelector({ matchLabels: selector }, labels)) {
    found.invalid('spec.template.metadata.labels', labels, '`selector` does not match template `labels`')
  }
  checkTemplate(template, 'spec.template', found)
}
