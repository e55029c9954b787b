/** `podgroup.discovery`: watches the kinds of groups once they are served and may be read (gangs.md 7.1). */
import { apiVersionOf, autoscalingKinds, kinds, podGroupKinds, type ResourceType } from '@tenon/api'
import { isKubeError, isUnavailable, type KubeClient, type ReconcileResult } from '@tenon/kube'
import type { Logger } from '@tenon/runtime'
import type { GroupKinds } from '../../state/caches.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import type { GroupSource } from '../../state/pods/group-of-pod.ts'

const lookAgainMs = 60_000
const retryMs = 5_000

const groupOf: Readonly<Record<GroupSource, string>> = {
  podgroup: podGroupKinds.kubernetes[0]?.group ?? '',
  coscheduling: podGroupKinds.coscheduling.group,
  volcano: podGroupKinds.volcano.group,
  request: autoscalingKinds.provisioningRequest.group,
}

/** Undefined if the request failed. */
type Found = 'served' | 'absent' | 'forbidden' | undefined

export class GroupDiscovery {
  readonly name = 'podgroup.discovery'
  readonly #client: Pick<KubeClient, 'list'>
  readonly #groupKinds: GroupKinds
  readonly #state: Pick<ClusterState, 'podGroups' | 'requests'>
  readonly #logger: Logger
  /** Versions of kinds that are watched. */
  readonly #followed = new Set<string>()
  /** Sources that were reported as forbidden. */
  readonly #warned = new Set<GroupSource>()

  constructor(
    client: Pick<KubeClient, 'list'>,
    groupKinds: GroupKinds,
    state: Pick<ClusterState, 'podGroups' | 'requests'>,
    logger: Logger,
  ) {
    this.#client = client
    this.#groupKinds = groupKinds
    this.#state = state
    this.#logger = logger
  }

  async run(signal: AbortSignal): Promise<ReconcileResult> {
    const { podGroups } = this.#state
    const own = await this.#lookForNewest(signal)
    const others = await Promise.all(
      (['coscheduling', 'volcano'] as const).map((source) => {
        const type = podGroupKinds[source]
        return this.#look(type, signal, () =>
          podGroups.followMemberGroups(source, this.#groupKinds.open(type)),
        )
      }),
    )
    const requests = await this.#lookForRequests(signal)
    const [coscheduling, volcano] = others
    this.#note('podgroup', own)
    this.#note('coscheduling', [coscheduling])
    this.#note('volcano', [volcano])
    const isKnown = [...own, ...others, requests].every((found) => found !== undefined)
    return { kind: 'after', delayMs: isKnown ? lookAgainMs : retryMs }
  }

  /**
   * Of the versions of Kubernetes' own kind only the newest served one is watched: each has all of the objects. It is
   * asked each time, as a control plane that is upgraded, or taken back, serves another version.
   */
  async #lookForNewest(signal: AbortSignal): Promise<readonly Found[]> {
    const all: Found[] = []
    for (const type of podGroupKinds.kubernetes) {
      const found = await this.#lookAgain(type, signal, () =>
        this.#state.podGroups.followPodGroups(this.#groupKinds.open(type)),
      )
      all.push(found)
      if (found === 'served' || found === undefined) break
    }
    return all
  }

  /** Requests need their pod templates, too. */
  async #lookForRequests(signal: AbortSignal): Promise<Found> {
    const type = autoscalingKinds.provisioningRequest
    const found = await this.#look(type, signal, () => undefined)
    const readable = found === 'served' ? await this.#look(kinds.podTemplate, signal, () => undefined) : found
    if (readable === 'forbidden')
      this.#warn(
        'request',
        'cannot read ProvisioningRequests: missing permission to list and watch provisioningrequests and podtemplates; none is served',
      )
    if (readable === 'absent' || readable === 'forbidden') this.#state.requests.setAbsent()
    if (readable === 'served' && this.#state.requests.caches === undefined)
      this.#state.requests.follow({
        requests: this.#groupKinds.open(type),
        podTemplates: this.#groupKinds.openPodTemplates(),
      })
    return readable
  }

  #note(source: GroupSource, found: readonly Found[]): void {
    if (!found.every((each) => each === 'absent' || each === 'forbidden')) return
    this.#state.podGroups.setAbsent(source)
    if (found.includes('forbidden')) this.#warnForbidden(source)
  }

  /** Requests a kind that is not watched yet, and watches it if it is served. */
  async #look(type: ResourceType, signal: AbortSignal, follow: () => void): Promise<Found> {
    return this.#followed.has(nameOf(type)) ? 'served' : await this.#lookAgain(type, signal, follow)
  }

  async #lookAgain(type: ResourceType, signal: AbortSignal, follow: () => void): Promise<Found> {
    try {
      // Whether it answers is all that matters.
      await this.#client.list(type, { signal, fieldSelector: 'metadata.name=none' })
    } catch (error) {
      signal.throwIfAborted()
      if (isKubeError(error, 'forbidden')) return 'forbidden'
      // For a kind that is not served, kube-apiserver returns plain text without a Status.
      return isUnavailable(error) ? 'absent' : undefined
    }
    if (!this.#followed.has(nameOf(type))) {
      this.#followed.add(nameOf(type))
      follow()
    }
    return 'served'
  }

  /** Only if pods name such groups: otherwise nothing is missing. */
  #warnForbidden(source: GroupSource): void {
    const hasPods = Array.from(this.#state.podGroups.ids()).some(
      (id) => this.#state.podGroups.ref(id)?.source === source,
    )
    if (hasPods)
      this.#warn(
        source,
        'cannot read PodGroups: missing permission to list and watch podgroups; their pods are scheduled one by one',
      )
  }

  #warn(source: GroupSource, message: string): void {
    if (this.#warned.has(source)) return
    this.#warned.add(source)
    this.#logger.warn(message, { apiGroup: groupOf[source] })
  }
}

function nameOf(type: ResourceType): string {
  return `${apiVersionOf(type)}/${type.plural}`
}
