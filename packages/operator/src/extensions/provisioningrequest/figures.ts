/** How many ProvisioningRequests there are, and how far they are (gangs.md 7.7). */
import { requestClassNames, requestClassOf, requestStateOf } from '@tenon/api'
import type { ClusterState } from '../../state/cluster-state.ts'
import type { RequestFigures } from '../../metrics/figures.ts'
import { refOfRequest } from '../../state/pods/request-pods.ts'

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
