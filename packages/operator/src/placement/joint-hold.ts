/** What keeps the node of a claim closed until others can open with it. */
import type { NodeClaim } from '@tenon/api'
import { Listeners } from '@tenon/runtime'
import type { OpeningHold } from '../nodeclaim/lifecycle/registration.ts'

export class JointHold implements OpeningHold {
  readonly #holds: readonly OpeningHold[]
  readonly due: OpeningHold['due'] = new Listeners()

  /** @param holds asked in this order. */
  constructor(holds: readonly OpeningHold[]) {
    this.#holds = holds
    for (const hold of holds)
      hold.due.add((claim) => {
        this.due.notify(claim)
      })
  }

  waitMs(claim: NodeClaim): number {
    for (const hold of this.#holds) {
      const waitMs = hold.waitMs(claim)
      if (waitMs > 0) return waitMs
    }
    return 0
  }
}
