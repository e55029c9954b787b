import { ownValue, quantityNanos } from '@tenon/api'
import type { StoredObject } from '../../contract.ts'
import type { Loose } from '../columns/cells.ts'
import { checkAmountName } from './containers.ts'
import { dnsLabelErrors, nameErrors } from './metadata.ts'
import { type Findings, listOf } from './reporting.ts'

/** Checks bounds, target, metrics and behavior of an autoscaler. */
export function checkAutoscaler(object: StoredObject, _old: StoredObject | undefined, found: Findings): void {
  const spec = (object['spec'] ?? {}) as Loose
  const { minReplicas, maxReplicas } = spec
  if (typeof minReplicas === 'number' && minReplicas < 1) {
    found.invalid('spec.minReplicas', minReplicas, 'must be greater than or equal to 1')
  }
  if (maxReplicas === 0) found.required('spec.maxReplicas', 'must be set and greater than 0')
  else if (typeof maxReplicas === 'number' && maxReplicas < 0) {
    found.invalid('spec.maxReplicas', maxReplicas, 'must be greater than or equal to 1')
  }
  if (typeof minReplicas === 'number' && maxReplicas < minReplicas) {
    found.invalid('spec.maxReplicas', maxReplicas, 'must be greater than or equal to `minReplicas`')
  }
  const target: Loose = spec['scaleTargetRef'] ?? {}
  // The only scalable kind without an API group.
  checkObjectReference(target, 'spec.scaleTargetRef', target['kind'] === 'ReplicationController', found)
  for (const [index, metric] of listOf(spec, 'metrics').entries())
    checkMetric(metric, `spec.metrics[${index}]`, found)
  if (
    minReplicas === 0 &&
    !listOf(spec, 'metrics').some(({ type }) => type === 'Object' || type === 'External')
  ) {
    const words = 'must specify at least one Object or External metric to support scaling to zero replicas'
    found.forbidden('spec.metrics', words)
  }
  for (const direction of ['scaleUp', 'scaleDown']) {
    const rules: Loose | undefined = ownValue(spec['behavior'] as Loose | undefined, direction)
    if (rules !== undefined) checkScalingRules(rules, `spec.behavior.${direction}`, found)
  }
  const utilization: unknown = spec['targetCPUUtilizationPercentage']
  if (typeof utilization === 'number' && utilization < 1) {
    found.invalid('spec.metrics[0].resource.target.averageUtilization', utilization, 'must be greater than 0')
  }
}

function checkObjectReference(reference: Loose, path: string, mayBeCore: boolean, found: Findings): void {
  for (const field of ['kind', 'name'] as const) {
    const value: unknown = reference[field]
    if (value === undefined || value === '') found.required(`${path}.${field}`)
    else
      for (const words of nameErrors(String(value), 'path')) found.invalid(`${path}.${field}`, value, words)
  }
  const apiVersion = String(reference['apiVersion'] ?? '')
  if (apiVersion.split('/').length > 2) {
    found.invalid(`${path}.apiVersion`, apiVersion, `unexpected GroupVersion string: ${apiVersion}`)
  } else if (!mayBeCore && !apiVersion.includes('/')) {
    found.invalid(`${path}.apiVersion`, apiVersion, 'apiVersion must specify API group')
  }
}

/** Metric sources in the order in which they are checked, by metric type. */
const sources = {
  Object: 'object',
  External: 'external',
  Pods: 'pods',
  Resource: 'resource',
  ContainerResource: 'containerResource',
} as const

const metricTypes = Object.keys(sources).toSorted()

function checkMetric(metric: Loose, path: string, found: Findings): void {
  const type: unknown = metric['type']
  if (type === undefined || type === '') found.required(`${path}.type`, 'must specify a metric source type')
  found.oneOf(`${path}.type`, type ?? '', metricTypes)
  const given = Object.values(sources).filter((source) => metric[source] !== undefined)
  const [first] = given
  if (first !== undefined) checkSource(first, metric[first], `${path}.${first}`, found)
  const expected = ownValue(sources as Readonly<Record<string, string>>, String(type))
  if (expected !== undefined && ownValue(metric, expected) === undefined) {
    found.required(`${path}.${expected}`, 'must populate information for the given metric source')
  }
  if (given.length === 1) return
  for (const source of given) {
    if (source !== expected)
      found.forbidden(`${path}.${source}`, 'must populate the given metric source only')
  }
}

