/** `vpa.prediction`: reads the requests that VerticalPodAutoscalers will set on new pods (buffers-and-dra.md 4). */
import {
  type ContainerResourcePolicy,
  ownValue,
  parseResource,
  parseResources,
  type Resources,
  type ResourceType,
  type VerticalPodAutoscaler,
  verticalPodAutoscalerKind,
} from '@tenon/api'
import { problemText } from '@tenon/engine'
import { isKubeError, isUnavailable, type KubeClient, type ReconcileResult } from '@tenon/kube'
import type { Clock, Logger } from '@tenon/runtime'
import type { ClusterState } from '../../state/cluster-state.ts'
import { keyOf } from '../../state/pods/pods.ts'
import { objectFields } from '../../state/kept-fields.ts'
import type { ContainerRequests, PredictionTarget } from '../../state/pods/predictions.ts'
import type { SingletonSpec } from '../../controller.ts'
import { inParallel } from '../../in-parallel.ts'

const pollMs = 30_000
/** Poll interval while the kind is not served or may not be read. */
const absentMs = 60_000
/** Predictions that cannot be read delay decisions no longer than this. */
const unknownMs = 60_000
const parallelReads = 10

export class VpaPredictions implements SingletonSpec {
  readonly name = 'vpa.prediction'
  readonly #client: Pick<KubeClient, 'get' | 'list'>
  readonly #state: Pick<ClusterState, 'predictions'>
  readonly #clock: Clock
  readonly #logger: Logger
  readonly #openedMs: number
  /** Resource version that was last processed successfully, by `namespace/name`. */
  readonly #read = new Map<string, string>()
  #isForbidden = false

  constructor(
    client: Pick<KubeClient, 'get' | 'list'>,
    state: Pick<ClusterState, 'predictions'>,
    clock: Clock,
    logger: Logger,
  ) {
    this.#client = client
    this.#state = state
    this.#clock = clock
    this.#logger = logger
    this.#openedMs = clock.monotonic()
    state.predictions.awaited()
  }

  async run(signal: AbortSignal): Promise<ReconcileResult> {
    try {
      const found = await this.#list(signal)
      if (found === undefined) {
        this.#keepOnly(new Set())
        this.#state.predictions.known()
        return { kind: 'after', delayMs: absentMs }
      }
      this.#keepOnly(new Set(found.map(({ metadata }) => keyOf(metadata))))
      const changed = found.filter(
        (each) => this.#read.get(keyOf(each.metadata)) !== (each.metadata.resourceVersion ?? ''),
      )
      const failures = await inParallel(changed, parallelReads, async (each) => {
        await this.#follow(each, signal)
      })
      if (failures.length === 0) this.#state.predictions.known()
      return { kind: 'after', delayMs: pollMs }
    } finally {
      if (this.#clock.monotonic() - this.#openedMs >= unknownMs) this.#state.predictions.known()
    }
  }

  /** @returns undefined if the kind is not served or may not be read. */
  async #list(signal: AbortSignal): Promise<readonly VerticalPodAutoscaler[] | undefined> {
    try {
      const found = await this.#client.list(verticalPodAutoscalerKind, { signal, fields: objectFields })
      this.#isForbidden = false
      return found
    } catch (error) {
      if (!isUnavailable(error)) throw error
      if (isKubeError(error, 'forbidden') && !this.#isForbidden)
        this.#logger.info(
          'VerticalPodAutoscalers are not taken into account: grant list on verticalpodautoscalers.autoscaling.k8s.io, or set --vpa-predictions=false',
          { error },
        )
      this.#isForbidden = isKubeError(error, 'forbidden')
      return undefined
    }
  }

  #keepOnly(keys: ReadonlySet<string>): void {
    const { predictions } = this.#state
    for (const { namespace, name } of predictions.all())
      if (!keys.has(`${namespace}/${name}`)) predictions.drop(`${namespace}/${name}`)
    for (const key of this.#read.keys()) if (!keys.has(key)) this.#read.delete(key)
  }

