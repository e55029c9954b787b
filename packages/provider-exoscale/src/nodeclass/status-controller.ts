/** Updates the status of a node class and guards its deletion. */
import { type Condition, isQuantity, type KubeObject } from '@tenon/api'
import { type Cache, done, type EventRecorder, type KubeClient, type ReconcileResult } from '@tenon/kube'
import { unlessOvertaken } from '@tenon/provider'
import type { Clock, Logger } from '@tenon/runtime'
import type { ExoscaleClient } from '../api/client.ts'
import { isApiError } from '../api/errors.ts'
import { nodeClassFinalizer } from '../identifiers.ts'
import { type ConditionUpdate, holds, readyCondition, withConditions } from './conditions.ts'
import type { NodeClassDeletion } from './deletion.ts'
import { formerFieldsOf } from './former-fields.ts'
import { ResourceResolver } from './resources.ts'
import { kubeletSettings } from './settings.ts'
import type { TemplateResolver } from './template.ts'
import { type ExoscaleNodeClass, exoscaleNodeClassKind } from './types.ts'

const refreshMs = 5 * 60_000
const invalidRetryMs = 30_000

type StatusList = 'securityGroups' | 'antiAffinityGroups' | 'privateNetworks'

interface Step {
  readonly condition: string
  readonly failureReason: string
  readonly run: (
    object: ExoscaleNodeClass,
    signal: AbortSignal,
  ) => Promise<Partial<Record<StatusList, readonly string[]>>>
}

export interface StatusControllerDependencies {
  readonly api: ExoscaleClient
  readonly kube: KubeClient
  readonly nodeClasses: Cache<ExoscaleNodeClass>
  readonly templates: TemplateResolver
  readonly deletion: NodeClassDeletion
  readonly events: EventRecorder
  readonly clock: Clock
  readonly logger: Logger
}

/** Reconciles one ExoscaleNodeClass by name. */
export class NodeClassStatusController {
  readonly #deps: StatusControllerDependencies
  readonly #steps: readonly Step[]

  constructor(deps: StatusControllerDependencies) {
    this.#deps = deps
    this.#steps = stepsOf(deps)
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
    const lists: Partial<Record<StatusList, readonly string[]>> = {}
    const updates: ConditionUpdate[] = []
    for (const step of this.#steps) {
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

  /** Writes real changes only; tells of a class that has become ready. */
  async #write(
    object: ExoscaleNodeClass,
    updates: readonly ConditionUpdate[],
    lists: Partial<Record<StatusList, readonly string[]>>,
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

function stepsOf({ api, templates, clock }: StatusControllerDependencies): readonly Step[] {
  const securityGroups = new ResourceResolver(
    {
      kind: 'security group',
      list: (signal) => api.listSecurityGroups(signal),
      get: (id, signal) => api.getSecurityGroup(id, signal),
    },
    clock,
  )
  const antiAffinityGroups = new ResourceResolver(
    {
      kind: 'anti-affinity group',
      list: (signal) => api.listAntiAffinityGroups(signal),
      get: (id, signal) => api.getAntiAffinityGroup(id, signal),
    },
    clock,
  )
  const privateNetworks = new ResourceResolver(
    {
      kind: 'private network',
      list: (signal) => api.listPrivateNetworks(signal),
      get: (id, signal) => api.getPrivateNetwork(id, signal),
    },
    clock,
  )
  return [
    {
      condition: 'TemplateResolved',
      failureReason: 'TemplateResolutionFailed',
      run: async ({ spec }, signal) => {
        await checkTemplate(api, await templates.resolve(spec, signal), signal)
        return {}
      },
    },
    {
      condition: 'SecurityGroupsResolved',
      failureReason: 'SecurityGroupResolutionFailed',
      run: async ({ spec }, signal) => ({
        securityGroups: await securityGroups.resolve(
          spec.securityGroups ?? [],
          spec.securityGroupSelectorTerms ?? [],
          signal,
        ),
      }),
    },
    {
      condition: 'AntiAffinityGroupsResolved',
      failureReason: 'AntiAffinityGroupResolutionFailed',
      run: async ({ spec }, signal) => ({
        antiAffinityGroups: await antiAffinityGroups.resolve(
          spec.antiAffinityGroups ?? [],
          spec.antiAffinityGroupSelectorTerms ?? [],
          signal,
        ),
      }),
    },
    {
      condition: 'PrivateNetworksResolved',
      failureReason: 'PrivateNetworkResolutionFailed',
      run: async ({ spec }, signal) => ({
        privateNetworks: await privateNetworks.resolve(
          spec.privateNetworks ?? [],
          spec.privateNetworkSelectorTerms ?? [],
          signal,
        ),
      }),
    },
  ]
}

async function checkTemplate(api: ExoscaleClient, id: string, signal: AbortSignal): Promise<void> {
  try {
    await api.getTemplate(id, signal)
  } catch (error) {
    if (!isApiError(error, 'not-found')) throw error
    throw new Error(`template ${id} does not exist in this zone or is not accessible`, { cause: error })
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
