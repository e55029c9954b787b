/** An entry of the journal: what the leader did, why, and what it costs. */

/**
 * `decision`: a scheduling pass. `launch`: a NodeClaim was created. `launched`, `registered`, `initialized`: how
 * far it has come. `move`: a command has begun that removes or replaces nodes. `refusal`: a command was not begun,
 * or given up. `removal`: a NodeClaim was deleted. `removed`: it and its instance are gone. `failure`: a launch or a
 * removal failed. `brake`: voluntary disruption or launches were paused or resumed. `rollout`: a rollout was halted or
 * resumed.
 */
export const journalKinds = [
  'decision',
  'launch',
  'launched',
  'registered',
  'initialized',
  'move',
  'refusal',
  'removal',
  'removed',
  'failure',
  'brake',
  'rollout',
] as const

export type JournalKind = (typeof journalKinds)[number]

/** Pods that an entry is about. */
export interface JournalPods {
  readonly count: number
  /** The first few, as `namespace/name`. */
  readonly names: readonly string[]
}

/**
 * Prices per hour in the provider's currency: of what there was before, and of what there is after. 0 means that
 * there is nothing that costs money; absent means unknown.
 */
export interface JournalPrices {
  readonly before?: number
  readonly after?: number
}

/** What is noted; the journal adds when, which, and in which currency. */
export interface JournalNote {
  readonly kind: JournalKind
  /** In UpperCamel, for example `Underutilized`. */
  readonly reason: string
  /** One sentence without a full stop. */
  readonly message: string
  readonly nodePool?: string
  /** Names of NodeClaims: those that go, or the one that the entry is about. */
  readonly nodeClaims?: readonly string[]
  /** Names of Nodes, as {@link nodeClaims}. */
  readonly nodes?: readonly string[]
  /** Names of NodeClaims that come in place of those. */
  readonly replacements?: readonly string[]
  readonly pods?: JournalPods
  readonly pricePerHour?: JournalPrices
  /** Id of the decision or the command that this belongs to. */
  readonly decision?: string
  /** It was decided, and not carried out. */
  readonly observed?: true
}

export interface JournalEntry extends JournalNote {
  readonly id: string
  /** RFC 3339. */
  readonly at: string
  readonly nodeClaims: readonly string[]
  readonly nodes: readonly string[]
  /** Of the prices; absent when the provider does not say. */
  readonly currency?: string
}

/** The most names that an entry lists of one kind of object; its message tells how many there are. */
const mostNames = 1000
const mostMessage = 2000

/** An entry whose lists and texts are bounded. */
export function entryOf(
  note: JournalNote,
  added: Pick<JournalEntry, 'id' | 'at' | 'currency'>,
): JournalEntry {
  const { nodeClaims = [], nodes = [], replacements, message } = note
  const { id, at, currency } = added
  return {
    ...note,
    id,
    at,
    message: message.length > mostMessage ? `${message.slice(0, mostMessage)}…` : message,
    nodeClaims: nodeClaims.slice(0, mostNames),
    nodes: nodes.slice(0, mostNames),
    ...(replacements !== undefined && { replacements: replacements.slice(0, mostNames) }),
    ...(note.pricePerHour !== undefined && currency !== undefined && { currency }),
  }
}

/** The first names of pods, and how many there are. */
export function podsNoted(keys: readonly string[]): JournalPods {
  return { count: keys.length, names: keys.slice(0, 5) }
}
