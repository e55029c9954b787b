import { ownValue } from '@tenon/api'
import { uuid } from '@tenon/runtime'
import type { CloudContext } from '../zone/cloud-state.ts'
import type { FaultEffect } from '../faults.ts'
import type { Instance } from './instance.ts'
import { keepInstance } from './kept-instances.ts'
import { failed, type OperationOutcome } from './operation-outcome.ts'
import { notFound } from '../api/refusal.ts'
import { drawDelay } from '../settings.ts'

/** An asynchronous change of a call. */
export interface OperationPlan {
  /** Operation id of the call, which decides the delay. */
  readonly operation: string
  readonly effects: readonly FaultEffect[]
  readonly reference: { readonly id: string; readonly command: string; readonly path: string }
  /** The changed instance, if any. */
  readonly instance?: Instance
  /** Makes the change when it is due. */
  readonly complete: () => OperationOutcome
  /** Reverts what the call prepared, after a failure. */
  readonly abandon?: (outcome: OperationOutcome) => void
}

interface OperationView {
  readonly id: string
  state: 'pending' | 'success' | 'failure'
  reason?: string
  message?: string
  readonly reference: { readonly id: string; readonly link: string; readonly command: string }
}

/** Maximum remembered operations; the oldest finished ones are dropped. */
const kept = 20_000

/** The operations of the zone. */
export class Operations {
  readonly #context: CloudContext
  readonly #operations = new Map<string, OperationView>()

  constructor(context: CloudContext) {
    this.#context = context
  }

  /** Starts an operation and returns it as pending. */
  start(plan: OperationPlan): OperationView {
    const { clock, random, settings } = this.#context
    const { id, command, path } = plan.reference
    const view: OperationView = {
      id: uuid(random),
      state: 'pending',
      reference: { id, command, link: `/v2${path}` },
    }
    this.#operations.set(view.id, view)
    const keep = () => {
      if (plan.instance !== undefined) keepInstance(this.#context.kept, plan.instance)
    }
    keep()
    this.#forgetOldest()
    const answer = { ...view }
    if (plan.effects.some((effect) => effect.kind === 'hangOperation')) return answer
    const range = ownValue(settings.operationDelays, plan.operation) ?? settings.operationDelay
    clock.after(drawDelay(random, range), () => {
      finish(view, plan)
      keep()
    })
    return answer
  }

  get(id: string): OperationView {
    const view = this.#operations.get(id)
    if (view === undefined) throw notFound('operation', id)
    return { ...view }
  }

  #forgetOldest(): void {
    if (this.#operations.size <= kept) return
    for (const [id, view] of this.#operations) {
      if (view.state === 'pending') continue
      this.#operations.delete(id)
      return
    }
  }
}

function finish(view: OperationView, plan: OperationPlan): void {
  const fault = plan.effects.find((effect) => effect.kind === 'failOperation')
  const outcome: OperationOutcome =
    fault === undefined ? plan.complete() : failed(fault.reason, fault.message)
  view.state = outcome.state
  if (outcome.state === 'success') return
  view.reason = outcome.reason
  view.message = outcome.message
  plan.abandon?.(outcome)
}
