/** Resolves a CapacityBuffer to its pod template and its number of replicas (buffers-and-dra.md 2.2, 2.3). */
import {
  type CapacityBuffer,
  ownValue,
  parseResources,
  type Pod,
  podRequests,
  type PodSpec,
  type PodTemplateSpec,
  type ResourceType,
  type ScalableWorkload,
  withAdmission,
} from '@tenon/api'
import { renderPodProblems, shapeProblems } from '@tenon/engine'
import type { KubeClient } from '@tenon/kube'
import type { BufferCaches } from '../../state/caches.ts'
import { PodTrimmer } from '../../state/kept-fields.ts'
import type { BufferSchedules, ScheduleState } from './schedule.ts'

export type Resolution =
  | {
      readonly kind: 'resolved'
      readonly template: PodTemplateSpec
      /** 0 while the schedule of the buffer is off. */
      readonly replicas: number
      /** Undefined without a schedule. */
      readonly schedule?: ScheduleState
      /** Undefined for a workload. */
      readonly podTemplate?: { readonly name: string; readonly generation: number }
    }
  | {
      readonly kind: 'failed'
      readonly reason: 'PodTemplateNotFound' | 'ScalableRefNotFound' | 'ResolutionFailed'
      readonly message: string
      /** The reconcile fails with it and is retried; undefined if only a change of an object helps. */
      readonly error?: Error
    }

const scalableKinds: Readonly<Record<string, ResourceType<ScalableWorkload>>> = {
  Deployment: scalable('Deployment', 'deployments'),
  StatefulSet: scalable('StatefulSet', 'statefulsets'),
  ReplicaSet: scalable('ReplicaSet', 'replicasets'),
}

const scalableKindsText = 'Deployment, StatefulSet or ReplicaSet'

export class BufferTemplates {
  readonly #client: Pick<KubeClient, 'get'>
  readonly #podTemplates: BufferCaches['podTemplates']
  readonly #schedules: Pick<BufferSchedules, 'of'> | undefined
  readonly #trimmer = new PodTrimmer()

  /** @param schedules undefined where decisions are those of Karpenter. */
  constructor(
    client: Pick<KubeClient, 'get'>,
    { podTemplates }: Pick<BufferCaches, 'podTemplates'>,
    schedules?: Pick<BufferSchedules, 'of'>,
  ) {
    this.#client = client
    this.#podTemplates = podTemplates
    this.#schedules = schedules
  }

  async resolve(buffer: CapacityBuffer, signal: AbortSignal): Promise<Resolution> {
    const { podTemplateRef, scalableRef } = buffer.spec
    try {
      if (podTemplateRef !== undefined) return this.#ofPodTemplate(buffer, podTemplateRef.name)
      if (scalableRef !== undefined) return await this.#ofWorkload(buffer, scalableRef, signal)
    } catch (cause) {
      signal.throwIfAborted()
      const error = cause instanceof Error ? cause : new Error(String(cause))
      return { kind: 'failed', reason: 'ResolutionFailed', message: error.message, error }
    }
    return {
      kind: 'failed',
      reason: 'ResolutionFailed',
      message: 'spec.podTemplateRef and spec.scalableRef are both missing; set one of them',
    }
  }

  #ofPodTemplate(buffer: CapacityBuffer, name: string): Resolution {
    const found = this.#podTemplates.get(placed(buffer, name))
    if (found !== undefined) {
      const { generation = 0 } = found.metadata
      return this.#resolved(buffer, found.template, undefined, { name, generation })
    }
    if (!this.#podTemplates.isSynced) throw new Error('the PodTemplates of the cluster could not be read yet')
    return {
      kind: 'failed',
      reason: 'PodTemplateNotFound',
      message: `podtemplates "${name}" not found`,
    }
  }

