/** `podgroup.discovery`: finds out which kinds of groups are served and may be read, also while running (gangs.md 7.1). */
import {
  apiVersionOf,
  autoscalingKinds,
  kinds,
  type KubeObject,
  podGroupKinds,
  type ResourceType,
} from '@tenon/api'
import { isKubeError, type KubeClient, type ReconcileResult } from '@tenon/kube'
import type { Logger } from '@tenon/runtime'
import type { GroupKinds } from '../cluster/caches.ts'
import type { ClusterState } from '../cluster/cluster-state.ts'
import type { GroupSource } from '../cluster/pods/group-of-pod.ts'

/** What this file works with. */
interface Dependencies {
  readonly client: Pick<KubeClient, 'list'>
  readonly groupKinds: GroupKinds
  readonly state: Pick<ClusterState, 'podGroups' | 'requests'>
  readonly logger: Logger
}

const lookAgainMs = 60_000
const retryMs = 5_000

/** What a server says of a kind; undefined when it did not answer. */
type Found = 'served' | 'absent' | undefined

export class GroupDiscovery {
  readonly name = 'podgroup.discovery'
  readonly #deps: Dependencies
  /** Versions of kinds that are read. */
  readonly #followed = new Set<string>()
  /** Those that may not be read, and of which that was told. */
  readonly #forbidden = new Set<string>()

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  async run(signal: AbortSignal): Promise<ReconcileResult> {
    const { groupKinds, state } = this.#deps
    const { podGroups } = state
    const own = await Promise.all(
      podGroupKinds.kubernetes.map((type) =>
        this.#look(type, signal, () => podGroups.followPodGroups(groupKinds.open(type))),
      ),
    )
    const others = await Promise.all(
      (['coscheduling', 'volcano'] as const).map((source) => {
        const type = podGroupKinds[source]
        return this.#look(type, signal, () => podGroups.followMemberGroups(source, groupKinds.open(type)))
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

  /** Requests are of no use without the templates of their pods. */
  async #lookForRequests(signal: AbortSignal): Promise<Found> {
    const { groupKinds, state } = this.#deps
    const type = autoscalingKinds.provisioningRequest
    const found = await this.#look(type, signal, () => undefined)
    const readable = found === 'served' ? await this.#look(kinds.podTemplate, signal, () => undefined) : found
    if (readable === 'absent') state.requests.setAbsent()
    if (readable === 'served' && state.requests.caches === undefined)
      state.requests.follow({
        requests: groupKinds.open(type),
        podTemplates: groupKinds.openPodTemplates(),
      })
    return readable
  }

  #note(source: GroupSource, found: readonly Found[]): void {
    if (found.every((each) => each === 'absent')) this.#deps.state.podGroups.setAbsent(source)
  }

  /** Asks for a kind that is not read yet, and reads it if it is served. */
  async #look<T extends KubeObject>(
    type: ResourceType<T>,
    signal: AbortSignal,
    follow: () => void,
  ): Promise<Found> {
    const version = nameOf(type)
    if (this.#followed.has(version)) return 'served'
    try {
      await this.#deps.client.list(type, { signal })
    } catch (error) {
      signal.throwIfAborted()
      if (isKubeError(error, 'forbidden')) this.#tellForbidden(type, error)
      else if (!isKubeError(error, 'notFound')) return undefined
      return 'absent'
    }
    this.#followed.add(version)
    this.#forbidden.delete(version)
    follow()
    return 'served'
  }

  #tellForbidden(type: ResourceType, error: Error): void {
    const version = nameOf(type)
    if (this.#forbidden.has(version)) return
    this.#forbidden.add(version)
    this.#deps.logger.warn(
      `cannot read ${type.kind}s: missing permission to list and watch ${type.plural}; their pods are scheduled one by one`,
      { apiVersion: apiVersionOf(type), error },
    )
  }
}

function nameOf(type: ResourceType): string {
  return `${apiVersionOf(type)}/${type.plural}`
}
