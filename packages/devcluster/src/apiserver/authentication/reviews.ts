import { ownValue } from '@tenon/api'
import type { User } from './user.ts'
import type { Authenticator } from './authentication.ts'
import type { Access } from '../authorization/attributes.ts'
import { type Authorizer, reviewedRules } from '../authorization/authorizer.ts'

/** A resource that is computed instead of stored, such as a review. */
export interface VirtualResource {
  readonly group: string
  readonly version: string
  readonly kind: string
  readonly plural: string
  readonly namespaced: boolean
}

const authentication = { group: 'authentication.k8s.io', version: 'v1' }
const authorization = { group: 'authorization.k8s.io', version: 'v1' }

export const reviewResources: readonly VirtualResource[] = [
  { ...authentication, kind: 'SelfSubjectReview', plural: 'selfsubjectreviews', namespaced: false },
  { ...authentication, kind: 'TokenReview', plural: 'tokenreviews', namespaced: false },
  {
    ...authorization,
    kind: 'LocalSubjectAccessReview',
    plural: 'localsubjectaccessreviews',
    namespaced: true,
  },
  {
    ...authorization,
    kind: 'SelfSubjectAccessReview',
    plural: 'selfsubjectaccessreviews',
    namespaced: false,
  },
  { ...authorization, kind: 'SelfSubjectRulesReview', plural: 'selfsubjectrulesreviews', namespaced: false },
  { ...authorization, kind: 'SubjectAccessReview', plural: 'subjectaccessreviews', namespaced: false },
]

type Fields = Readonly<Record<string, unknown>>

/** What a review needs. */
export interface ReviewParts {
  readonly user: User
  /** Of a namespaced review. */
  readonly namespace: string | undefined
  readonly authenticator: Authenticator
  readonly authorizer: Authorizer
}

function rulesStatus(spec: Fields, user: User, authorizer: Authorizer): object {
  const namespace = typeof spec['namespace'] === 'string' ? spec['namespace'] : undefined
  return reviewedRules(authorizer.rulesOf(user, namespace))
}

/** The result of a review; `undefined` if the resource is not a review. */
export function answerReview(
  resource: VirtualResource,
  body: Fields,
  { user, namespace, authenticator, authorizer }: ReviewParts,
): object {
  const metadata = { creationTimestamp: null, ...(body['metadata'] as object | undefined) }
  const base = { kind: resource.kind, apiVersion: `${resource.group}/${resource.version}`, metadata }
  const spec = (body['spec'] ?? {}) as Fields
  switch (resource.kind) {
    case 'SelfSubjectReview':
      return { ...base, status: { userInfo: userInfo(user) } }
    case 'TokenReview':
      return { ...base, spec, status: tokenStatus(spec, authenticator) }
    case 'SelfSubjectRulesReview':
      return { ...base, spec, status: rulesStatus(spec, user, authorizer) }
    default:
      return {
        ...base,
        spec,
        status: {
          allowed: authorizer.allows(subjectUser(resource, spec, user), accessIn(spec, namespace)),
        },
      }
  }
}

function userInfo(user: User): object {
  return {
    username: user.name,
    ...(user.uid === undefined ? {} : { uid: user.uid }),
    groups: user.groups,
    ...(user.extra === undefined ? {} : { extra: user.extra }),
  }
}

function tokenStatus(spec: Fields, authenticator: Authenticator): object {
  const token = typeof spec['token'] === 'string' ? spec['token'] : ''
  const user = authenticator.userOfToken(token)
  if (user === undefined) return { authenticated: false, error: 'the token is not valid' }
  return {
    authenticated: true,
    user: userInfo(user),
    audiences: spec['audiences'] ?? [authenticator.audience],
  }
}

function subjectUser(resource: VirtualResource, spec: Fields, user: User): User {
  if (resource.kind === 'SelfSubjectAccessReview') return user
  return { name: String(spec['user'] ?? ''), groups: (spec['groups'] ?? []) as readonly string[] }
}

/** The access in the spec of a review. */
function accessIn(spec: Fields, namespace: string | undefined): Access {
  const path = spec['nonResourceAttributes'] as { verb?: string; path?: string } | undefined
  if (path !== undefined) return { verb: path.verb ?? '', path: path.path ?? '' }
  const given = (spec['resourceAttributes'] ?? {}) as Readonly<Record<string, string | undefined>>
  const of = (field: string) => ownValue(given, field) || undefined
  return {
    verb: of('verb') ?? '',
    group: of('group') ?? '',
    resource: of('resource') ?? '',
    subresource: of('subresource'),
    namespace: namespace ?? of('namespace'),
    name: of('name'),
  }
}
