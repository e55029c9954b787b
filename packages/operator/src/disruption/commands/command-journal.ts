/** Writes commands into the journal: those that begin, and those that fail. */
import { type NodeClaim, type PricePerHour, sumOfPrices } from '@tenon/api'
import type { Candidate } from '../candidates.ts'
import { type Command, poolsOf, type Replacement } from './command.ts'
import { type JournalInstance, type JournalNote, type JournalPrices, podsNoted } from '../../journal/entry.ts'
import type { Journal } from '../../journal/journal.ts'

interface Dependencies {
  readonly journal: Pick<Journal, 'decided' | 'note'>
}

/** The nodes of a command, and why they are disrupted. */
type About = Pick<Command, 'candidates' | 'reason'>

export class CommandJournal {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** @param successors claims in place of the nodes. */
  begun(id: string, command: Command, successors: readonly NodeClaim[]): void {
    this.#note(command, {
      kind: 'move',
      reason: command.reason,
      message: moveText(command),
      replacements: successors.map(({ metadata }) => metadata.name),
      pods: podsOf(command),
      pricePerHour: pricesOf(command),
      decision: id,
    })
  }

  /** A command would have begun. @returns its id. */
  observed(command: Command): string {
    return this.#deps.journal.decided({
      ...this.#objectsOf(command),
      kind: 'move',
      reason: command.reason,
      message: moveText(command),
      pods: podsOf(command),
      pricePerHour: pricesOf(command),
      instances: command.replacements.map(plannedInstance),
      observed: true,
    })
  }

  /** A command that would have begun is obsolete. */
  observedEnd(id: string, command: Command, because: string): void {
    const message = `${moveText(command)} does not stand any more: ${because}`
    this.#note(command, { kind: 'refusal', reason: 'PlanEnded', message, decision: id, observed: true })
  }

  /** A command was not begun. */
  refused(about: About, because: string): void {
    const names = about.candidates.map(({ name }) => name).join(', ')
    const message = `${about.reason}: [${names}] stay: ${because}`
    this.#note(about, { kind: 'refusal', reason: 'NotBegun', message })
  }

  /** A command that had begun has failed. */
  gaveUp(id: string, command: Command, because: string): void {
    const message = `${moveText(command)} was given up: ${because}`
    this.#note(command, { kind: 'refusal', reason: 'GivenUp', message, decision: id })
  }

  /** @param name of a NodeClaim. */
  deletionFailed(name: string, error: unknown): void {
    const why = error instanceof Error ? error.message : String(error)
    this.#deps.journal.note({
      kind: 'failure',
      reason: 'DeletionFailed',
      message: `NodeClaim ${name} of a disrupted node was not deleted: ${why}`,
      nodeClaims: [name],
    })
  }

  #note(about: About, note: JournalNote): void {
    this.#deps.journal.note({ ...this.#objectsOf(about), ...note })
  }

  #objectsOf(about: About): Pick<JournalNote, 'nodePool' | 'nodeClaims' | 'nodes'> {
    const [nodePool, ...others] = poolsOf(about)
    return {
      // Where there are several, the message names the nodes.
      ...(nodePool !== undefined && others.length === 0 && { nodePool }),
      nodeClaims: about.candidates.map(({ claim }) => claim.metadata.name),
      nodes: about.candidates.map(({ node }) => node.metadata.name),
    }
  }
}

/** `replace: [node-1, node-2] -> [1 replacement]`. */
function moveText({ candidates, replacements }: Pick<Command, 'candidates' | 'replacements'>): string {
  const nodes = `[${candidates.map(({ node }) => node.metadata.name).join(', ')}]`
  const { length } = replacements
  return length === 0
    ? `delete: ${nodes}`
    : `replace: ${nodes} -> [${length} replacement${length > 1 ? 's' : ''}]`
}

function podsOf({ candidates }: Pick<Command, 'candidates'>) {
  return podsNoted(candidates.flatMap(({ pods }) => pods))
}

/** The node that is expected, as what is cheapest may be sold out. */
export function plannedInstance({
  instanceTypes: [instanceType],
  pricePerHour,
}: Pick<Replacement, 'instanceTypes' | 'pricePerHour'>): JournalInstance {
  return {
    ...(instanceType !== undefined && { instanceType }),
    ...(pricePerHour !== undefined && { pricePerHour }),
  }
}

/** Price of all nodes before and after; a sum with an unknown part is unknown. */
function pricesOf({ candidates, replacements }: Command): JournalPrices {
  const before = wholeSum(candidates.map(({ pricePerHour }: Candidate) => pricePerHour))
  const after = wholeSum(replacements.map(({ pricePerHour }) => pricePerHour))
  return { ...(before !== undefined && { before }), ...(after !== undefined && { after }) }
}

function wholeSum(prices: readonly PricePerHour[]): PricePerHour {
  const { pricePerHour, unpriced } = sumOfPrices(prices)
  return unpriced === 0 ? pricePerHour : undefined
}
