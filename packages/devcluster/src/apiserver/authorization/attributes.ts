import type { HttpRequest } from '@tenon/runtime'
import type { ResourcePath } from '../http/request-path.ts'
import type { User } from '../authentication/user.ts'

/** An action on a resource. */
export interface ResourceAccess {
  readonly verb: string
  readonly group: string
  readonly resource: string
  readonly subresource?: string | undefined
  readonly namespace?: string | undefined
  readonly name?: string | undefined
}

/** An action on a non-resource path. */
export interface PathAccess {
  readonly verb: string
  readonly path: string
}

export type Access = ResourceAccess | PathAccess

/** Such as `User "jane" cannot get resource "pods" in API group "" in the namespace "default"`. */
export function refusalOf(user: User, access: Access): string {
  const who = `User ${JSON.stringify(user.name)} cannot ${access.verb}`
  if ('path' in access) return `${who} path ${JSON.stringify(access.path)}`
  const { group, resource, subresource, namespace } = access
  const what = subresource === undefined ? resource : `${resource}/${subresource}`
  const where =
    namespace === undefined ? 'at the cluster scope' : `in the namespace ${JSON.stringify(namespace)}`
  return `${who} resource ${JSON.stringify(what)} in API group ${JSON.stringify(group)} ${where}`
}

const verbs: ReadonlyMap<string, string> = new Map([
  ['POST', 'create'],
  ['PUT', 'update'],
  ['PATCH', 'patch'],
])

/** The access that a request on a resource needs. */
export function accessOf(
  { method }: HttpRequest,
  path: ResourcePath,
  query: URLSearchParams,
): ResourceAccess {
  const { group, plural, subresource } = path
  const isRead = method === 'GET' || method === 'HEAD'
  const watch = query.get('watch')
  const isWatch = isRead && (watch === 'true' || watch === '1' || watch === '')
  const read = isWatch ? 'watch' : path.name === undefined ? 'list' : 'get'
  const remove = path.name === undefined ? 'deletecollection' : 'delete'
  const verb = isRead ? read : method === 'DELETE' ? remove : (verbs.get(method) ?? method.toLowerCase())
  // A Namespace is in itself.
  const own = group === '' && plural === 'namespaces' ? path.name : undefined
  const selected = /^metadata\.name=([^,]+)$/.exec(query.get('fieldSelector') ?? '')?.[1]
  return {
    verb,
    group,
    resource: plural,
    subresource,
    namespace: path.namespace ?? own,
    name: path.name ?? selected,
  }
}
