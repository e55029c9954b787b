/** Builds what serves ProvisioningRequests. */
import type { KubeClient } from '@tenon/kube'
import type { RunnableSpec } from '../controller.ts'
import { KeptPlans } from '../placement/kept-plans.ts'
import { GroupStanding } from '../extensions/podgroup/standing.ts'
import { RequestBooking } from '../extensions/provisioningrequest/booking.ts'
import { ConsumerReport } from '../extensions/provisioningrequest/consumer-report.ts'
import { ProvisioningRequests } from '../extensions/provisioningrequest/controller.ts'
import { RequestProgress } from '../extensions/provisioningrequest/progress.ts'
import { RequestStatus } from '../extensions/provisioningrequest/request-status.ts'
import { RequestTemplates } from '../extensions/provisioningrequest/request-templates.ts'
import { RequestSearch } from '../extensions/provisioningrequest/search.ts'
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
