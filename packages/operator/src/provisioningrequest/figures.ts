/** How many ProvisioningRequests there are, and how far they are (gangs.md 7.7). */
import { isConditionTrue } from '@tenon/api'
import { type RequestClass, requestClassOf, requestStageOf } from '@tenon/engine'
import type { ClusterState } from '../cluster/cluster-state.ts'
import { refOfRequest } from '../cluster/pods/request-pods.ts'

export interface RequestFigures {
  readonly class: 'check-capacity' | 'best-effort-atomic-scale-up'
  readonly state: 'sought' | 'waiting' | 'booked' | 'expired' | 'failed'
  readonly requests: number
}

const classNames: Readonly<Record<RequestClass, RequestFigures['class']>> = {
  check: 'check-capacity',
  atomic: 'best-effort-atomic-scale-up',
}

export function requestFigures({ requests }: Pick<ClusterState, 'requests'>): readonly RequestFigures[] {
  const counts = new Map<string, RequestFigures>()
  for (const request of requests.list()) {
    const of = requestClassOf(request.spec.provisioningClassName)
    if (of === undefined) continue
    const { kind } = requestStageOf(request)
    const isServed = requests.served(refOfRequest(request).id) !== undefined
    const state =
      kind === 'booked'
        ? 'booked'
        : kind === 'ended'
          ? isConditionTrue(request, 'Failed')
            ? 'failed'
            : 'expired'
          : isServed
            ? 'sought'
            : 'waiting'
    const key = `${of} ${state}`
    counts.set(key, { class: classNames[of], state, requests: (counts.get(key)?.requests ?? 0) + 1 })
  }
  return [...counts.values()]
}
