import { type LabelSelector, matchesSelector } from '@tenon/api'
import type { ServerContext } from '../context.ts'
import { keyOf } from '../../storage/index.ts'
import type { Attributes } from './attributes.ts'

/** Which writes a webhook or policy handles. */
export interface MatchResources {
  readonly resourceRules?: readonly ResourceRule[]
  readonly excludeResourceRules?: readonly ResourceRule[]
  readonly namespaceSelector?: LabelSelector
  readonly objectSelector?: LabelSelector
}

/** Operations and the resources they are done to. */
export interface ResourceRule {
  readonly operations?: readonly string[]
  readonly apiGroups?: readonly string[]
  readonly apiVersions?: readonly string[]
  readonly resources?: readonly string[]
  readonly resourceNames?: readonly string[]
  readonly scope?: string
}

type Labels = Readonly<Record<string, string>>

/** Whether a write matches. */
export function matches(ctx: ServerContext, attributes: Attributes, given: MatchResources): boolean {
  const isAmong = (rules: readonly ResourceRule[] | undefined) =>
    rules?.some((rule) => ruleMatches(attributes, rule)) === true
  if (given.resourceRules !== undefined && !isAmong(given.resourceRules)) return false
  if (isAmong(given.excludeResourceRules)) return false
  return namespaceMatches(ctx, attributes, given.namespaceSelector) && objectMatches(attributes, given)
}

/** Versions of a kind are equivalent: a rule for one of them applies to all. */
function ruleMatches(attributes: Attributes, rule: ResourceRule): boolean {
  const { served, operation, namespace, name } = attributes
  const { group, kind, namespaced } = served.definition
  const has = (list: readonly string[] | undefined, value: string): boolean =>
    list?.includes('*') === true || list?.includes(value) === true
  if (!has(rule.operations, operation) || !has(rule.apiGroups, group)) return false
  if (!resourceMatches(attributes, rule.resources ?? [])) return false
  const names = rule.resourceNames ?? []
  if (names.length > 0 && !names.includes(name)) return false
  if (rule.scope === undefined || rule.scope === '*') return true
  // A Namespace is in itself, although it is cluster-scoped.
  const isNamespaced = namespaced && namespace !== undefined && !(kind === 'Namespace' && group === '')
  return (rule.scope === 'Namespaced') === isNamespaced
}

function resourceMatches({ served, subresource }: Attributes, resources: readonly string[]): boolean {
  const { plural } = served.definition
  return resources.some((pattern) => {
    const [resource = '', part] = pattern.split('/')
    if (resource !== '*' && resource !== plural) return false
    if (part === undefined) return subresource === undefined
    return part === '*' || part === subresource
  })
}

/**
 * Whether the labels of the object's namespace, or of the object if it is a namespace, match. Cluster-scoped objects
 * always match.
 */
function namespaceMatches(
  ctx: ServerContext,
  attributes: Attributes,
  selector: LabelSelector | undefined,
): boolean {
  if (selector === undefined || isEmpty(selector)) return true
  const { served, namespace, object, oldObject } = attributes
  const { definition } = served
  const own = (object ?? oldObject)?.metadata.labels
  const isNamespace = definition.kind === 'Namespace' && definition.group === ''
  if (!isNamespace && namespace === undefined) return true
  const labels = isNamespace ? own : namespaceLabels(ctx, namespace)
  return matchesSelector(selector, labels)
}

function namespaceLabels(ctx: ServerContext, namespace: string | undefined): Labels | undefined {
  return ctx.store.collection('namespaces').get(keyOf(undefined, namespace ?? ''))?.metadata.labels
}

/** Either the old or the new object must match. */
function objectMatches({ object, oldObject }: Attributes, { objectSelector }: MatchResources): boolean {
  if (objectSelector === undefined || isEmpty(objectSelector)) return true
  return [object, oldObject].some(
    (one) => one !== undefined && matchesSelector(objectSelector, one.metadata.labels),
  )
}

function isEmpty({ matchLabels = {}, matchExpressions = [] }: LabelSelector): boolean {
  return Object.keys(matchLabels).length === 0 && matchExpressions.length === 0
}
