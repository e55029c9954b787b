/** Journal entries for programs: one JSON object a line. */
import { isRecord } from '@tenon/api'
import {
  type JournalEntry,
  type JournalKind,
  journalKinds,
  type JournalPods,
  type JournalPrices,
} from './entry.ts'

const journalApiVersion = 'tenon.sh/v1alpha1'
const journalEntryKind = 'JournalEntry'

/** An entry as a line without its end. What the entry calls its kind is `type` here. */
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

/**
 * Reads a line.
 * @returns what is wrong with it, a clause without a full stop, where it is no entry.
 */
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

/** What an entry has beside its kind, id and time; a field of another form is left out. */
function ownFields(found: Found): Omit<JournalEntry, 'kind' | 'id' | 'at'> {
  const nodePool = text(found['nodePool'])
  const decision = text(found['decision'])
  const currency = text(found['currency'])
  const pods = podsOf(found['pods'])
  const pricePerHour = pricesOf(found['pricePerHour'])
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
    ...(found['observed'] === true && { observed: true }),
  }
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

function names(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === 'string') : []
}

function podsOf(value: unknown): JournalPods | undefined {
  if (!isRecord(value)) return undefined
  const { count } = value
  return typeof count === 'number' && count >= 0 ? { count, names: names(value['names']) } : undefined
}

function pricesOf(value: unknown): JournalPrices | undefined {
  if (!isRecord(value)) return undefined
  const before = price(value['before'])
  const after = price(value['after'])
  return { ...(before !== undefined && { before }), ...(after !== undefined && { after }) }
}

function price(value: unknown): number | undefined {
  return typeof value === 'number' && value >= 0 ? value : undefined
}
