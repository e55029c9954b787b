import type { StoredObject } from '../../contract.ts'
import type { User } from '../authentication/user.ts'
import type { Served } from '../kinds/registry.ts'

/** A write as admission sees it. */
export interface Attributes {
  readonly operation: 'CREATE' | 'UPDATE' | 'DELETE'
  readonly served: Served
  readonly subresource: string | undefined
  readonly namespace: string | undefined
  readonly name: string
  /** The object to store; absent for a deletion. */
  readonly object: StoredObject | undefined
  /** The stored object; absent for a creation. */
  readonly oldObject: StoredObject | undefined
  readonly user: User
  readonly dryRun: boolean
}

/** The AdmissionRequest for webhooks and expressions. */
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
