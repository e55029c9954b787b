/** What keeps the node of a claim closed until others can open with it. */
import type { NodeClaim } from '@tenon/api'
import { Listeners } from '@tenon/runtime'

/** Who has a say in when a node opens. */
interface Hold {
  /** Claims to ask for again after so long, or earlier. */
  readonly due: Listeners<{ readonly name: string; readonly afterMs: number }>
  /** Milliseconds after which to ask again; 0 once the claim's Node may open. */
  waitMs(claim: NodeClaim): number
}

export class JointHold implements Hold {
  readonly #holds: readonly Hold[]
  readonly due: Hold['due'] = new Listeners()

  /** @param holds asked in this order. */
  constructor(holds: readonly Hold[]) {
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
