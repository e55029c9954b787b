/** Shrinks a failing case to what the failure needs. */
import type { KubeObject } from '@tenon/api'
import type { Case, Finding } from './case.ts'

export interface Shrunk {
  readonly case: Case
  readonly finding: Finding
}

/** Plays a case; undefined if it does not fail in the same way. */
export type Attempt = (given: Case) => Promise<Finding | undefined>

/** Fields that identify an object and must be kept. */
const needed: ReadonlySet<string> = new Set(
  (
    'apiVersion kind metadata name spec template containers image nodeClassRef group selector matchLabels ' +
    'key operator values effect topologyKey maxSkew whenUnsatisfiable labels'
  ).split(' '),
)

/**
 * Tries smaller cases while `goesOn` holds.
 * @param attempt whether a smaller case still fails in the same way.
 */
export async function shrinkCase(failing: Shrunk, attempt: Attempt, goesOn: () => boolean): Promise<Shrunk> {
  let best = failing
  const isStillWrong = async (smaller: Case): Promise<boolean> => {
    const finding = await attempt(smaller)
    if (finding === undefined) return false
    best = { case: smaller, finding }
    return true
  }
  for (let found = true; found; ) {
    found = false
    // What could not be removed is only tried again after everything else has been tried.
    let asked = 0
    for (let isAtEnd = false; !isAtEnd; ) {
      isAtEnd = true
      let index = 0
      for (const smaller of smallerCases(best.case)) {
        if (index++ < asked) continue
        if (!goesOn()) return best
        if (await isStillWrong(smaller)) {
          found = true
          isAtEnd = false
          break
        }
        asked++
      }
    }
  }
  return best
}

/** All cases with one part removed, large parts first. */
function* smallerCases(given: Case): Generator<Case> {
  const { objects, catalogue } = given
  // Halves first: most objects are unrelated to the failure.
  for (const half of halves(objects)) yield { ...given, objects: half }
  for (const index of objects.keys()) yield { ...given, objects: objects.filter((_, at) => at !== index) }
  for (const steps of without(given.steps)) yield { ...given, steps: steps as Case['steps'] }
  if (Object.keys(given.settings).length > 0) yield { ...given, settings: {} }
  for (const surroundings of withoutFields(given.surroundings)) yield { ...given, surroundings }
  const { answers = [] } = given.surroundings
  for (const less of without(answers))
    yield {
      ...given,
      surroundings: { ...given.surroundings, answers: less as NonNullable<Case['surroundings']['answers']> },
    }
  if (catalogue !== undefined) {
    for (const half of halves(catalogue)) yield { ...given, catalogue: half }
    for (const types of without(catalogue)) yield { ...given, catalogue: types as readonly object[] }
    for (const types of simpler(catalogue, 'catalogue')) {
      const isSound = (types as readonly object[]).every((type) => 'offerings' in type && 'resources' in type)
      if (isSound) yield { ...given, catalogue: types as readonly object[] }
    }
  }
  for (const fewer of fewerReplicas(objects)) yield { ...given, objects: fewer }
  for (const [index, object] of objects.entries())
    for (const less of simpler(object))
      yield { ...given, objects: objects.map((each, at) => (at === index ? (less as KubeObject) : each)) }
}

function* halves<T>(list: readonly T[]): Generator<readonly T[]> {
  if (list.length < 4) return
  const middle = list.length >> 1
  yield list.slice(middle)
  yield list.slice(0, middle)
}

function* without(list: readonly unknown[]): Generator<readonly unknown[]> {
  for (const index of list.keys()) yield list.filter((_, at) => at !== index)
}

function* withoutFields(fields: object): Generator<object> {
  for (const key of Object.keys(fields))
    yield Object.fromEntries(Object.entries(fields).filter(([other]) => other !== key))
}

function* fewerReplicas(objects: readonly KubeObject[]): Generator<readonly KubeObject[]> {
  for (const [index, object] of objects.entries()) {
    const { spec } = object as KubeObject & { readonly spec?: { readonly replicas?: number } }
    const replicas = spec?.replicas
    if (replicas === undefined || replicas < 2) continue
    for (const fewer of new Set([1, replicas >> 1, replicas - 1])) {
      const changed = { ...object, spec: { ...spec, replicas: fewer } }
      yield objects.map((each, at) => (at === index ? changed : each))
    }
  }
}

/** All values with one list element or field removed, at any depth; larger parts first. */
function* simpler(value: unknown, name = ''): Generator {
  if (Array.isArray(value)) {
    if (value.length > 1 || !['containers', 'values', 'offerings', 'catalogue'].includes(name))
      for (const index of value.keys()) yield value.filter((_, at) => at !== index)
    for (const [index, each] of value.entries())
      for (const less of simpler(each)) yield value.map((one: unknown, at) => (at === index ? less : one))
    return
  }
  if (typeof value !== 'object' || value === null) return
  for (const [key, each] of Object.entries(value)) {
    const isEmpty = typeof each === 'object' && each !== null && Object.keys(each).length === 0
    if (!needed.has(key) || isEmpty)
      yield Object.fromEntries(Object.entries(value).filter(([other]) => other !== key))
  }
  for (const [key, each] of Object.entries(value))
    for (const less of simpler(each, key)) yield { ...value, [key]: less }
}
