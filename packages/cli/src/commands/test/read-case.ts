/** Parses test cases (ask.md 7). */
import type { Case, CaseExpectations, CaseStep } from '@tenon/ask'
import {
  isRecord,
  type OfferingRef,
  ownValue,
  parseDuration,
  type PodSpec,
  type UnstructuredObject,
} from '@tenon/api'

type Fields = Readonly<Record<string, unknown>>

/** The initial state of a case. */
export interface CaseGiven {
  /** Manifests, relative to the file of the case. */
  readonly files: readonly string[]
  readonly objects: readonly Fields[]
  /** A snapshot, relative to the file of the case. */
  readonly snapshot?: string
  /** Provider of the instance types; default: that of the node classes. */
  readonly provider?: string
  /** Options of the provider without dashes, such as `zone`. */
  readonly options: Readonly<Record<string, string>>
}

/** A step that may still refer to files. */
export type WrittenStep =
  | Exclude<CaseStep, { kind: 'apply' }>
  | { readonly kind: 'apply'; readonly files: readonly string[]; readonly objects: readonly Fields[] }

export interface WrittenCase extends Omit<Case, 'when'> {
  readonly given: CaseGiven
  readonly when: readonly WrittenStep[]
}

/** The message names the field. */
export class CaseSyntaxError extends Error {
  constructor(field: string, message: string) {
    super(`${field}: ${message}`)
    this.name = 'CaseSyntaxError'
  }
}

/** @throws CaseSyntaxError naming the invalid field. */
export function readCase(object: UnstructuredObject): WrittenCase {
  const { metadata } = object
  const root = new Reader({ ...object }, '')
  root.only('apiVersion', 'kind', 'metadata', 'given', 'when', 'expect')
  if (metadata.name === undefined) throw new CaseSyntaxError('metadata.name', 'give the case a name')
  return {
    name: metadata.name,
    given: givenOf(root.part('given')),
    when: root.list('when').map((each) => stepOf(each)),
    expect: expectationsOf(root.part('expect')),
  }
}

function givenOf(given: Reader): CaseGiven {
  given.only('files', 'objects', 'snapshot', 'catalogue')
  const catalogue = given.part('catalogue')
  catalogue.only('provider', 'options')
  const snapshot = given.text('snapshot')
  const provider = catalogue.text('provider')
  const options = catalogue.part('options')
  return {
    files: given.texts('files') ?? [],
    objects: given.list('objects').map((each) => each.fields),
    ...(snapshot !== undefined && { snapshot }),
    ...(provider !== undefined && { provider }),
    options: options.textRecord(),
  }
}

function stepOf(step: Reader): WrittenStep {
  const names = Object.keys(step.fields)
  const [kind] = names
  if (kind === undefined || names.length !== 1) throw new CaseSyntaxError(step.path, 'a step has one field')
  step.only('pods', 'apply', 'delete', 'scale', 'lose', 'price', 'pass')
  const part = kind === 'delete' || kind === 'pass' ? step : step.part(kind)
  switch (kind) {
    case 'pods':
      return podsOf(part)
    case 'apply':
      part.only('files', 'objects')
      return {
        kind,
        files: part.texts('files') ?? [],
        objects: part.list('objects').map((each) => each.fields),
      }
    case 'delete':
      return { kind, object: step.needed('delete') }
    case 'scale':
      part.only('workload', 'replicas')
      return { kind, workload: part.needed('workload'), replicas: part.neededNumber('replicas') }
    case 'lose':
      part.only('instanceType', 'zone', 'capacityType')
      return { kind, offering: offeringOf(part) }
    case 'price':
      part.only('instanceType', 'pricePerHour')
      return {
        kind,
        instanceType: part.needed('instanceType'),
        pricePerHour: part.neededNumber('pricePerHour'),
      }
    default:
      return { kind: 'pass', ms: durationOf(step, 'pass') }
  }
}

function durationOf(step: Reader, field: string): number {
  const ms = parseDuration(step.needed(field))
  if (ms === undefined || ms <= 0)
    throw new CaseSyntaxError(`${step.path}.${field}`, 'use a duration such as 10m')
  return ms
}

function offeringOf(part: Reader): Partial<OfferingRef> {
  const [instanceType, zone, capacityType] = [
    part.text('instanceType'),
    part.text('zone'),
    part.text('capacityType'),
  ]
  return {
    ...(instanceType !== undefined && { instanceType }),
    ...(zone !== undefined && { zone }),
    ...(capacityType !== undefined && { capacityType }),
  }
}

