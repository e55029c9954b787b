/** The controller's decisions on nodes, and its next action. */
import type { NodeDecision } from '@tenon/operator'
import type { NextAction } from './view.ts'

export class Verdicts {
  #byClaim: ReadonlyMap<string, NodeDecision> = new Map()
  #all: readonly NodeDecision[] = []

  /** @returns names of claims whose decision has changed. */
  update(decisions: readonly NodeDecision[]): readonly string[] {
    const next = new Map(decisions.map((each) => [each.nodeClaim, each]))
    const changed = decisions.flatMap((each) =>
      isSame(each, this.#byClaim.get(each.nodeClaim)) ? [] : [each.nodeClaim],
    )
    for (const name of this.#byClaim.keys()) if (!next.has(name)) changed.push(name)
    this.#byClaim = next
    this.#all = decisions
    return changed
  }

  of(claim: string | undefined): NodeDecision | undefined {
    return claim === undefined ? undefined : this.#byClaim.get(claim)
  }

  /** What is being disrupted now, or else what can be disrupted first. */
  next(): NextAction | undefined {
    const byName = (a: NodeDecision, b: NodeDecision) => (a.nodeClaim < b.nodeClaim ? -1 : 1)
    const going = this.#all.filter(({ cause }) => cause === 'command').toSorted(byName)
    const [first] = going
    if (first !== undefined) {
      const more = going.length > 1 ? ` (and ${going.length - 1} more)` : ''
      return actionOf(first, `${nameOf(first)} goes: ${first.message}${more}`)
    }
    const possible = this.#all.filter(({ cause }) => cause === 'possible').toSorted(byName)[0]
    if (possible !== undefined) return actionOf(possible, `${nameOf(possible)} may go`)
    const waiting = this.#all
      .filter(({ until }) => until !== undefined)
      .toSorted((a, b) => (a.until ?? '').localeCompare(b.until ?? '') || byName(a, b))[0]
    if (waiting?.until === undefined) return undefined
    return { ...actionOf(waiting, `${nameOf(waiting)} is looked at again`), at: waiting.until }
  }
}

function actionOf(decision: NodeDecision, text: string): NextAction {
  return { text, node: nameOf(decision) }
}

function nameOf({ node, nodeClaim }: NodeDecision): string {
  return node ?? nodeClaim
}

function isSame(decision: NodeDecision, held: NodeDecision | undefined): boolean {
  return decision.cause === held?.cause && decision.message === held.message && decision.until === held.until
}
