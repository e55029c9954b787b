/** Builds what serves ProvisioningRequests. */
import type { KubeClient } from '@tenon/kube'
import type { RunnableSpec } from '../controller.ts'
import { KeptPlans } from '../placement/kept-plans.ts'
import { GroupStanding } from '../podgroup/standing.ts'
import { RequestBooking } from '../provisioningrequest/booking.ts'
import { ConsumerReport } from '../provisioningrequest/consumer-report.ts'
import { ProvisioningRequests } from '../provisioningrequest/controller.ts'
import { RequestProgress } from '../provisioningrequest/progress.ts'
import { RequestStatus } from '../provisioningrequest/request-status.ts'
import { RequestTemplates } from '../provisioningrequest/request-templates.ts'
import { RequestSearch } from '../provisioningrequest/search.ts'
import type { Assembly } from './parts.ts'

/**
 * Nothing without the feature gate.
 * @param written by whom conditions are written.
 */
export function provisioningRequestsOf(
  parts: Assembly,
  written: Pick<KubeClient, 'patch'>,
): readonly RunnableSpec[] {
  if (parts.caches.groupKinds === undefined) return []
  parts.state.requests.serve()
  const standing = new GroupStanding(parts)
  const templates = new RequestTemplates(parts)
  const progress = new RequestProgress({ ...parts, standing, keptPlans: new KeptPlans(parts) })
  const status = new RequestStatus({ ...parts, client: written })
  return [
    new ProvisioningRequests({
      state: parts.state,
      standing,
      search: new RequestSearch({ ...parts, templates, progress, status }),
      booking: new RequestBooking({ ...parts, templates, progress, status }),
      consumers: new ConsumerReport(parts),
    }),
  ]
}