const isMeasured = (source: string): boolean => source === 'resource' || source === 'containerResource'

function checkSource(source: string, value: Loose, path: string, found: Findings): void {
  if (source === 'object') {
    checkObjectReference(value['describedObject'] ?? {}, `${path}.describedObject`, true, found)
  }
  if (isMeasured(source)) {
    if (!value['name']) found.required(`${path}.name`, 'must specify a resource name')
    else if (source === 'containerResource') checkAmountName(value['name'], `${path}.name`, found)
  } else {
    const name: unknown = value['metric']?.name
    if (!name) found.required(`${path}.metric.name`, 'must specify a metric name')
    else
      for (const words of nameErrors(String(name), 'path')) found.invalid(`${path}.metric.name`, name, words)
  }
  if (source === 'containerResource') {
    const name: unknown = value['container']
    if (!name) found.required(`${path}.container`, 'must specify a container')
    else for (const words of dnsLabelErrors(String(name))) found.invalid(`${path}.container`, name, words)
  }
  checkTarget(value['target'] ?? {}, `${path}.target`, found)
  checkTargetValue(source, value['target'] ?? {}, `${path}.target`, found)
}

function checkTargetValue(source: string, target: Loose, path: string, found: Findings): void {
  const { value, averageValue, averageUtilization } = target
  if (isMeasured(source)) {
    if (averageUtilization === undefined && averageValue === undefined) {
      found.required(
        `${path}.averageUtilization`,
        'must set either a target raw value or a target utilization',
      )
    }
    if (averageUtilization !== undefined && averageValue !== undefined) {
      found.forbidden(`${path}.averageValue`, 'may not set both a target raw value and a target utilization')
    }
  } else if (averageValue === undefined && (source === 'pods' || value === undefined)) {
    found.required(`${path}.averageValue`, 'must set either a target value or averageValue')
  } else if (source === 'external' && averageValue !== undefined && value !== undefined) {
    found.forbidden(`${path}.value`, 'may not set both a target value for metric and a per-pod target')
  }
}

const targetTypes: ReadonlySet<unknown> = new Set(['AverageValue', 'Utilization', 'Value'])

function checkTarget(target: Loose, path: string, found: Findings): void {
  const { type, averageUtilization } = target
  if (!type) found.required(`${path}.type`, 'must specify a metric target type')
  if (!targetTypes.has(type)) {
    found.invalid(`${path}.type`, type ?? '', 'must be either Utilization, Value, or AverageValue')
  }
  for (const field of ['value', 'averageValue']) {
    const amount: unknown = ownValue(target, field)
    if (typeof amount === 'string' && (quantityNanos(amount) ?? 1n) <= 0n) {
      found.invalid(`${path}.${field}`, amount, 'must be positive')
    }
  }
  if (typeof averageUtilization === 'number' && averageUtilization < 1) {
    found.invalid(`${path}.averageUtilization`, averageUtilization, 'must be greater than 0')
  }
}

const longestWindowSeconds = 3600
const longestPeriodSeconds = 1800

function checkScalingRules(rules: Loose, path: string, found: Findings): void {
  const { stabilizationWindowSeconds: window, selectPolicy } = rules
  if (typeof window === 'number') {
    const at = `${path}.stabilizationWindowSeconds`
    if (window < 0) found.invalid(at, window, 'must be greater than or equal to zero')
    if (window > longestWindowSeconds) found.invalid(at, window, 'must be less than or equal to 3600')
  }
  found.oneOf(`${path}.selectPolicy`, selectPolicy, ['Disabled', 'Max', 'Min'])
  const policies = listOf(rules, 'policies')
  if (policies.length === 0) found.required(`${path}.policies`, 'must specify at least one Policy')
  for (const [index, { type, value, periodSeconds }] of policies.entries()) {
    const at = `${path}.policies[${index}]`
    found.oneOf(`${at}.type`, type, ['Percent', 'Pods'])
    if (value <= 0) found.invalid(`${at}.value`, value, 'must be greater than zero')
    if (periodSeconds <= 0) found.invalid(`${at}.periodSeconds`, periodSeconds, 'must be greater than zero')
    if (periodSeconds > longestPeriodSeconds) {
      found.invalid(`${at}.periodSeconds`, periodSeconds, 'must be less than or equal to 1800')
    }
  }
}