  /** @throws if the target cannot be read but may exist. */
  async #follow(autoscaler: VerticalPodAutoscaler, signal: AbortSignal): Promise<void> {
    const { predictions } = this.#state
    const key = keyOf(autoscaler.metadata)
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
      // Retried by the next run.
      predictions.drop(key)
      this.#read.delete(key)
      return
    }
    predictions.put({ namespace, name, createdAt, target, containers })
    this.#read.set(key, resourceVersion)
  }

  /** An invalid object predicts nothing, and does not affect others. */
  #predicted(autoscaler: VerticalPodAutoscaler): ReturnType<typeof predictedRequests> {
    const { name, namespace = '' } = autoscaler.metadata
    try {
      return predictedRequests(autoscaler)
    } catch (error) {
      this.#logger.info(
        'a VerticalPodAutoscaler is not taken into account: correct the amounts in its spec.resourcePolicy and status.recommendation',
        { VerticalPodAutoscaler: { name, namespace }, because: problemText(error) },
      )
      return []
    }
  }

  /** @returns undefined if there is no such object, no such kind, or no permission to read it (trap 50). */
  async #targetOf(
    { metadata, spec }: VerticalPodAutoscaler,
    signal: AbortSignal,
  ): Promise<PredictionTarget | undefined> {
    const { apiVersion = '', kind = '', name = '' } = spec?.targetRef ?? {}
    const { namespace = '' } = metadata
    const type = typeOf(apiVersion, kind)
    try {
      const { uid } = (await this.#client.get(type, { namespace, name }, { signal }))?.metadata ?? {}
      return uid === undefined ? undefined : { group: type.group, kind, name, uid }
    } catch (error) {
      if (isUnavailable(error)) return undefined
      throw error
    }
  }
}

/** Guesses the plural by the rule that nearly all kinds follow. */
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

const off = 'Off'
const usuallyControlled = ['cpu', 'memory']

/**
 * Requests by container; empty if the autoscaler does not change new pods.
 * @throws RangeError if an amount is not a quantity.
 */
export function predictedRequests({ spec, status }: VerticalPodAutoscaler): readonly ContainerRequests[] {
  if (spec?.targetRef === undefined || spec.updatePolicy?.updateMode === off) return []
  const policies = new Map(
    (spec.resourcePolicy?.containerPolicies ?? []).map((policy) => [policy.containerName ?? '', policy]),
  )
  return (status?.recommendation?.containerRecommendations ?? []).flatMap(({ containerName, target }) => {
    const policy = policies.get(containerName) ?? policies.get('*')
    if (policy?.mode === off) return []
    const requests = boosted(
      allowed(parseResources(target), policy),
      (policy?.startupBoost ?? spec.startupBoost)?.cpu,
    )
    return Object.keys(requests).length === 0 ? [] : [{ container: containerName, requests }]
  })
}

/** The recommendation for the controlled resources, within minAllowed and maxAllowed. */
function allowed(target: Resources, policy: ContainerResourcePolicy | undefined): Resources {
  const [least, most] = [parseResources(policy?.minAllowed), parseResources(policy?.maxAllowed)]
  return Object.fromEntries(
    (policy?.controlledResources ?? usuallyControlled).flatMap((name) => {
      const amount = ownValue(target, name)
      if (amount === undefined) return []
      const raised = Math.max(amount, ownValue(least, name) ?? amount)
      return [[name, Math.min(raised, ownValue(most, name) ?? raised)]]
    }),
  )
}

type CpuBoost = NonNullable<ContainerResourcePolicy['startupBoost']>['cpu']

/** A boost may exceed maxAllowed. */
function boosted(requests: Resources, boost: CpuBoost): Resources {
  const cpu = ownValue(requests, 'cpu')
  if (cpu === undefined || boost === undefined) return requests
  if (boost.type === 'Factor') return { ...requests, cpu: cpu * Math.max(1, Math.trunc(boost.factor ?? 1)) }
  if (boost.type === 'Quantity' && boost.quantity !== undefined)
    return { ...requests, cpu: cpu + parseResource('cpu', boost.quantity) }
  return requests
}
