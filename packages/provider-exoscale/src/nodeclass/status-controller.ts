/** Updates the status of a node class and its finalizer. */
import { type Condition, isQuantity, type KubeObject } from '@tenon/api'
import { type Cache, done, type EventRecorder, type KubeClient, type ReconcileResult } from '@tenon/kube'
import { unlessOvertaken } from '@tenon/provider'
import type { Clock } from '@tenon/runtime'
import { nodeClassFinalizer } from '../identifiers.ts'
import { type ConditionUpdate, holds, readyCondition, withConditions } from './conditions.ts'
import type { NodeClassDeletion } from './deletion.ts'
import { formerFieldsOf } from './former-fields.ts'
import type { ResolutionStep, ResolvedLists } from './resolution-steps.ts'
import { kubeletSettings } from './settings.ts'
import { type ExoscaleNodeClass, exoscaleNodeClassKind } from './types.ts'

const refreshMs = 5 * 60_000
const invalidRetryMs = 30_000

export interface StatusControllerDependencies {
  readonly kube: Pick<KubeClient, 'patch'>
  readonly nodeClasses: Pick<Cache<ExoscaleNodeClass>, 'get'>
  /** Run in this order. */
  readonly steps: readonly ResolutionStep[]
  readonly deletion: NodeClassDeletion
  readonly events: EventRecorder
  readonly clock: Clock
}

/** Reconciles one ExoscaleNodeClass by name. */
export class NodeClassStatusController {
  readonly #deps: StatusControllerDependencies

  constructor(deps: StatusControllerDependencies) {
    this.#deps = deps
  }

  async reconcile(name: string, signal: AbortSignal): Promise<ReconcileResult> {
    const cached = this.#deps.nodeClasses.get({ name })
    if (cached === undefined) return done
    return await unlessOvertaken(async () => {
      if (cached.metadata.deletionTimestamp !== undefined)
        return await this.#deps.deletion.reconcile(cached, signal)
      return await this.#refresh(await this.#withFinalizer(cached, signal), signal)
    })
  }

  async #withFinalizer(object: ExoscaleNodeClass, signal: AbortSignal): Promise<ExoscaleNodeClass> {
    const finalizers = object.metadata.finalizers ?? []
    if (finalizers.includes(nodeClassFinalizer)) return object
    return this.#deps.kube.patch(
      exoscaleNodeClassKind,
      { name: object.metadata.name },
      { metadata: { finalizers: [...finalizers, nodeClassFinalizer] } },
      { signal, ...lockOf(object) },
    )
  }

  async #refresh(object: ExoscaleNodeClass, signal: AbortSignal): Promise<ReconcileResult> {
    this.#warnOfFormerFields(object)
    const invalid = invalidReservation(object)
    if (invalid !== undefined) {
      const message = `Validation failed: ${invalid}`
      this.#warn(object, 'ValidationFailed', message)
      await this.#write(
        object,
        [{ type: readyCondition, status: 'False', reason: 'ValidationFailed', message }],
        {},
        signal,
      )
      return { kind: 'after', delayMs: invalidRetryMs }
    }
    const lists: ResolvedLists = {}
    const updates: ConditionUpdate[] = []
    for (const step of this.#deps.steps) {
      try {
        Object.assign(lists, await step.run(object, signal))
        updates.push(holds(step.condition))
      } catch (error) {
        signal.throwIfAborted()
        const message = error instanceof Error ? error.message : String(error)
        updates.push({ type: step.condition, status: 'False', reason: step.failureReason, message })
        this.#warn(object, step.failureReason, message)
      }
    }
    const failed = updates.filter((update) => update.status !== 'True').map((update) => update.type)
    updates.push(
      failed.length === 0
        ? holds(readyCondition)
        : {
            type: readyCondition,
            status: 'False',
            reason: 'ReconcilingFailed',
            message: `not resolved: ${failed.join(', ')}; see these conditions`,
          },
    )
    await this.#write(object, updates, lists, signal)
    return { kind: 'after', delayMs: refreshMs }
  }

  /** Writes only if something changed; records an event when the node class becomes ready. */
  async #write(
    object: ExoscaleNodeClass,
    updates: readonly ConditionUpdate[],
    lists: ResolvedLists,
    signal: AbortSignal,
  ): Promise<void> {
    const old = object.status?.conditions ?? []
    const conditions = withConditions(old, updates, object.metadata.generation ?? 0, this.#deps.clock.now())
    const status = { ...object.status, ...lists, conditions }
    if (JSON.stringify(status) === JSON.stringify(object.status)) return
    await this.#deps.kube.patch(
      exoscaleNodeClassKind,
      { name: object.metadata.name },
      { status: { ...lists, conditions } },
      { subresource: 'status', signal, ...lockOf(object) },
    )
    if (isReady(conditions) && !isReady(old)) {
      const event = { object: object as KubeObject, type: 'Normal' } as const
      this.#deps.events.record({ ...event, reason: 'ValidationSucceeded', message: 'The settings are valid' })
      this.#deps.events.record({
        ...event,
        reason: 'Ready',
        message: 'Instances can be launched with this node class',
      })
    }
  }

  #warn(object: ExoscaleNodeClass, reason: string, message: string): void {
    this.#deps.events.record({ object, type: 'Warning', reason, message, dedupe: [message] })
  }

  #warnOfFormerFields(object: ExoscaleNodeClass): void {
    for (const { field, message } of formerFieldsOf(object.spec))
      this.#warn(object, 'DeprecatedField', `${field} is ${message}`)
  }
}

function invalidReservation({ spec }: ExoscaleNodeClass): string | undefined {
  const settings = kubeletSettings(spec)
  for (const block of ['kubeReserved', 'systemReserved'] as const) {
    for (const [resource, quantity] of Object.entries(settings[block])) {
      if (!isQuantity(quantity)) return `kubelet.${block}.${resource} "${quantity}" is not a quantity`
    }
  }
  return undefined
}

function isReady(conditions: readonly Condition[]): boolean {
  return conditions.some((condition) => condition.type === readyCondition && condition.status === 'True')
}

function lockOf(object: ExoscaleNodeClass): { readonly resourceVersion?: string } {
  const { resourceVersion } = object.metadata
  return resourceVersion === undefined ? {} : { resourceVersion }
}
