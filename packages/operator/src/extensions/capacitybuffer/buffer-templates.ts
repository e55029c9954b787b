/** What the room of a CapacityBuffer is for: the template of its pods, and how many it asks for (buffers-and-dra.md 2.2). */
import {
  type CapacityBuffer,
  ownValue,
  type Pod,
  type PodTemplateSpec,
  type ResourceType,
  type ScalableWorkload,
  withAdmission,
} from '@tenon/api'
import { renderPodProblems, shapeProblems } from '@tenon/engine'
import type { KubeClient } from '@tenon/kube'
import type { BufferCaches } from '../../state/caches.ts'
import { PodTrimmer } from '../../state/kept-fields.ts'
import { bufferReplicas } from './replicas.ts'

interface Dependencies {
  readonly client: Pick<KubeClient, 'get'>
  readonly buffers: BufferCaches
}

/** What a buffer comes to. */
export type Resolution =
  | {
      readonly kind: 'resolved'
      readonly template: PodTemplateSpec
      readonly replicas: number
      /** Absent for a workload. */
      readonly podTemplate?: { readonly name: string; readonly generation: number }
    }
  | {
      readonly kind: 'failed'
      readonly reason: 'PodTemplateNotFound' | 'ScalableRefNotFound' | 'ResolutionFailed'
      readonly message: string
      /** What the reconcile fails with; absent where only a change of some object helps, which is looked for. */
      readonly error?: Error
    }

const scalableKinds: Readonly<Record<string, ResourceType<ScalableWorkload>>> = {
  Deployment: scalable('Deployment', 'deployments'),
  StatefulSet: scalable('StatefulSet', 'statefulsets'),
  ReplicaSet: scalable('ReplicaSet', 'replicasets'),
}

const scalableKindsText = 'Deployment, StatefulSet or ReplicaSet'

/** Finds what buffers refer to. */
export class BufferTemplates {
  readonly #deps: Dependencies
  readonly #trimmer = new PodTrimmer()

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** Failures are values: what a reconcile is to fail with is in them. */
  async of(buffer: CapacityBuffer, signal: AbortSignal): Promise<Resolution> {
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
    const { podTemplates } = this.#deps.buffers
    const found = podTemplates.get(placed(buffer, name))
    if (found !== undefined) {
      const { generation = 0 } = found.metadata
      return this.#resolved(buffer, found.template, undefined, { name, generation })
    }
    if (!podTemplates.isSynced) throw new Error('the PodTemplates of the cluster could not be read yet')
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
    const found = await this.#deps.client.get(type, placed(buffer, name), { signal })
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
    return {
      kind: 'resolved',
      template,
      replicas: bufferReplicas(buffer.spec, template.spec, scale),
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

/** What pods of the buffer are made from. */
export function sourceOf(
  { metadata }: CapacityBuffer,
  { replicas, template }: { readonly replicas: number; readonly template: PodTemplateSpec },
  builtAt: string,
) {
  const { name, namespace = '', uid = '' } = metadata
  return { namespace, name, uid, replicas, template, builtAt }
}
