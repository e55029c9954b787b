import { ownValue } from '@tenon/api'
import type { Loose } from '../columns/cells.ts'
import { checkDomainPath } from './network.ts'
import { checkTemplate } from './pods.ts'
import { type Findings, listOf } from './reporting.ts'

const counts = [
  'parallelism',
  'completions',
  'activeDeadlineSeconds',
  'backoffLimit',
  'ttlSecondsAfterFinished',
  'backoffLimitPerIndex',
  'maxFailedIndexes',
]

/** Validates the spec of a Job, or of a Job template, whose selector is always generated. */
export function checkJobSpec(spec: Loose, path: string, isTemplate: boolean, found: Findings): void {
  for (const field of counts) found.notNegative(`${path}.${field}`, ownValue(spec, field))
  if (isTemplate && spec['manualSelector'] === true) {
    found.oneOf(`${path}.manualSelector`, true, ['nil', 'false'])
  }
  const { backoffLimitPerIndex, maxFailedIndexes, completionMode, completions } = spec
  if (maxFailedIndexes !== undefined && backoffLimitPerIndex === undefined) {
    found.required(`${path}.backoffLimitPerIndex`, 'when maxFailedIndexes is specified')
  }
  if (spec['managedBy'] !== undefined) checkDomainPath(spec['managedBy'], `${path}.managedBy`, found)
  found.oneOf(`${path}.completionMode`, completionMode, ['Indexed', 'NonIndexed'])
  if (completionMode === 'Indexed') {
    if (completions === undefined) found.required(`${path}.completions`, 'when completion mode is Indexed')
    else if (maxFailedIndexes > completions) {
      found.invalid(`${path}.maxFailedIndexes`, maxFailedIndexes, 'must be less than or equal to completions')
    }
  } else if (completionMode === undefined || completionMode === 'NonIndexed') {
    for (const field of ['backoffLimitPerIndex', 'maxFailedIndexes', 'successPolicy']) {
      const value: unknown = ownValue(spec, field)
      if (value !== undefined) found.invalid(`${path}.${field}`, value, 'requires indexed completion mode')
    }
  }
  if (spec['successPolicy'] !== undefined && completionMode === 'Indexed') {
    checkSuccessPolicy(spec, `${path}.successPolicy.rules`, found)
  }
  if (spec['podFailurePolicy'] !== undefined)
    checkFailurePolicy(spec, `${path}.podFailurePolicy.rules`, found)
  found.oneOf(
    `${path}.podReplacementPolicy`,
    spec['podReplacementPolicy'],
    spec['podFailurePolicy'] === undefined ? ['Failed', 'TerminatingOrFailed'] : ['Failed'],
  )
  checkTemplate(spec['template'], `${path}.template`, found)
  checkRestartPolicy(spec, `${path}.template.spec.restartPolicy`, found)
}

function checkRestartPolicy(spec: Loose, path: string, found: Findings): void {
  const policy: unknown = spec['template']?.spec?.restartPolicy
  if (policy === undefined || policy === 'Always' || policy === '') {
    found.required(path, 'valid values: "OnFailure", "Never"')
  } else if (policy === 'OnFailure' && spec['podFailurePolicy'] !== undefined) {
    found.invalid(path, policy, 'only "Never" is supported when podFailurePolicy is specified')
  } else found.oneOf(path, policy, ['Never', 'OnFailure'])
}

function checkSuccessPolicy(spec: Loose, path: string, found: Findings): void {
  const rules = listOf(spec['successPolicy'], 'rules')
  if (rules.length === 0) {
    found.required(path, 'at least one rules must be specified when the successPolicy is specified')
  }
  for (const [index, { succeededCount, succeededIndexes }] of rules.entries()) {
    const at = `${path}[${index}]`
    if (succeededCount === undefined && succeededIndexes === undefined) {
      found.required(at, 'at least one of succeededCount or succeededIndexes must be specified')
    }
    found.notNegative(`${at}.succeededCount`, succeededCount)
    if (succeededCount > spec['completions']) {
      const words = `must be less than or equal to ${spec['completions']} (the number of specified completions)`
      found.invalid(`${at}.succeededCount`, succeededCount, words)
    }
  }
}

const actions = ['Count', 'FailIndex', 'FailJob', 'Ignore']

function checkFailurePolicy(spec: Loose, path: string, found: Findings): void {
  const pod: Loose = spec['template']?.spec ?? {}
  const names = new Set(
    [...listOf(pod, 'containers'), ...listOf(pod, 'initContainers')].map(({ name }) => name),
  )
  for (const [index, rule] of listOf(spec['podFailurePolicy'], 'rules').entries()) {
    const at = `${path}[${index}]`
    const { action, onExitCodes } = rule
    if (!action) found.required(`${at}.action`, `valid values: ${JSON.stringify(actions)}`)
    else if (action === 'FailIndex' && spec['backoffLimitPerIndex'] === undefined) {
      found.invalid(`${at}.action`, action, 'requires the backoffLimitPerIndex to be set')
    } else found.oneOf(`${at}.action`, action, actions)
    if (onExitCodes !== undefined) checkExitCodes(onExitCodes, names, `${at}.onExitCodes`, found)
    const conditions = listOf(rule, 'onPodConditions').length
    if (onExitCodes !== undefined && conditions > 0) {
      found.invalid(at, undefined, 'specifying both OnExitCodes and OnPodConditions is not supported')
    }
    if (onExitCodes === undefined && conditions === 0) {
      found.invalid(at, undefined, 'specifying one of OnExitCodes and OnPodConditions is required')
    }
  }
}

function checkExitCodes(codes: Loose, names: ReadonlySet<unknown>, path: string, found: Findings): void {
  const { operator, containerName } = codes
  if (!operator) found.required(`${path}.operator`, 'valid values: ["In" "NotIn"]')
  else found.oneOf(`${path}.operator`, operator, ['In', 'NotIn'])
  if (containerName !== undefined && !names.has(containerName)) {
    const words = 'must be one of the container or initContainer names in the pod template'
    found.invalid(`${path}.containerName`, containerName, words)
  }
  const list: unknown = codes['values']
  const values = Array.isArray(list) ? (list as readonly number[]) : []
  if (values.length === 0) found.invalid(`${path}.values`, values, 'at least one value is required')
  const seen = new Set<number>()
  for (const [index, value] of values.entries()) {
    if (operator === 'In' && value === 0)
      found.invalid(`${path}.values[${index}]`, value, 'must not be 0 for the In operator')
    if (seen.has(value)) found.duplicate(`${path}.values[${index}]`, value)
    seen.add(value)
  }
  if (values.some((value, index) => value < (values[index - 1] ?? value))) {
    found.invalid(`${path}.values`, values, 'must be ordered')
  }
}
