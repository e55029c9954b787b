/** `vpa.prediction`: reads what VerticalPodAutoscalers will have pods ask for (buffers-and-dra.md 4). */
import { type ResourceType, type VerticalPodAutoscaler, verticalPodAutoscalerKind } from '@tenon/api'
import { problemText } from '@tenon/engine'
import { isKubeError, isUnavailable, type KubeClient, type ReconcileResult } from '@tenon/kube'
import type { Clock, Logger } from '@tenon/runtime'
import type { ClusterState } from '../../state/cluster-state.ts'
import { objectFields } from '../../state/kept-fields.ts'
import type { PredictionTarget } from '../../state/pods/predictions.ts'
import type { SingletonSpec } from '../../controller.ts'
import { inParallel } from '../../in-parallel.ts'
import { predictedRequests } from './predicted-requests.ts'

interface Dependencies {
  readonly client: Pick<KubeClient, 'get' | 'list'>
  readonly state: Pick<ClusterState, 'predictions'>
  readonly clock: Clock
  readonly logger: Logger
}

const pollMs = 30_000
/** The kind is not served, or there is no right to read it. */
const absentMs = 60_000
/** What cannot be read for the moment holds nothing up for longer. */
const unknownMs = 60_000
const parallelReads = 10

export class VpaPredictions implements SingletonSpec {
  readonly name = 'vpa.prediction'
  readonly #deps: Dependencies
  readonly #openedMs: number
  /** By `namespace/name`, the version that was last read to the end. */
  readonly #read = new Map<string, string>()
  #isForbidden = false

  constructor(deps: Dependencies) {
    this.#deps = deps
    this.#openedMs = deps.clock.monotonic()
    deps.state.predictions.awaited()
  }

  async run(signal: AbortSignal): Promise<ReconcileResult> {
    const { clock, state } = this.#deps
    try {
      const found = await this.#list(signal)
      if (found === undefined) {
        this.#keepOnly(new Set())
        state.predictions.known()
        return { kind: 'after', delayMs: absentMs }
      }
      this.#keepOnly(new Set(found.map(keyOf)))
      const changed = found.filter(
        (each) => this.#read.get(keyOf(each)) !== (each.metadata.resourceVersion ?? ''),
      )
      const failures = await inParallel(changed, parallelReads, async (each) => {
        await this.#follow(each, signal)
      })
      if (failures.length === 0) state.predictions.known()
      return { kind: 'after', delayMs: pollMs }
    } finally {
      if (clock.monotonic() - this.#openedMs >= unknownMs) state.predictions.known()
    }
  }

  /** @returns undefined where there can be none. */
  async #list(signal: AbortSignal): Promise<readonly VerticalPodAutoscaler[] | undefined> {
    const { client, logger } = this.#deps
    try {
      const found = await client.list(verticalPodAutoscalerKind, { signal, fields: objectFields })
      this.#isForbidden = false
      return found
    } catch (error) {
      if (!isUnavailable(error)) throw error
      if (isKubeError(error, 'forbidden') && !this.#isForbidden)
        logger.info(
          'VerticalPodAutoscalers are not taken into account: grant list on verticalpodautoscalers.autoscaling.k8s.io, or set --vpa-predictions=false',
          { error },
        )
      this.#isForbidden = isKubeError(error, 'forbidden')
      return undefined
    }
  }

  #keepOnly(keys: ReadonlySet<string>): void {
    const { predictions } = this.#deps.state
    for (const { namespace, name } of predictions.all())
      if (!keys.has(`${namespace}/${name}`)) predictions.drop(`${namespace}/${name}`)
    for (const key of this.#read.keys()) if (!keys.has(key)) this.#read.delete(key)
  }

  /** @throws what kept its target from being read, if that may be there. */
  async #follow(autoscaler: VerticalPodAutoscaler, signal: AbortSignal): Promise<void> {
    const { predictions } = this.#deps.state
    const key = keyOf(autoscaler)
    const containers = this.#predicted(autoscaler)
    const {
      creationTimestamp: createdAt = '',
      name,
      namespace = '',
      resourceVersion = '',
    } = autoscaler.metadata
    if (containers.length === 0) {
      predictions.drop(key)
      this.#read.set(key, resourceVersion)
      return
    }
    const target = await this.#targetOf(autoscaler, signal)
    if (target === undefined) {
      // It is looked for again the next time.
      predictions.drop(key)
      this.#read.delete(key)
      return
    }
    predictions.put({ namespace, name, createdAt, target, containers })
    this.#read.set(key, resourceVersion)
  }

  /** One that cannot be read predicts nothing, and stands in the way of no other. */
  #predicted(autoscaler: VerticalPodAutoscaler): ReturnType<typeof predictedRequests> {
    const { name, namespace = '' } = autoscaler.metadata
    try {
      return predictedRequests(autoscaler)
    } catch (error) {
      this.#deps.logger.info(
        'a VerticalPodAutoscaler is not taken into account: correct the amounts in its spec.resourcePolicy and status.recommendation',
        { VerticalPodAutoscaler: { name, namespace }, because: problemText(error) },
      )
      return []
    }
  }

  /** @returns undefined when there is no such object, no such kind, or no right to read it (trap 50). */
  async #targetOf(
    { metadata, spec }: VerticalPodAutoscaler,
    signal: AbortSignal,
  ): Promise<PredictionTarget | undefined> {
    const { apiVersion = '', kind = '', name = '' } = spec?.targetRef ?? {}
    const { namespace = '' } = metadata
    const type = typeOf(apiVersion, kind)
    try {
      const { uid } = (await this.#deps.client.get(type, { namespace, name }, { signal }))?.metadata ?? {}
      return uid === undefined ? undefined : { group: type.group, kind, name, uid }
    } catch (error) {
      if (isUnavailable(error)) return undefined
      throw error
    }
  }
}

/** The kind, by the plural that kinds are named with nearly without exception. */
function typeOf(apiVersion: string, kind: string): ResourceType {
  const [version = '', group = ''] = apiVersion.split('/').toReversed()
  const singular = kind.toLowerCase()
  const plural = /(s|x|ch|sh)$/.test(singular)
    ? `${singular}es`
    : /[^aeiou]y$/.test(singular)
      ? `${singular.slice(0, -1)}ies`
      : `${singular}s`
  return { group, version, kind, plural, namespaced: true }
}

function keyOf({ metadata: { name, namespace = '' } }: VerticalPodAutoscaler): string {
  return `${namespace}/${name}`
}
