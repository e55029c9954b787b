/** SubjectAccessReviews and SelfSubjectAccessReviews. */
import { type AnswerCheck, isJsonFields } from '@tenon/runtime'
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
