import { type LabelSelector, matchesSelector } from '@tenon/api'
import type { StoredObject } from '../../contract.ts'
import { keyOf, namespacePrefix } from '../../storage/index.ts'
import type { User } from '../authentication/user.ts'
import type { ServerContext } from '../context.ts'
import type { Access, PathAccess, ResourceAccess } from './attributes.ts'

/** One rule of a role. */
export interface PolicyRule {
  readonly verbs: readonly string[]
  readonly apiGroups?: readonly string[]
  readonly resources?: readonly string[]
  readonly resourceNames?: readonly string[]
  readonly nonResourceURLs?: readonly string[]
}

interface Subject {
  readonly kind?: string
  readonly name?: string
  readonly namespace?: string
}

interface RoleRef {
  readonly kind?: string
  readonly name?: string
}

/** Members may do everything, whatever the roles are. */
export const masters = 'system:masters'

const rbac = 'rbac.authorization.k8s.io'

/** Authorizes by roles and bindings (RBAC). */
export class Authorizer {
  readonly #ctx: ServerContext

  constructor(ctx: ServerContext) {
    this.#ctx = ctx
  }

  allows(user: User, access: Access): boolean {
    if (user.groups.includes(masters)) return true
    const namespace = 'path' in access ? undefined : access.namespace
    for (const rule of this.rulesOf(user, namespace)) if (ruleAllows(rule, access)) return true
    return false
  }

  /** The rules of a user in the whole cluster, and in a namespace. */
  *rulesOf(user: User, namespace: string | undefined): Generator<PolicyRule> {
    for (const binding of this.#bindings('clusterrolebindings')) {
      if (isBound(binding, user, undefined)) yield* this.#rulesOfRole(binding, undefined)
    }
    if (namespace === undefined) return
    for (const binding of this.#bindings('rolebindings', namespace)) {
      if (isBound(binding, user, namespace)) yield* this.#rulesOfRole(binding, namespace)
    }
  }

  /** The rules of the role in a binding. */
  rulesOfReference(reference: RoleRef, namespace: string | undefined): readonly PolicyRule[] {
    const isCluster = reference.kind === 'ClusterRole'
    const roles = this.#ctx.store.collection(`${isCluster ? 'clusterroles' : 'roles'}.${rbac}`)
    const role = roles.get(keyOf(isCluster ? undefined : namespace, reference.name ?? ''))
    return role === undefined ? [] : this.#rulesIn(role)
  }

  #rulesOfRole(binding: StoredObject, namespace: string | undefined): readonly PolicyRule[] {
    return this.rulesOfReference(binding['roleRef'] ?? {}, namespace)
  }

  /** An aggregated role has the rules of all roles that it selects, and none of its own. */
  #rulesIn(role: StoredObject): readonly PolicyRule[] {
    const { clusterRoleSelectors } = (role['aggregationRule'] ?? {}) as {
      readonly clusterRoleSelectors?: readonly LabelSelector[]
    }
    const own = (role['rules'] ?? []) as readonly PolicyRule[]
    if (clusterRoleSelectors === undefined) return own
    const rules: PolicyRule[] = []
    this.#ctx.store.collection(`clusterroles.${rbac}`).scan({}, (other) => {
      const isSelected =
        other.metadata.name !== role.metadata.name &&
        clusterRoleSelectors.some((one) => matchesSelector(one, other.metadata.labels))
      // Selected roles may be aggregated too, like `admin` of `edit` and `edit` of `view`.
      if (isSelected) rules.push(...this.#rulesIn(other))
      return true
    })
    return rules
  }

  #bindings(plural: string, namespace?: string): readonly StoredObject[] {
    const found: StoredObject[] = []
    const scope = namespace === undefined ? {} : { prefix: namespacePrefix(namespace) }
    this.#ctx.store.collection(`${plural}.${rbac}`).scan(scope, (binding) => {
      found.push(binding)
      return true
    })
    return found
  }
}

/** Service accounts without a namespace are those of the binding's namespace. */
function isBound(binding: StoredObject, user: User, namespace: string | undefined): boolean {
  return ((binding['subjects'] ?? []) as readonly Subject[]).some((subject) => {
    const { kind, name = '' } = subject
    if (kind === 'User') return name === user.name
    if (kind === 'Group') return user.groups.includes(name)
    const of = subject.namespace === undefined || subject.namespace === '' ? namespace : subject.namespace
    return kind === 'ServiceAccount' && user.name === `system:serviceaccount:${of}:${name}`
  })
}

/** Whether a single rule allows the access. */
export function ruleAllows(rule: PolicyRule, access: Access): boolean {
  if (!has(rule.verbs, access.verb)) return false
  return 'path' in access ? pathMatches(rule, access) : resourceMatches(rule, access)
}

function has(list: readonly string[] | undefined, value: string): boolean {
  return list?.includes('*') === true || list?.includes(value) === true
}

function pathMatches({ nonResourceURLs = [] }: PolicyRule, { path }: PathAccess): boolean {
  return nonResourceURLs.some((pattern) =>
    pattern.endsWith('*') ? path.startsWith(pattern.slice(0, -1)) : pattern === path,
  )
}

function resourceMatches(rule: PolicyRule, { group, resource, subresource, name }: ResourceAccess): boolean {
  if (!has(rule.apiGroups, group)) return false
  const names = rule.resourceNames ?? []
  if (names.length > 0 && !names.includes(name ?? '')) return false
  const whole = subresource === undefined ? resource : `${resource}/${subresource}`
  return (
    has(rule.resources, whole) ||
    (subresource !== undefined && rule.resources?.includes(`*/${subresource}`) === true)
  )
}

/** The rules in the form of `SelfSubjectRulesReview`. */
export function reviewedRules(rules: Iterable<PolicyRule>): object {
  const all = [...rules]
  return {
    incomplete: false,
    resourceRules: all
      .filter(({ resources = [] }) => resources.length > 0)
      .map(({ verbs, apiGroups, resources, resourceNames }) => ({
        verbs,
        apiGroups,
        resources,
        ...(resourceNames !== undefined && { resourceNames }),
      })),
    nonResourceRules: all
      .filter(({ nonResourceURLs = [] }) => nonResourceURLs.length > 0)
      .map(({ verbs, nonResourceURLs }) => ({ verbs, nonResourceURLs })),
  }
}
