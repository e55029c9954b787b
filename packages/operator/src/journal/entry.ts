/** Entries of the journal: what the leader did, why, and what it costs. As lines, one JSON object each. */
import { isKnownPrice, isRecord, ownerOf, type Pod } from '@tenon/api'
import { keyOf } from '../state/pods/pods.ts'

/**
 * `decision`: a scheduling pass. `launch`: a NodeClaim was created. `launched`, `registered`, `initialized`: how
 * far it has come. `move`: a command has begun that removes or replaces nodes. `refusal`: a command was not begun,
 * or given up. `removal`: a NodeClaim was deleted. `removed`: it and its instance are gone. `failure`: a launch or a
 * removal failed. `brake`: voluntary disruption or launches were paused or resumed. `rollout`: a rollout was halted or
 * resumed. `spend`: what instances cost at this time, and for whom (page.md 2). `seen`: while this process only observes, what another autoscaler and the scheduler did (adoption.md 2).
 */
const journalKinds = [
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
  'spend',
  'seen',
] as const

export type JournalKind = (typeof journalKinds)[number]

export interface JournalPods {
  readonly count: number
  /** The first few, as `namespace/name`. */
  readonly names: readonly string[]
  /** Those with the most pods; absent where only names are known. */
  readonly workloads?: readonly JournalWorkload[]
}

export interface JournalWorkload {
  readonly namespace: string
  /** Such as `deployment/web`. */
  readonly workload: string
  readonly pods: number
}

/** What the instances of a NodePool cost per hour, in the currency of the entry. */
export interface JournalSpend {
  readonly nodePool: string
  /** Of the instances with a known price, which includes what no pod requests. */
  readonly pricePerHour: number
  /** Instances without one. */
  readonly unpriced: number
  /** By what pods request; the largest. */
  readonly shares: readonly JournalShare[]
}

export interface JournalShare {
  /** Empty for what the smallest workloads have together. */
  readonly namespace: string
  /** Such as `deployment/web`; empty for the rest of a namespace. */
  readonly workload: string
  readonly pricePerHour: number
  /** Of its pods; absent where an earlier entry has them. */
  readonly labels?: Readonly<Record<string, string>>
}

/** Prices per hour before and after, in the provider's currency. 0: nothing costs money; undefined: unknown. */
export interface JournalPrices {
  readonly before?: number
  readonly after?: number
}

/** A node that exists, or that would be launched; what is not known is absent. */
export interface JournalInstance {
  readonly instanceType?: string
  readonly pricePerHour?: number
}

/** How long pods have waited for a node, in seconds, summed over the pods of the entry. */
export interface JournalWaiting {
  readonly seconds: number
  /** With the launch that was only decided, if its node had needed as long as the one they got; absent if unknown. */
  readonly plannedSeconds?: number
}

/** An entry without what the journal adds: its id, the time and the currency. */
export interface JournalNote {
  readonly kind: JournalKind
  /** In UpperCamel, for example `Underutilized`. */
  readonly reason: string
  /** One sentence without a full stop. */
  readonly message: string
  readonly nodePool?: string
  /** Names of the NodeClaims that are removed, or of the one that the entry is about. */
  readonly nodeClaims?: readonly string[]
  /** Names of Nodes, as {@link nodeClaims}. */
  readonly nodes?: readonly string[]
  /** Names of the NodeClaims that replace them. */
  readonly replacements?: readonly string[]
  readonly pods?: JournalPods
  readonly pricePerHour?: JournalPrices
  /** Nodes that exist, in the order of {@link nodeClaims} or {@link nodes}, or those that an observed plan launches. */
  readonly instances?: readonly JournalInstance[]
  readonly waiting?: JournalWaiting
  /** Of all NodePools with instances. */
  readonly spend?: readonly JournalSpend[]
  /** Id of the decision or the command that this belongs to; of pods that were seen, that of the launch. */
  readonly decision?: string
  /** Decided, but not carried out. */
  readonly observed?: true
}

export interface JournalEntry extends JournalNote {
  readonly id: string
  /** RFC 3339. */
  readonly at: string
  readonly nodeClaims: readonly string[]
  readonly nodes: readonly string[]
  /** Of the prices; undefined if the provider names none. */
  readonly currency?: string
}

/** Maximum number of names of one kind; the message says how many there are. */
const mostNames = 1000
const mostMessage = 2000

