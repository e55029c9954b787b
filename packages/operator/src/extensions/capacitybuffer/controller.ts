/** `capacitybuffer`: resolves each CapacityBuffer to placeholder pods for the next decisions (buffers-and-dra.md 2.2). */
import {
  autoscalingKinds,
  type CapacityBuffer,
  type Condition,
  conditionOf,
  type NewCondition,
  ownValue,
  withCondition,
} from '@tenon/api'
import {
  type Change,
  done,
  isKubeError,
  type KubeClient,
  type ObjectKey,
  type ReconcileResult,
} from '@tenon/kube'
import { type Clock, rfc3339 } from '@tenon/runtime'
import type { BufferCaches } from '../../state/caches.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import { keyOf } from '../../state/pods/pods.ts'
import { isSameValue } from '../../state/same-value.ts'
import type { ControllerSpec, Enqueue } from '../../controller.ts'
import { type BufferTemplates, type Resolution, sourceOf } from './buffer-templates.ts'
import { readyType } from './report.ts'
import { scheduleAnnotation } from './schedule.ts'

interface Dependencies {
  readonly client: Pick<KubeClient, 'patch'>
  readonly buffers: BufferCaches
  readonly state: Pick<ClusterState, 'buffers'>
  readonly templates: BufferTemplates
  readonly clock: Clock
}

/** Workloads are not watched. */
const pollMs = 30_000
/** A workload is often created just after its buffer, so a missing one is polled faster at first. */
const missing = { pollMs: 5000, forMs: 120_000 } as const
/** After a write conflict. */
const overtakenMs = 1000

type Status = NonNullable<CapacityBuffer['status']>

export class CapacityBuffers implements ControllerSpec {
  readonly name = 'capacitybuffer'
  readonly concurrency = { least: 10, most: 10 }
  readonly backoff = { baseMs: 100, capMs: 60_000 }
  readonly perSecond = 10
  readonly #deps: Dependencies
  /** When the workload of a buffer was first not found, by the buffer's key. */
  readonly #missing = new Map<string, { readonly reference: string; readonly sinceMs: number }>()

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  watch(enqueue: Enqueue): void {
    const { capacityBuffers, podTemplates } = this.#deps.buffers
    capacityBuffers.onChange((change) => {
      if (isRelevant(change)) enqueue(keyOf(change.object.metadata))
    })
    podTemplates.onChange(({ object: { metadata } }) => {
      for (const buffer of capacityBuffers.list())
        if (
          buffer.metadata.namespace === metadata.namespace &&
          buffer.spec.podTemplateRef?.name === metadata.name
        )
          enqueue(keyOf(buffer.metadata))
    })
  }

