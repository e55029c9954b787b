/** `disruption`: looks for nodes to remove or replace, one method after the other (disruption.md 2). */
import { isKubeError, type ReconcileResult } from '@tenon/kube'
import type { OperatorContext } from '../../context.ts'
import { Emptiness } from './emptiness.ts'
import { DisruptionMarks } from './marks.ts'
import { Replacements } from './replacements.ts'
import { StaticDrift } from './static-drift.ts'

const unsyncedMs = 1000

/** One way to find nodes that may go. */
interface DisruptionMethod {
  /** @returns whether anything was begun. */
  pass(signal: AbortSignal): Promise<boolean>
}

/** Begins what the first method wants that wants anything; the next pass goes on from there. */
export class Disruption {
  readonly #context: OperatorContext
  readonly #marks: DisruptionMarks
  readonly replacements: Replacements
  readonly #methods: readonly DisruptionMethod[]

  constructor(context: OperatorContext) {
    this.#context = context
    this.#marks = new DisruptionMarks(context)
    this.replacements = new Replacements(context, this.#marks)
    this.#methods = [new Emptiness(context, this.#marks), new StaticDrift(context, this.replacements)]
  }

  async run(signal: AbortSignal): Promise<ReconcileResult> {
    try {
      return await this.#pass(signal)
    } catch (error) {
      if (isKubeError(error, 'conflict')) return { kind: 'backoff' }
      throw error
    }
  }

  async #pass(signal: AbortSignal): Promise<ReconcileResult> {
    const { state, settings } = this.#context
    if (!state.synced()) return { kind: 'after', delayMs: unsyncedMs }
    await this.#cleanUp()
    for (const method of this.#methods) {
      if (await method.pass(signal)) return { kind: 'after', delayMs: 0 }
      // Methods may take their time.
      if (!state.synced()) return { kind: 'after', delayMs: unsyncedMs }
    }
    return { kind: 'after', delayMs: settings.disruptionPollMs }
  }

  /** Takes marks of commands that did not finish off again (disruption.md 2, step 3). */
  async #cleanUp(): Promise<void> {
    for (const machine of this.#context.state.stateNodes()) {
      const { node, claim, providerID, isMarkedForDeletion, isInitialized } = machine
      if (isMarkedForDeletion || this.replacements.has(providerID)) continue
      if (node === undefined || claim === undefined || node.metadata.deletionTimestamp !== undefined) continue
      await this.#marks.taint(node, false)
      if (isInitialized) await this.#marks.clearReason(claim)
    }
  }
}