  async #ofWorkload(
    buffer: CapacityBuffer,
    { apiGroup = '', kind, name }: NonNullable<CapacityBuffer['spec']['scalableRef']>,
    signal: AbortSignal,
  ): Promise<Resolution> {
    if (apiGroup !== '' && apiGroup !== 'apps')
      throw new Error(
        `spec.scalableRef.apiGroup "${apiGroup}" is not supported; use "apps" with ${scalableKindsText}`,
      )
    const type = ownValue(scalableKinds, kind)
    if (type === undefined)
      throw new Error(`spec.scalableRef.kind "${kind}" is not supported; use ${scalableKindsText}`)
    const found = await this.#client.get(type, placed(buffer, name), { signal })
    if (found === undefined)
      return {
        kind: 'failed',
        reason: 'ScalableRefNotFound',
        message: `${type.plural}.apps "${name}" not found`,
      }
    return this.#resolved(buffer, found.spec.template, found.spec.replicas ?? 1)
  }

  #resolved(
    buffer: CapacityBuffer,
    found: PodTemplateSpec,
    scale: number | undefined,
    podTemplate?: { readonly name: string; readonly generation: number },
  ): Resolution {
    const kept = this.#trimmer.template(found)
    const model: Pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: '' }, spec: kept.spec }
    const problems = shapeProblems(model)
    if (problems !== undefined) {
      const message = `the pod template cannot be read: ${renderPodProblems(problems)}`
      return { kind: 'failed', reason: 'ResolutionFailed', message }
    }
    const template = { ...kept, spec: withAdmission(kept.spec) }
    const schedule = this.#schedules?.of(buffer, template.spec)
    return {
      kind: 'resolved',
      template,
      replicas: schedule?.isOn === false ? 0 : bufferReplicas(buffer.spec, template.spec, scale),
      ...(schedule && { schedule }),
      ...(podTemplate && { podTemplate }),
    }
  }
}

function scalable(kind: string, plural: string): ResourceType<ScalableWorkload> {
  return { group: 'apps', version: 'v1', kind, plural, namespaced: true }
}

function placed({ metadata }: CapacityBuffer, name: string) {
  const { namespace } = metadata
  return namespace === undefined ? { name } : { name, namespace }
}

export function sourceOf(
  { metadata }: CapacityBuffer,
  { replicas, template }: { readonly replicas: number; readonly template: PodTemplateSpec },
  builtAt: string,
) {
  const { name, namespace = '', uid = '' } = metadata
  return { namespace, name, uid, replicas, template, builtAt }
}

const mostReplicas = 2_147_483_647

/**
 * How many pods a buffer keeps room for (buffers-and-dra.md 2.3).
 * @param scale replicas of the workload that the buffer refers to; undefined for a PodTemplate.
 * @throws RangeError when a request or a limit is not a quantity.
 */
export function bufferReplicas(
  { limits, percentage, replicas }: CapacityBuffer['spec'],
  spec: PodSpec,
  scale: number | undefined,
): number {
  const part =
    scale === undefined || scale <= 0 || percentage === undefined ? undefined : ceiled(scale, percentage)
  const sizes = [replicas, part].filter((size) => size !== undefined)
  const most = limits === undefined ? undefined : withinLimits(limits, spec)
  if (sizes.length === 0) return Math.min(most ?? 0, mostReplicas)
  return Math.min(...(most === undefined ? [] : [most]), Math.max(...sizes), mostReplicas)
}

const ceiled = (scale: number, percentage: number) => Math.ceil((scale * percentage) / 100)

/** Undefined if the pods request nothing that is limited. */
function withinLimits(
  limits: NonNullable<CapacityBuffer['spec']['limits']>,
  spec: PodSpec,
): number | undefined {
  const most = parseResources(limits)
  const { pods: _, ...requests } = podRequests(spec)
  const counts = Object.entries(requests).flatMap(([name, amount]) => {
    const limit = ownValue(most, name)
    return limit === undefined || amount <= 0 ? [] : [Math.max(0, Math.floor(limit / amount))]
  })
  return counts.length === 0 ? undefined : Math.min(...counts)
}