  async reconcile(key: string, signal: AbortSignal): Promise<ReconcileResult> {
    const { buffers, templates } = this.#deps
    const buffer = buffers.capacityBuffers.get(objectKeyOf(key))
    if (buffer === undefined) {
      this.#missing.delete(key)
      this.#drop(key)
      return done
    }
    const resolution = await templates.resolve(buffer, signal)
    if (!(await this.#writeStatus(buffer, resolution, signal))) return { kind: 'after', delayMs: overtakenMs }
    // If it was deleted meanwhile, no other reconcile follows.
    if (buffers.capacityBuffers.get(objectKeyOf(key))?.metadata.uid !== buffer.metadata.uid) {
      this.#drop(key)
      return done
    }
    const isMissing = resolution.kind === 'failed' && resolution.reason === 'ScalableRefNotFound'
    if (!isMissing) this.#missing.delete(key)
    if (resolution.kind === 'failed') {
      // After an API error the room is kept.
      if (!isKubeError(resolution.error)) this.#drop(key)
      if (resolution.error !== undefined) throw resolution.error
      return { kind: 'after', delayMs: isMissing ? this.#untilNextLook(buffer) : pollMs }
    }
    const delayMs = this.#keep(buffer, resolution)
    const { changeMs = Infinity } = resolution.schedule ?? {}
    return { kind: 'after', delayMs: Math.min(delayMs, Math.max(0, changeMs - this.#deps.clock.now())) }
  }

  /** How long to wait before a missing workload is requested again. */
  #untilNextLook(buffer: CapacityBuffer): number {
    const { clock } = this.#deps
    const key = keyOf(buffer.metadata)
    const reference = JSON.stringify([buffer.metadata.uid, buffer.spec.scalableRef])
    const known = this.#missing.get(key)
    const sinceMs = known?.reference === reference ? known.sinceMs : clock.monotonic()
    this.#missing.set(key, { reference, sinceMs })
    return clock.monotonic() - sinceMs < missing.forMs ? missing.pollMs : pollMs
  }

  /** Removes the placeholder pods, and requests the pass that gives their room up. */
  #drop(key: string): void {
    const { state } = this.#deps
    if (state.buffers.drop(key)) state.buffers.ask(key)
  }

  /** @returns milliseconds until the next reconcile. */
  #keep(buffer: CapacityBuffer, resolution: Extract<Resolution, { kind: 'resolved' }>): number {
    const { clock, state } = this.#deps
    const key = keyOf(buffer.metadata)
    const before = state.buffers.of(key)
    if (resolution.replicas > 0) state.buffers.put(sourceOf(buffer, resolution, rfc3339(clock.now())))
    else state.buffers.drop(key)
    if (resolution.schedule?.isOn === false && before.length === 0) return pollMs
    // Without changes, one pass in that time serves all buffers.
    const isSame = before.length > 0 && before === state.buffers.of(key)
    const sinceMs = clock.monotonic() - state.buffers.lastPassMs
    if (isSame && sinceMs < pollMs - overtakenMs) return pollMs - sinceMs
    state.buffers.ask(buffer.metadata.uid ?? key)
    return pollMs
  }

  /** @returns false when the buffer has changed or gone meanwhile. */
  async #writeStatus(buffer: CapacityBuffer, resolution: Resolution, signal: AbortSignal): Promise<boolean> {
    const status = statusOf(buffer, resolution, this.#deps.clock.now())
    if (isSameValue(status, buffer.status ?? {})) return true
    const { podTemplateGeneration = null, podTemplateRef = null } = status
    try {
      await this.#deps.client.patch(
        autoscalingKinds.capacityBuffer,
        objectKeyOf(keyOf(buffer.metadata)),
        { status: { ...status, podTemplateRef, podTemplateGeneration } },
        {
          subresource: 'status',
          resourceVersion: buffer.metadata.resourceVersion ?? '',
          isAnswerUnread: true,
          signal,
        },
      )
      return true
    } catch (error) {
      if (isKubeError(error, 'conflict', 'notFound')) return false
      throw error
    }
  }
}

/** The status changes with every pass; only a foreign change of the Ready condition matters. */
function isRelevant(change: Change<CapacityBuffer>): boolean {
  if (change.kind !== 'updated') return true
  const { object, old } = change
  return (
    object.metadata.uid !== old.metadata.uid ||
    object.metadata.generation !== old.metadata.generation ||
    ownValue(object.metadata.annotations, scheduleAnnotation) !==
      ownValue(old.metadata.annotations, scheduleAnnotation) ||
    !isSameValue(conditionOf(object, readyType), conditionOf(old, readyType))
  )
}

/** A failure changes only the conditions. */
function statusOf(buffer: CapacityBuffer, resolution: Resolution, nowMs: number): Status {
  const { podTemplateGeneration: _, podTemplateRef: __, ...kept } = buffer.status ?? {}
  const { provisioningStrategy } = buffer.spec
  const conditions: readonly Condition[] = withCondition(buffer, readyCondition(resolution), nowMs)
  const common = { conditions, ...(provisioningStrategy !== undefined && { provisioningStrategy }) }
  if (resolution.kind === 'failed') return { ...buffer.status, ...common }
  const { podTemplate, replicas } = resolution
  return {
    ...kept,
    ...common,
    replicas,
    ...(podTemplate && {
      podTemplateRef: { name: podTemplate.name },
      podTemplateGeneration: podTemplate.generation,
    }),
  }
}

function readyCondition(resolution: Resolution): NewCondition {
  const type = readyType
  if (resolution.kind === 'resolved') {
    const { replicas, schedule } = resolution
    const { changeMs, isOn = true } = schedule ?? {}
    const message = isOn
      ? `Room for ${replicas} pods is to be kept`
      : `Outside the windows of annotation ${scheduleAnnotation}: no room is kept until ${changeMs === undefined ? 'it changes' : rfc3339(changeMs)}`
    return { type, status: 'True', reason: 'Resolved', message }
  }
  return { type, status: 'False', reason: resolution.reason, message: resolution.message }
}

function objectKeyOf(key: string): ObjectKey {
  const [namespace = '', name = ''] = key.split('/')
  return { namespace, name }
}
