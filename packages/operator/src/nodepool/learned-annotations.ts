/** What NodePools carry in annotations for the next process: what nodes taught this one (reports.md 1). */
import { formatResources, isQuantity, ownValue, parseResources } from '@tenon/api'
import { rfc3339 } from '@tenon/runtime'
import type { Correction } from '../state/nodes/learned-capacity.ts'
import type { UselessNode } from '../state/nodes/node-evidence.ts'

export const capacityAnnotation = 'tenon.sh/learned-capacity'
export const uselessAnnotation = 'tenon.sh/launched-in-vain'

/** An instance type that is smaller than its catalogue says. Amounts are quantities. */
export interface StoredType {
  readonly type: string
  readonly settings: string
  readonly image: string
  readonly launched: string
  readonly capacity: Readonly<Record<string, string>>
  readonly allocatable: Readonly<Record<string, string>>
  /** When it is forgotten, RFC 3339; undefined while such instances exist. */
  readonly until?: string
}

export function storedType({ type, figures, shortfall, untilMs }: Correction, settings: string): StoredType {
  const found = (amounts: Correction['shortfall']['capacity']) =>
    formatResources(Object.fromEntries(Object.entries(amounts).map(([name, amount]) => [name, amount.found])))
  return {
    type: type.name,
    settings,
    image: figures.image,
    launched: rfc3339(figures.launchedMs),
    capacity: found(shortfall.capacity),
    allocatable: found(shortfall.allocatable),
    ...(untilMs !== undefined && { until: rfc3339(untilMs) }),
  }
}

/** Whether the stored list need not be written again: instances of a type differ a little. */
export function isCurrent(before: readonly StoredType[], now: readonly StoredType[]): boolean {
  return (
    before.length === now.length &&
    now.every((each, i) => {
      const stored = before[i]
      return (
        stored?.type === each.type &&
        stored.settings === each.settings &&
        stored.image === each.image &&
        stored.until === each.until &&
        isClose(stored.capacity, each.capacity) &&
        isClose(stored.allocatable, each.allocatable)
      )
    })
  )
}

const tolerance = 0.002

function isClose(a: StoredType['capacity'], b: StoredType['capacity']): boolean {
  const [one, other] = [parseResources(a), parseResources(b)]
  const names = new Set([...Object.keys(one), ...Object.keys(other)])
  return [...names].every((name) => {
    const [x = 0, y = 0] = [ownValue(one, name), ownValue(other, name)]
    return Math.abs(x - y) <= tolerance * Math.max(x, y)
  })
}

/** Without entries that cannot be read: anybody may write annotations. */
export function storedTypes(text: string | undefined): readonly StoredType[] {
  return listIn(text).filter(isStoredType)
}

export function storedNodes(text: string | undefined): readonly UselessNode[] {
  return listIn(text).filter(isUselessNode)
}

function listIn(text: string | undefined): readonly unknown[] {
  if (text === undefined) return []
  try {
    const value: unknown = JSON.parse(text)
    return Array.isArray(value) ? (value as readonly unknown[]) : []
  } catch (error) {
    if (error instanceof SyntaxError) return []
    throw error
  }
}

function isStoredType(value: unknown): value is StoredType {
  const { capacity, allocatable, ...rest } = fieldsOf(value)
  const texts = [rest['type'], rest['settings'], rest['image'], rest['launched']]
  return (
    texts.every((each) => typeof each === 'string') &&
    ['undefined', 'string'].includes(typeof rest['until']) &&
    areQuantities(capacity) &&
    areQuantities(allocatable)
  )
}

function isUselessNode(value: unknown): value is UselessNode {
  const fields = fieldsOf(value)
  const texts = ['workload', 'nodePool', 'node', 'claim', 'pod', 'words', 'ground']
  const numbers = ['failures', 'atMs', 'untilMs']
  return (
    texts.every((name) => typeof ownValue(fields, name) === 'string') &&
    numbers.every((name) => Number.isFinite(ownValue(fields, name))) &&
    (fields['cause'] === 'unused' || fields['cause'] === 'refused')
  )
}

function areQuantities(value: unknown): boolean {
  return Object.values(fieldsOf(value)).every((each) => typeof each === 'string' && isQuantity(each))
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {}
}
