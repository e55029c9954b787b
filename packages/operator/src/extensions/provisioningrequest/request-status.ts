/** Writes the status of ProvisioningRequests (gangs.md 2.1), and counts them by state. */
import {
  autoscalingKinds,
  conditionOf,
  type NewCondition,
  type ProvisioningRequest,
  requestClassNames,
  requestClassOf,
  requestStateOf,
  withRequestCondition,
} from '@tenon/api'
import { isKubeError, type KubeClient } from '@tenon/kube'
import { type Clock, rfc3339 } from '@tenon/runtime'
import type { RequestFigures } from '../../metrics/metrics.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import { refOfRequest } from '../../state/pods/request-pods.ts'

interface StatusChange {
  readonly condition: NewCondition
  readonly details?: Readonly<Record<string, string>>
}

export class RequestStatus {
  readonly #client: Pick<KubeClient, 'patch'>
  readonly #clock: Pick<Clock, 'now'>

  constructor(client: Pick<KubeClient, 'patch'>, clock: Pick<Clock, 'now'>) {
    this.#client = client
    this.#clock = clock
  }

  /**
   * Writes a condition with the current time, even if its status stays.
   * @returns false when the request has changed or gone meanwhile.
   */
  async write(request: ProvisioningRequest, change: StatusChange, signal: AbortSignal): Promise<boolean> {
    return await this.#patch(request, change, rfc3339(this.#clock.now()), signal)
  }

  /** The same, but keeps the time if only the message changes. */
  async update(request: ProvisioningRequest, condition: NewCondition, signal: AbortSignal): Promise<boolean> {
    const old = conditionOf(request, condition.type)
    if (old?.status !== condition.status || old.reason !== condition.reason)
      return await this.write(request, { condition }, signal)
    if (old.message === condition.message) return true
    return await this.#patch(request, { condition }, old.lastTransitionTime, signal)
  }

  async #patch(
    request: ProvisioningRequest,
    { condition, details }: StatusChange,
    at: string,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { name, namespace = '', resourceVersion = '' } = request.metadata
    const conditions = withRequestCondition(request, condition, at)
    try {
      await this.#client.patch(
        autoscalingKinds.provisioningRequest,
        { namespace, name },
        { status: { conditions, ...(details && { provisioningClassDetails: details }) } },
        { subresource: 'status', resourceVersion, isAnswerUnread: true, signal },
      )
      return true
    } catch (error) {
      if (isKubeError(error, 'conflict', 'notFound')) return false
      throw error
    }
  }
}

export function requestFigures({ requests }: Pick<ClusterState, 'requests'>): readonly RequestFigures[] {
  const counts = new Map<string, RequestFigures>()
  for (const request of requests.list()) {
    const of = requestClassOf(request.spec.provisioningClassName)
    if (of === undefined) continue
    const state = requestStateOf(request, requests.served(refOfRequest(request).id) !== undefined)
    const key = `${of} ${state}`
    const before = counts.get(key)?.requests ?? 0
    counts.set(key, { class: requestClassNames[of], state, requests: before + 1 })
  }
  return [...counts.values()]
}
