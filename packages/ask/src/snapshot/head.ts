/** The first line of a snapshot. */
import { isRecord, ownValue } from '@tenon/api'
import {
  defaultSettings,
  emptyMemory,
  type OperatorMemory,
  schedulerSettingsOf,
  type Settings,
} from '@tenon/operator/objects'
import type { Snapshot, SnapshotCloud, SnapshotOrigin } from './snapshot.ts'

/** The parts of a snapshot without lines of their own. */
export type SnapshotHead = Omit<Snapshot, 'objects' | 'catalogues' | 'nodeDecisions' | 'journal'>

type Fields = Readonly<Record<string, unknown>>

/** The first field that is missing or invalid; undefined if there is none. */
export function headProblem(value: Fields): string | undefined {
  const { takenAtMs, program, origin, cloud, settings, memory } = value
  if (typeof takenAtMs !== 'number' || !Number.isFinite(takenAtMs)) return wrong('takenAtMs', 'a time')
  if (typeof program !== 'string') return wrong('program', 'a text')
  if (!isOrigin(origin)) return wrong('origin', 'an origin')
  if (!isCloud(cloud)) return wrong('cloud', 'a cloud')
  if (!isRecord(settings)) return wrong('settings', 'settings')
  return isRecord(memory) ? undefined : wrong('memory', 'a memory')
}

const wrong = (field: string, what: string): string => `"${field}" is missing or not ${what}`

/** @param value must have passed {@link headProblem}. */
export function readHead(value: Fields): SnapshotHead {
  const { takenAtMs, program, origin, cloud, settings, memory } = value
  if (!isOrigin(origin) || !isCloud(cloud)) throw new TypeError('the head of the snapshot was not checked')
  return {
    takenAtMs: Number(takenAtMs),
    program: String(program),
    origin,
    cloud,
    settings: readSettings(settings),
    memory: readMemory(memory),
  }
}

function readSettings(given: unknown): Settings {
  const namespace = isRecord(given) ? given['brakeNamespace'] : undefined
  const brake = typeof namespace === 'string' ? { brakeNamespace: namespace } : {}
  return { ...readLike(defaultSettings, given), ...brake, ...readScoring(given) }
}

/** What it cannot be by the option is left out. */
function readScoring(given: unknown): Pick<Settings, 'fitScoring'> {
  const scoring = isRecord(given) ? given['fitScoring'] : undefined
  if (!isRecord(scoring)) return {}
  const { shape, ...strategy } = scoring
  const scoringStrategy = { ...strategy, ...(shape !== undefined && { requestedToCapacityRatio: { shape } }) }
  const read = schedulerSettingsOf({ nodeResourcesFit: { scoringStrategy } })
  return 'ok' in read && read.ok.fitScoring !== undefined ? { fitScoring: read.ok.fitScoring } : {}
}

function readMemory(given: unknown): OperatorMemory {
  const memory = readLike(emptyMemory, given)
  const refusals = Object.entries<unknown>(memory.refusedClaims).filter(([, refusal]) => isRefusal(refusal))
  return { ...memory, refusedClaims: Object.fromEntries(refusals) as OperatorMemory['refusedClaims'] }
}

function isRefusal(value: unknown): boolean {
  if (!isRecord(value) || typeof value['message'] !== 'string') return false
  return typeof value['untilMs'] === 'number' && !Number.isNaN(new Date(value['untilMs']).getTime())
}

/** Takes fields that have the type of their default. Settings of other releases fall back to the default. */
function readLike<T extends Settings | OperatorMemory | Settings['featureGates']>(
  defaults: T,
  given: unknown,
): T {
  if (!isRecord(given)) return defaults
  const entries = Object.entries(defaults).map(([name, fallback]: [string, unknown]) => {
    const value = ownValue(given, name)
    return [name, readValue(name, fallback, value)]
  })
  return { ...defaults, ...Object.fromEntries(entries) }
}

function readValue(name: string, fallback: unknown, value: unknown): unknown {
  if (value === 'Infinity' && typeof fallback === 'number') return Number.POSITIVE_INFINITY
  // Its default is another type.
  if (name === 'plannedPlacement' && typeof value === 'boolean') return value
  if (Array.isArray(fallback)) return Array.isArray(value) ? value : fallback
  if (name === 'featureGates') return readLike(defaultSettings.featureGates, value)
  if (isRecord(fallback)) return isRecord(value) ? value : fallback
  return typeof value === typeof fallback ? value : fallback
}

function isOrigin(value: unknown): value is SnapshotOrigin {
  if (!isRecord(value)) return false
  if (value['kind'] === 'controller')
    return typeof value['identity'] === 'string' && typeof value['isLeading'] === 'boolean'
  return (
    value['kind'] === 'objects' &&
    typeof value['server'] === 'string' &&
    typeof value['catalogue'] === 'string'
  )
}

function isCloud(value: unknown): value is SnapshotCloud {
  return (
    isRecord(value) &&
    typeof value['name'] === 'string' &&
    isTexts(value['wellKnownLabels']) &&
    Array.isArray(value['nodeClasses']) &&
    value['nodeClasses'].every(
      (type) =>
        isRecord(type) &&
        ['group', 'version', 'kind', 'plural'].every((name) => typeof ownValue(type, name) === 'string'),
    )
  )
}

function isTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((each) => typeof each === 'string')
}
