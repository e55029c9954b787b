import type { StoredObject } from '../../contract.ts'
import type { User } from '../authentication/user.ts'
import type { Served } from '../kinds/registry.ts'

/** What a write is, to those who may refuse or change it. */
export interface Attributes {
  readonly operation: 'CREATE' | 'UPDATE' | 'DELETE'
  readonly served: Served
  readonly subresource: string | undefined
  readonly namespace: string | undefined
  readonly name: string
  /** As it would be stored; absent for a deletion. */
  readonly object: StoredObject | undefined
  /** As it is stored; absent for a creation. */
  readonly oldObject: StoredObject | undefined
  readonly user: User
  readonly dryRun: boolean
}

/** The request as admission webhooks and expressions see it. */
export function requestOf(attributes: Attributes): Readonly<Record<string, unknown>> {
  const { served, operation, name, namespace = '', subresource = '', user, dryRun } = attributes
  const { group, version, kind, plural } = served.definition
  const groupKind = { group, version, kind }
  const groupResource = { group, version, resource: plural }
  return {
    kind: groupKind,
    resource: groupResource,
    subResource: subresource,
    requestKind: groupKind,
    requestResource: groupResource,
    requestSubResource: subresource,
    name,
    namespace,
    operation,
    userInfo: { username: user.name, uid: user.uid ?? '', groups: user.groups, extra: user.extra ?? {} },
    dryRun,
    options: {},
  }
}
