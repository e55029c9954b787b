/** Which entries are about a node or a NodePool. */
import type { JournalEntry } from './entry.ts'

export interface JournalSelection {
  /** Name of a Node or of a NodeClaim, also of one that is gone. */
  readonly node?: string
  readonly nodePool?: string
  /** Only what was observed, or with false only what was carried out. */
  readonly observed?: boolean
}

/** Entries are passed to it in their order: a node is known by its claim, too, once it has been registered. */
export class EntrySelector {
  readonly #selection: JournalSelection
  readonly #claims = new Set<string>()

  /** @param known entries that tell which claims belong to the node. */
  constructor(selection: JournalSelection, known: Iterable<JournalEntry> = []) {
    this.#selection = selection
    for (const entry of known) this.#learn(entry)
  }

  accepts(entry: JournalEntry): boolean {
    this.#learn(entry)
    const { nodePool, observed } = this.#selection
    if (nodePool !== undefined && entry.nodePool !== nodePool) return false
    if (observed !== undefined && (entry.observed ?? false) !== observed) return false
    return this.#isOfNode(entry)
  }

  #learn({ nodes, nodeClaims }: JournalEntry): void {
    const { node } = this.#selection
    if (node !== undefined && nodes.length === 1 && nodeClaims.length === 1 && nodes[0] === node)
      this.#claims.add(nodeClaims[0] ?? '')
  }

  #isOfNode({ nodes, nodeClaims, replacements = [] }: JournalEntry): boolean {
    const { node } = this.#selection
    if (node === undefined || nodes.includes(node)) return true
    return [...nodeClaims, ...replacements].some((claim) => claim === node || this.#claims.has(claim))
  }
}
