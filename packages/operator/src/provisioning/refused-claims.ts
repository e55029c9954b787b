/** Finds the pods whose claims the API server refuses, so that the others get their nodes. */
import type { Pod } from '@tenon/api'
import type { NewClaim } from '@tenon/engine'
import type { Logger } from '@tenon/runtime'
import type { ClaimRefusals, Refusal } from '../state/pods/claim-refusals.ts'
import type { Batcher } from './batcher.ts'
import type { GatheredInput } from './input/scheduling-input.ts'
import { podList, untilText } from '../text.ts'

/** The input with only these pods to decide about, and these refused. */
export function withRefused(
  input: GatheredInput,
  pods: readonly Pod[],
  refused: ReadonlyMap<Pod, Refusal>,
): GatheredInput {
  const more = Array.from(refused, ([pod, { message, untilMs }]) => ({
    pod,
    reason: untilText(message, untilMs),
    untilMs,
  }))
  return { ...input, pods, refused: [...input.refused, ...more] }
}

interface Dependencies {
  readonly refusals: ClaimRefusals
  readonly batcher: Pick<Batcher, 'trigger'>
  readonly logger: Logger
}

export class RefusedClaims {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** The input without pods that have to wait because their claims were refused. */
  inTurn(input: GatheredInput): GatheredInput {
    const { batcher, refusals } = this.#deps
    const { pods, refused, hasMore } = refusals.turn(input.pods)
    if (hasMore) batcher.trigger('refused claims')
    return pods.length === input.pods.length ? input : withRefused(input, pods, refused)
  }

  /** Notes that the API server refuses the claim for good. */
  note({ nodePool: name, pods: own, roomPods = [] }: NewClaim, message: string): void {
    const pods = [...own, ...roomPods]
    const atFault = this.#deps.refusals.note(pods, `the API server rejects its NodeClaim: ${message}`)
    this.#deps.logger.warn('the API server rejects a nodeclaim', {
      NodePool: { name },
      Pods: podList(pods),
      ...(atFault.length === 0 && { next: 'its pods are scheduled in two halves' }),
      error: message,
    })
    this.#deps.batcher.trigger('refused claims')
  }

  /** Notes that these pods have a claim. */
  forget(pods: readonly Pod[]): void {
    this.#deps.refusals.forget(pods)
  }
}
