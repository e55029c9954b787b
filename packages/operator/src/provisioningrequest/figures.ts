/** How many ProvisioningRequests there are, and how far they are (gangs.md 7.7). */
import { requestClassNames, requestClassOf, type RequestState, requestStateOf } from '@tenon/api'
import type { ClusterState } from '../cluster/cluster-state.ts'
import { refOfRequest } from '../cluster/pods/request-pods.ts'

export interface RequestFigures {
  readonly class: 'check-capacity' | 'best-effort-atomic-scale-up'
  readonly state: RequestState
  readonly requests: number
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
