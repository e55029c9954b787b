/** `provisioningrequest`: sees each ProvisioningRequest through its life (gangs.md 7.6). */
import { type ProvisioningRequest, requestClassOf, requestStageOf } from '@tenon/api'
import { done, type ReconcileResult } from '@tenon/kube'
import type { ClusterState } from '../../state/cluster-state.ts'
import { isUnreadable } from '../../state/readable.ts'
import { refOf } from '../../state/pods/group-of-pod.ts'
import { refOfRequest } from '../../state/pods/request-pods.ts'
import type { ControllerSpec, Enqueue } from '../../controller.ts'
import type { GroupStanding } from '../podgroup/standing.ts'
import type { RequestBooking } from './booking.ts'
import type { ConsumerReport } from './consumer-report.ts'
import type { RequestSearch } from './search.ts'

interface Dependencies {
  readonly state: Pick<ClusterState, 'podGroups' | 'requests'>
  readonly standing: Pick<GroupStanding, 'onChange'>
  readonly search: RequestSearch
  readonly booking: RequestBooking
  readonly consumers: ConsumerReport
}

export class ProvisioningRequests implements ControllerSpec {
  readonly name = 'provisioningrequest'
  readonly concurrency = { least: 4, most: 10 }
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  watch(enqueue: Enqueue): void {
    const { standing, state } = this.#deps
    state.requests.changes.add((key) => {
      enqueue(key)
    })
    standing.onChange((id) => {
      const ref = state.podGroups.ref(id)
      if (ref?.source === 'request') enqueue(`${ref.namespace}/${ref.name}`)
    })
  }

  /** @param key `namespace/name`. */
  async reconcile(key: string, signal: AbortSignal): Promise<ReconcileResult> {
    const { consumers, state } = this.#deps
    const request = state.requests.get(key)
    const result = request === undefined ? this.#gone(key) : await this.#ofRequest(request, signal)
    consumers.tell(key)
    return result
  }

  #gone(key: string): ReconcileResult {
    const { search, state } = this.#deps
    const [namespace = '', name = ''] = key.split('/')
    const ref = refOf('request', namespace, name)
    search.forget(state.requests.served(ref.id)?.request)
    state.requests.drop(ref)
    return done
  }

  async #ofRequest(request: ProvisioningRequest, signal: AbortSignal): Promise<ReconcileResult> {
    const { booking, search, state } = this.#deps
    if (isUnreadable(request)) {
      state.requests.leave(request)
      return done
    }
    const of = requestClassOf(request.spec.provisioningClassName)
    const stage = requestStageOf(request)
    if (of !== undefined && stage.kind === 'sought')
      return await search.next({ request, class: of, signal }, stage.triedMs)
    search.forget(request)
    if (of !== undefined && stage.kind === 'booked')
      return await booking.next({ request, class: of, signal }, stage.sinceMs)
    // Others serve it, it has ended, or somebody has to say first whether there is room.
    state.requests.drop(refOfRequest(request), request.metadata.uid)
    return done
  }
}
