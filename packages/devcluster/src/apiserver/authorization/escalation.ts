import { ownValue } from '@tenon/api'
import type { ApiError, StoredObject } from '../../contract.ts'
import type { User } from '../authentication/user.ts'
import type { Served } from '../kinds/registry.ts'
import { jsonEqual } from '../../schema/shape-node.ts'
import { forbidden } from '../http/status.ts'
import type { Access } from './attributes.ts'
import { type Authorizer, masters, type PolicyRule, ruleAllows } from './authorizer.ts'

const group = 'rbac.authorization.k8s.io'

/** A role or binding to store. */
interface RoleWrite {
  readonly served: Served
  readonly object: StoredObject
  readonly oldObject: StoredObject | undefined
  readonly user: User
}

/**
 * Refuses roles and bindings that grant more than their writer has.
 * @throws ApiError.
 */
export function refuseEscalation(
  authorizer: Authorizer,
  { served, object, oldObject, user }: RoleWrite,
): void {
  const { definition } = served
  if (definition.group !== group || user.groups.includes(masters)) return
  const fields = ['rules', 'aggregationRule', 'roleRef', 'subjects']
  if (
    oldObject !== undefined &&
    fields.every((field) => jsonEqual(ownValue(object, field), ownValue(oldObject, field)))
  )
    return
  const { namespace, name } = object.metadata
  const isBinding = definition.kind.endsWith('Binding')
  const reference = (object['roleRef'] ?? {}) as { readonly kind?: string; readonly name?: string }
  const exempt: Access = isBinding
    ? {
        verb: 'bind',
        group,
        resource: reference.kind === 'ClusterRole' ? 'clusterroles' : 'roles',
        namespace,
        name: reference.name,
      }
    : { verb: 'escalate', group, resource: definition.plural, namespace, name }
  if (authorizer.allows(user, exempt)) return
  const granted = isBinding
    ? authorizer.rulesOfReference(reference, namespace)
    : ((object['rules'] ?? []) as readonly PolicyRule[])
  const own = [...authorizer.rulesOf(user, namespace)]
  const missing = granted
    .flatMap((rule) => atoms(rule))
    .filter((atom) => !own.some((one) => covers(one, atom)))
  if (missing.length > 0) throw refusal(served, name, user, missing)
}

function refusal(served: Served, name: string, user: User, missing: readonly PolicyRule[]): ApiError {
  const words = missing.map((rule) => JSON.stringify(rule)).join('\n')
  return forbidden(
    served.definition,
    name,
    `user ${JSON.stringify(user.name)} (groups=${JSON.stringify(user.groups)}) is attempting to grant RBAC permissions not currently held:\n${words}`,
  )
}

/** Splits a rule into rules with one verb, group, resource, name or path each. */
function atoms(rule: PolicyRule): readonly PolicyRule[] {
  const names = rule.resourceNames ?? []
  return rule.verbs.flatMap((verb) => [
    ...(rule.nonResourceURLs ?? []).map((url) => ({ verbs: [verb], nonResourceURLs: [url] })),
    ...(rule.apiGroups ?? []).flatMap((apiGroup) =>
      (rule.resources ?? []).flatMap((resource) =>
        (names.length === 0 ? [undefined] : names).map((name) => ({
          verbs: [verb],
          apiGroups: [apiGroup],
          resources: [resource],
          ...(name !== undefined && { resourceNames: [name] }),
        })),
      ),
    ),
  ])
}

function covers(own: PolicyRule, atom: PolicyRule): boolean {
  const [verb = ''] = atom.verbs
  const [path] = atom.nonResourceURLs ?? []
  if (path !== undefined) return ruleAllows(own, { verb, path })
  const [resource = '', subresource] = (atom.resources?.[0] ?? '').split('/')
  const [name] = atom.resourceNames ?? []
  return ruleAllows(own, { verb, group: atom.apiGroups?.[0] ?? '', resource, subresource, name })
}
