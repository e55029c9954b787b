/** Writes how it stands with a ProvisioningRequest (gangs.md 2.1). */
import {
  autoscalingKinds,
  conditionOf,
  type NewCondition,
  type ProvisioningRequest,
  withRequestCondition,
} from '@tenon/api'
import { isKubeError, type KubeClient } from '@tenon/kube'
import { type Clock, rfc3339 } from '@tenon/runtime'

interface Dependencies {
  readonly client: Pick<KubeClient, 'patch'>
  readonly clock: Pick<Clock, 'now'>
}

interface StatusChange {
  readonly condition: NewCondition
  readonly details?: Readonly<Record<string, string>>
}

export class RequestStatus {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /**
   * Writes a condition with the time of now, also when its status stays.
   * @returns false when the request has changed or gone meanwhile.
   */
  async write(request: ProvisioningRequest, change: StatusChange, signal: AbortSignal): Promise<boolean> {
    return await this.#patch(request, change, rfc3339(this.#deps.clock.now()), signal)
  }

  /** The same; of a condition that only says the same in other words, the time stays. */
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
      await this.#deps.client.patch(
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