function podsOf(part: Reader): CaseStep & { readonly kind: 'pods' } {
  part.only('name', 'namespace', 'count', 'labels', 'requests', 'spec')
  const requests = part.part('requests').textRecord()
  const spec: Partial<PodSpec> = part.part('spec').fields
  const containers = spec.containers ?? [{ name: 'app', resources: { requests } }]
  return {
    kind: 'pods',
    pods: {
      name: part.needed('name'),
      namespace: part.text('namespace') ?? 'default',
      count: part.number('count') ?? 1,
      labels: part.part('labels').textRecord(),
      spec: { ...spec, containers },
    },
  }
}

function expectationsOf(expect: Reader): CaseExpectations {
  expect.only(
    'running',
    'nodePools',
    'instanceTypes',
    'noInstanceTypes',
    'nodesAtMost',
    'pricePerHourAtMost',
    'zonesBalanced',
    'noDisruption',
    'pending',
  )
  const nodePools = expect.texts('nodePools')
  const instanceTypes = expect.texts('instanceTypes')
  const noInstanceTypes = expect.texts('noInstanceTypes')
  const nodesAtMost = expect.number('nodesAtMost')
  const pricePerHourAtMost = expect.number('pricePerHourAtMost')
  const running = expect.fields['running'] === 'all' ? 'all' : expect.number('running')
  const pending = expect.list('pending').map((each) => {
    each.only('pod', 'reason')
    const reason = each.text('reason')
    return { pod: each.needed('pod'), ...(reason !== undefined && { reason }) }
  })
  return {
    ...(running !== undefined && { running }),
    ...(nodePools && { nodePools }),
    ...(instanceTypes && { instanceTypes }),
    ...(noInstanceTypes && { noInstanceTypes }),
    ...(nodesAtMost !== undefined && { nodesAtMost }),
    ...(pricePerHourAtMost !== undefined && { pricePerHourAtMost }),
    ...(expect.flag('zonesBalanced') && { zonesBalanced: true }),
    ...(expect.flag('noDisruption') && { noDisruption: true }),
    ...(pending.length > 0 && { pending }),
  }
}

/** Reads fields, and names the one that is invalid. */
class Reader {
  readonly fields: Fields
  readonly path: string

  constructor(value: unknown, path: string) {
    if (value !== undefined && value !== null && !isRecord(value))
      throw new CaseSyntaxError(path, 'must be an object')
    this.fields = isRecord(value) ? value : {}
    this.path = path
  }

  only(...names: readonly string[]): void {
    const unknown = Object.keys(this.fields).find((name) => !names.includes(name))
    if (unknown !== undefined)
      throw new CaseSyntaxError(this.#at(unknown), `unknown field; use ${names.join(', ')}`)
  }

  part(name: string): Reader {
    return new Reader(ownValue(this.fields, name), this.#at(name))
  }

  list(name: string): readonly Reader[] {
    const value = ownValue(this.fields, name) ?? []
    if (!Array.isArray(value)) throw new CaseSyntaxError(this.#at(name), 'must be a list')
    return value.map((each: unknown, index) => new Reader(each, `${this.#at(name)}[${index}]`))
  }

  text(name: string): string | undefined {
    const value = ownValue(this.fields, name)
    if (value === undefined || value === null) return undefined
    if (typeof value !== 'string') throw new CaseSyntaxError(this.#at(name), 'must be a text')
    return value
  }

  needed(name: string): string {
    const value = this.text(name)
    if (value === undefined) throw new CaseSyntaxError(this.#at(name), 'is missing')
    return value
  }

  number(name: string): number | undefined {
    const value = ownValue(this.fields, name)
    if (value === undefined || value === null) return undefined
    if (typeof value !== 'number' || !(value >= 0))
      throw new CaseSyntaxError(this.#at(name), 'must be a number from 0')
    return value
  }

  neededNumber(name: string): number {
    const value = this.number(name)
    if (value === undefined) throw new CaseSyntaxError(this.#at(name), 'is missing')
    return value
  }

  flag(name: string): boolean {
    const value = ownValue(this.fields, name) ?? false
    if (typeof value !== 'boolean') throw new CaseSyntaxError(this.#at(name), 'must be true or false')
    return value
  }

  texts(name: string): readonly string[] | undefined {
    const value = ownValue(this.fields, name)
    if (value === undefined || value === null) return undefined
    if (!Array.isArray(value) || value.some((each) => typeof each !== 'string'))
      throw new CaseSyntaxError(this.#at(name), 'must be a list of texts')
    return value.map(String)
  }

  /** Accepts numbers, as in quantities. */
  textRecord(): Readonly<Record<string, string>> {
    return Object.fromEntries(
      Object.entries(this.fields).map(([name, value]) => {
        if (typeof value !== 'string' && typeof value !== 'number')
          throw new CaseSyntaxError(this.#at(name), 'must be a text')
        return [name, String(value)]
      }),
    )
  }

  #at(name: string): string {
    return this.path === '' ? name : `${this.path}.${name}`
  }
}
