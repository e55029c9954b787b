import type { User } from './user.ts'
import type { Authenticator } from './authentication.ts'

/** A resource that answers questions instead of keeping objects. */
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

/** The answer to a review; `undefined` when the resource is none. */
export function answerReview(
  resource: VirtualResource,
  body: Fields,
  user: User,
  authenticator: Authenticator,
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
      return { ...base, spec, status: rulesStatus(user) }
    default:
      return { ...base, spec, status: accessStatus(spec, subjectUser(resource, spec, user)) }
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

/** Identities of joining machines read, and ask for certificates; everyone else may do everything. */
export function isRestricted(user: User): boolean {
  return user.groups.includes('system:bootstrappers')
}

const readVerbs = new Set(['get', 'list', 'watch'])

function accessStatus(spec: Fields, user: User): object {
  const attributes = (spec['resourceAttributes'] ?? spec['nonResourceAttributes'] ?? {}) as Fields
  const allowed = !isRestricted(user) || readVerbs.has(String(attributes['verb'] ?? ''))
  return allowed ? { allowed: true } : { allowed: false, reason: 'bootstrap identities may not write' }
}

function rulesStatus(user: User): object {
  const verbs = isRestricted(user) ? [...readVerbs] : ['*']
  return {
    incomplete: false,
    resourceRules: [{ verbs, apiGroups: ['*'], resources: ['*'] }],
    nonResourceRules: [{ verbs, nonResourceURLs: ['*'] }],
  }
}
