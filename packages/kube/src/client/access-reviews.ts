/** SubjectAccessReviews, SelfSubjectAccessReviews, SelfSubjectReviews and TokenReviews. */
import { type AnswerCheck, isJsonFields, type Secret } from '@tenon/runtime'
import type { KubeClientOptions } from './client.ts'
import { Requester } from './requester.ts'

/** One verb on one resource. */
export interface AccessRight {
  readonly verb: string
  readonly group: string
  readonly resource: string
  readonly subresource?: string
  /** Absent for all namespaces, and for cluster-scoped resources. */
  readonly namespace?: string
  readonly name?: string
}

/** A user or service account other than the caller. */
export interface AccessSubject {
  readonly user: string
  readonly groups: readonly string[]
  readonly uid?: string
  readonly extra?: Readonly<Record<string, readonly string[]>>
}

/** Checks rights. */
export interface AccessReviews {
  /**
   * Whether the subject, or else the caller, has the right.
   * @throws KubeError without a valid answer.
   */
  isAllowed(right: AccessRight, subject?: AccessSubject, signal?: AbortSignal): Promise<boolean>
}

interface Review {
  readonly status: { readonly allowed: boolean }
}

const group = 'authorization.k8s.io/v1'

const reviewCheck: AnswerCheck = (body) =>
  isJsonFields(body) && isJsonFields(body.status) && typeof body.status.allowed === 'boolean'
    ? undefined
    : 'the answer has no status.allowed, which a review has'

/** Creates {@link AccessReviews} of one server. */
export function createAccessReviews(options: KubeClientOptions): AccessReviews {
  const requester = new Requester(options)
  return {
    isAllowed: async (right, subject, signal) => {
      const kind = subject === undefined ? 'SelfSubjectAccessReview' : 'SubjectAccessReview'
      const { status } = await requester.json<Review>({
        method: 'POST',
        path: `/apis/${group}/${kind.toLowerCase()}s`,
        body: { apiVersion: group, kind, spec: { resourceAttributes: right, ...subject } },
        contentType: 'application/json',
        signal,
        // A review changes nothing, so it may be retried.
        retry: 'read',
        check: reviewCheck,
      })
      return status.allowed
    },
  }
}

/** Asks the API server who sent a request to this process, and what they may do. */
export interface ClientReviews {
  /**
   * Whose bearer token this is; undefined if the server does not accept it.
   * @throws KubeError without a valid answer.
   */
  subjectOf(token: Secret, signal?: AbortSignal): Promise<AccessSubject | undefined>
  /**
   * Whether the subject may get a path that is no resource, such as `/metrics`.
   * @throws KubeError without a valid answer.
   */
  mayGet(path: string, subject: AccessSubject, signal?: AbortSignal): Promise<boolean>
}

interface ReviewedUser extends Partial<Omit<AccessSubject, 'user'>> {
  readonly username?: string
}

interface TokenReview {
  readonly status: { readonly authenticated?: boolean; readonly user?: ReviewedUser }
}

interface SelfReview {
  readonly status: { readonly userInfo?: ReviewedUser }
}

const tokenGroup = 'authentication.k8s.io/v1'

const tokenCheck: AnswerCheck = (body) =>
  isJsonFields(body) && isJsonFields(body.status) ? undefined : 'the answer has no status, which a review has'

export function createClientReviews(options: KubeClientOptions): ClientReviews {
  const requester = new Requester(options)
  const review = { method: 'POST', contentType: 'application/json', retry: 'read' } as const
  return {
    subjectOf: async (token, signal) => {
      const { status } = await requester.json<TokenReview>({
        ...review,
        path: `/apis/${tokenGroup}/tokenreviews`,
        body: { apiVersion: tokenGroup, kind: 'TokenReview', spec: { token: token.reveal() } },
        signal,
        check: tokenCheck,
      })
      return status.authenticated === true ? subjectOf(status.user) : undefined
    },
    mayGet: async (path, subject, signal) => {
      const { status } = await requester.json<Review>({
        ...review,
        path: `/apis/${group}/subjectaccessreviews`,
        body: {
          apiVersion: group,
          kind: 'SubjectAccessReview',
          spec: { nonResourceAttributes: { path, verb: 'get' }, ...subject },
        },
        signal,
        check: reviewCheck,
      })
      return status.allowed
    },
  }
}

/**
 * Who the API server takes the caller for; every authenticated user may ask it.
 * @returns undefined for nobody: the request had no credentials.
 * @throws KubeError without a valid answer, `unauthorized` if the server does not accept the credentials.
 */
export async function reviewSelf(
  options: KubeClientOptions,
  signal?: AbortSignal,
): Promise<AccessSubject | undefined> {
  const { status } = await new Requester(options).json<SelfReview>({
    method: 'POST',
    path: `/apis/${tokenGroup}/selfsubjectreviews`,
    body: { apiVersion: tokenGroup, kind: 'SelfSubjectReview' },
    contentType: 'application/json',
    signal,
    retry: 'read',
    check: tokenCheck,
  })
  const subject = subjectOf(status.userInfo)
  return subject?.user === 'system:anonymous' ? undefined : subject
}

function subjectOf({
  username: user = '',
  groups = [],
  uid,
  extra,
}: ReviewedUser = {}): AccessSubject | undefined {
  if (user === '') return undefined
  return { user, groups, ...(uid !== undefined && { uid }), ...(extra !== undefined && { extra }) }
}