/** Truncates lists and the message. */
export function entryOf(
  note: JournalNote,
  added: Pick<JournalEntry, 'id' | 'at' | 'currency'>,
): JournalEntry {
  const { nodeClaims = [], nodes = [], replacements, instances, message } = note
  const { id, at, currency } = added
  return {
    ...note,
    id,
    at,
    message: message.length > mostMessage ? `${message.slice(0, mostMessage)}…` : message,
    nodeClaims: nodeClaims.slice(0, mostNames),
    nodes: nodes.slice(0, mostNames),
    ...(replacements !== undefined && { replacements: replacements.slice(0, mostNames) }),
    ...(instances !== undefined && { instances: instances.slice(0, mostNames) }),
    ...((note.pricePerHour ?? instances ?? note.spend) !== undefined &&
      currency !== undefined && { currency }),
  }
}

const mostPodNames = 5
const mostWorkloads = 5

export function podsNoted(pods: readonly Pod[]): JournalPods {
  const counts = new Map<string, JournalWorkload>()
  for (const pod of pods) {
    const at = workloadName(pod)
    const key = `${at.namespace}/${at.workload}`
    counts.set(key, { ...at, pods: (counts.get(key)?.pods ?? 0) + 1 })
  }
  const workloads = [...counts.values()].toSorted((a, b) => b.pods - a.pods).slice(0, mostWorkloads)
  return { ...podKeysNoted(pods.map(({ metadata }) => keyOf(metadata))), workloads }
}

/** @param keys `namespace/name` of each pod. */
export function podKeysNoted(keys: readonly string[]): JournalPods {
  return { count: keys.length, names: keys.slice(0, mostPodNames) }
}

/** The workload of a pod as journal entries name it. */
export function workloadName(pod: Pod): Pick<JournalWorkload, 'namespace' | 'workload'> {
  const { kind, name } = ownerOf(pod)
  return { namespace: pod.metadata.namespace ?? 'default', workload: `${kind.toLowerCase()}/${name}` }
}

const journalApiVersion = 'tenon.sh/v1alpha1'
const journalEntryKind = 'JournalEntry'

/** A line without its end. The kind of the entry is `type` there: `kind` is that of the object. */
export function lineOf({ kind, id, at, ...rest }: JournalEntry): string {
  return JSON.stringify({
    apiVersion: journalApiVersion,
    kind: journalEntryKind,
    id,
    at,
    type: kind,
    ...rest,
  })
}

/** @returns a problem, a clause without a full stop, if the line is no entry. */
export function entryFrom(line: string): { readonly entry: JournalEntry } | { readonly problem: string } {
  const found = parsed(line)
  if (found === undefined) return { problem: 'it is not a JSON object' }
  const { apiVersion, kind, type, id, at } = found
  if (kind !== journalEntryKind) return { problem: `its kind is not ${journalEntryKind}` }
  if (apiVersion !== journalApiVersion)
    return {
      problem: `its apiVersion is ${text(apiVersion) ?? 'missing'}; this program reads ${journalApiVersion}`,
    }
  const known = journalKinds.find((each) => each === type)
  const problem = basicsProblem(known, id, at)
  if (problem !== undefined || known === undefined) return { problem: problem ?? '' }
  return { entry: { ...ownFields(found), kind: known, id: text(id) ?? '', at: text(at) ?? '' } }
}

type Found = Readonly<Record<string, unknown>>

function parsed(line: string): Found | undefined {
  try {
    const value: unknown = JSON.parse(line)
    return isRecord(value) ? value : undefined
  } catch {
    return undefined
  }
}

function basicsProblem(type: JournalKind | undefined, id: unknown, at: unknown): string | undefined {
  if (type === undefined) return 'its type is unknown'
  if (typeof id !== 'string' || id === '') return 'its id is missing'
  return typeof at === 'string' && !Number.isNaN(Date.parse(at))
    ? undefined
    : 'its time is missing or no time'
}

