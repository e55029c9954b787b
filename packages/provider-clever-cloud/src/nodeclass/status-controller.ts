/** Updates the status of CleverNodeClasses and their finalizer (clever-cloud.md 3, 10). */
import {
  type Condition,
  ConditionSet,
  counted,
  karpenterKinds,
  type NewCondition,
  type NodeClaim,
} from '@tenon/api'
import {
  type Cache,
  done,
  type EventRecorder,
  isKubeError,
  type KubeClient,
  type ReconcileResult,
} from '@tenon/kube'
import { unlessOvertaken } from '@tenon/provider'
import type { Clock } from '@tenon/runtime'
import { ownNames } from '../names.ts'
import { nodeGroupKind } from '../nodegroup/types.ts'
import { type CleverNodeClass, cleverNodeClassKind, conditionTypes } from './types.ts'
import { findingsOf } from './validation.ts'

const inUseRetryMs = 30_000
const notServedRetryMs = 60_000
/** A name that no NodeGroup has: reading it only shows whether the kind is served. */
const noGroup = 'tenon-does-the-cluster-serve-nodegroups'

export interface NodeClassStatusDependencies {
  readonly kube: Pick<KubeClient, 'get' | 'list' | 'patch'>
  readonly nodeClasses: Pick<Cache<CleverNodeClass>, 'get'>
  readonly events: EventRecorder
  readonly clock: Clock
}

/** Reconciles one CleverNodeClass by name. */
export class NodeClassStatus {
  readonly #deps: NodeClassStatusDependencies

  constructor(deps: NodeClassStatusDependencies) {
    this.#deps = deps
  }

  async reconcile(name: string, signal: AbortSignal): Promise<ReconcileResult> {
    const nodeClass = this.#deps.nodeClasses.get({ name })
    if (nodeClass === undefined) return done
    return await unlessOvertaken(async () => {
      if (nodeClass.metadata.deletionTimestamp !== undefined) return await this.#letGo(nodeClass, signal)
      return await this.#refresh(await this.#withFinalizer(nodeClass, signal), signal)
    })
  }

  async #letGo(nodeClass: CleverNodeClass, signal: AbortSignal): Promise<ReconcileResult> {
    const { kube, events } = this.#deps
    const { name, finalizers = [] } = nodeClass.metadata
    if (!finalizers.includes(ownNames.termination)) return done
    const claims = await kube.list(karpenterKinds.nodeClaim, { signal })
    const users = claims.filter((claim) => mayUse(claim, name)).length
    if (users > 0) {
      events.record({
        object: nodeClass,
        type: 'Warning',
        reason: 'DeletionBlocked',
        message: `${counted(users, 'NodeClaim')} of this class left; delete them, or change the nodeClassRef of their NodePool`,
        dedupe: [name, String(users)],
      })
      return { kind: 'after', delayMs: inUseRetryMs }
    }
    const rest = finalizers.filter((finalizer) => finalizer !== ownNames.termination)
    await this.#patch(nodeClass, { metadata: { finalizers: rest } }, signal)
    return done
  }

  async #withFinalizer(nodeClass: CleverNodeClass, signal: AbortSignal): Promise<CleverNodeClass> {
    const { finalizers = [] } = nodeClass.metadata
    if (finalizers.includes(ownNames.termination)) return nodeClass
    return await this.#patch(
      nodeClass,
      { metadata: { finalizers: [...finalizers, ownNames.termination] } },
      signal,
    )
  }

  async #refresh(nodeClass: CleverNodeClass, signal: AbortSignal): Promise<ReconcileResult> {
    const { events, clock } = this.#deps
    const served = await this.#served(signal)
    const updates = [validated(nodeClass), served]
    for (const { status, reason = '', message = '' } of updates)
      if (status !== 'True')
        events.record({ object: nodeClass, type: 'Warning', reason, message, dedupe: [message] })
    const before = nodeClass.status?.conditions ?? []
    const { conditions } = updates.reduce(
      (set, update) => set.set(update, clock.now()),
      ConditionSet.of(nodeClass, { dependents: Object.values(conditionTypes) }),
    )
    if (!isSame(before, conditions))
      await this.#patch(nodeClass, { status: { conditions } }, signal, 'status')
    return served.status === 'True' ? done : { kind: 'after', delayMs: notServedRetryMs }
  }

  async #served(signal: AbortSignal): Promise<NewCondition> {
    try {
      await this.#deps.kube.get(nodeGroupKind, { name: noGroup }, { signal })
      return { type: conditionTypes.served, status: 'True' }
    } catch (error) {
      signal.throwIfAborted()
      if (!isKubeError(error)) throw error
      return {
        type: conditionTypes.served,
        status: 'False',
        reason: 'NodeGroupAPIUnavailable',
        message: `NodeGroups cannot be read (is this a cluster of Clever Kubernetes Engine?): ${error.message}`,
      }
    }
  }

  async #patch(
    { metadata }: CleverNodeClass,
    patch: object,
    signal: AbortSignal,
    subresource?: 'status',
  ): Promise<CleverNodeClass> {
    const { name, resourceVersion } = metadata
    return await this.#deps.kube.patch(cleverNodeClassKind, { name }, patch, {
      signal,
      ...(subresource && { subresource }),
      ...(resourceVersion !== undefined && { resourceVersion }),
    })
  }
}

function validated(nodeClass: CleverNodeClass): NewCondition {
  const errors = findingsOf(nodeClass).filter(({ severity }) => severity === 'error')
  if (errors.length === 0) return { type: conditionTypes.validated, status: 'True' }
  const texts = errors
    .slice(0, 5)
    .map(({ field, message, fix }) =>
      [`${field}: ${message}`, fix].filter((part) => part !== undefined).join('; '),
    )
  return {
    type: conditionTypes.validated,
    status: 'False',
    reason: 'ValidationFailed',
    message: texts.join('. '),
  }
}

/** A claim that does not name its node class may use this one. */
function mayUse({ spec }: NodeClaim, className: string): boolean {
  const { nodeClassRef: ref } = (spec as Partial<NodeClaim['spec']> | undefined) ?? {}
  if (typeof ref?.name !== 'string' || ref.name === '') return true
  return (
    ref.name === className && ref.group === cleverNodeClassKind.group && ref.kind === cleverNodeClassKind.kind
  )
}

function isSame(a: readonly Condition[], b: readonly Condition[]): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}