/** All fields but kind, id and time, without those that cannot be read. */
function ownFields(found: Found): Omit<JournalEntry, 'kind' | 'id' | 'at'> {
  const nodePool = text(found['nodePool'])
  const decision = text(found['decision'])
  const currency = text(found['currency'])
  const pods = podsOf(found['pods'])
  const pricePerHour = pricesOf(found['pricePerHour'])
  const waiting = waitingOf(found['waiting'])
  const spend = records(found['spend'])?.flatMap(spendOf)
  return {
    reason: text(found['reason']) ?? '',
    message: text(found['message']) ?? '',
    nodeClaims: names(found['nodeClaims']),
    nodes: names(found['nodes']),
    ...(Array.isArray(found['replacements']) && { replacements: names(found['replacements']) }),
    ...(nodePool !== undefined && { nodePool }),
    ...(decision !== undefined && { decision }),
    ...(currency !== undefined && { currency }),
    ...(pods !== undefined && { pods }),
    ...(pricePerHour !== undefined && { pricePerHour }),
    ...(Array.isArray(found['instances']) && { instances: found['instances'].map(instanceOf) }),
    ...(waiting !== undefined && { waiting }),
    ...(spend !== undefined && { spend }),
    ...(found['observed'] === true && { observed: true }),
  }
}

/** One that cannot be read keeps its position: nothing is known of it. */
function instanceOf(value: unknown): JournalInstance {
  if (!isRecord(value)) return {}
  const instanceType = text(value['instanceType'])
  const pricePerHour = price(value['pricePerHour'])
  return {
    ...(instanceType !== undefined && { instanceType }),
    ...(pricePerHour !== undefined && { pricePerHour }),
  }
}

function waitingOf(value: unknown): JournalWaiting | undefined {
  if (!isRecord(value)) return undefined
  const seconds = amount(value['seconds'])
  const plannedSeconds = amount(value['plannedSeconds'])
  return seconds === undefined
    ? undefined
    : { seconds, ...(plannedSeconds !== undefined && { plannedSeconds }) }
}

function amount(value: unknown): number | undefined {
  return typeof value === 'number' && value >= 0 && Number.isFinite(value) ? value : undefined
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

function names(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === 'string') : []
}

function podsOf(value: unknown): JournalPods | undefined {
  if (!isRecord(value)) return undefined
  const count = amount(value['count'])
  const workloads = records(value['workloads'])?.flatMap((each) => {
    const [namespace, workload, pods] = [
      text(each['namespace']),
      text(each['workload']),
      amount(each['pods']),
    ]
    return namespace === undefined || workload === undefined || pods === undefined
      ? []
      : [{ namespace, workload, pods }]
  })
  return count === undefined
    ? undefined
    : { count, names: names(value['names']), ...(workloads !== undefined && { workloads }) }
}

function spendOf(value: Found): readonly JournalSpend[] {
  const [nodePool, pricePerHour] = [text(value['nodePool']), price(value['pricePerHour'])]
  if (nodePool === undefined || pricePerHour === undefined) return []
  const shares = records(value['shares']) ?? []
  return [
    { nodePool, pricePerHour, unpriced: amount(value['unpriced']) ?? 0, shares: shares.flatMap(shareOf) },
  ]
}

function shareOf(value: Found): readonly JournalShare[] {
  const [namespace, workload, pricePerHour] = [
    text(value['namespace']),
    text(value['workload']),
    price(value['pricePerHour']),
  ]
  if (namespace === undefined || workload === undefined || pricePerHour === undefined) return []
  const { labels } = value
  return [{ namespace, workload, pricePerHour, ...(isRecord(labels) && { labels: textsOf(labels) }) }]
}

function textsOf(record: Found): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(record).flatMap(([key, value]) => (typeof value === 'string' ? [[key, value]] : [])),
  )
}

function records(value: unknown): readonly Found[] | undefined {
  return Array.isArray(value) ? value.filter(isRecord) : undefined
}

function pricesOf(value: unknown): JournalPrices | undefined {
  if (!isRecord(value)) return undefined
  const before = price(value['before'])
  const after = price(value['after'])
  return { ...(before !== undefined && { before }), ...(after !== undefined && { after }) }
}

function price(value: unknown): number | undefined {
  return isKnownPrice(value) ? value : undefined
}

/** `insufficient_capacity` becomes `InsufficientCapacity`, as reasons are written. */
export function upperCamel(words: string): string {
  return words
    .split(/[_\s-]+/)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('')
}

export interface JournalSelection {
  /** Name of a Node or NodeClaim, which may be gone. */
  readonly node?: string
  readonly nodePool?: string
  /** True: only what was observed; false: only what was carried out. */
  readonly observed?: boolean
}

/** Selects entries of a node or NodePool. Needs entries in order: it learns from them which claim a node belongs to. */
export class EntrySelector {
  readonly #selection: JournalSelection
  readonly #claims = new Set<string>()

  /** @param known earlier entries, to learn from. */
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
