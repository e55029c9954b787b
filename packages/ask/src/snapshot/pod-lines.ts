/**
 * Pods as lines of a snapshot. Pods of one workload are almost equal, so what they share is a line of its own,
 * written once before the first of them. This makes snapshots small, and readers get one shared object for it,
 * as in the controller's cache.
 */
import { isRecord, type KubeObject } from '@tenon/api'

type Fields = Readonly<Record<string, unknown>>

/** A part that several pods may share; parts are numbered from 0. */
export interface PartLine {
  readonly part: Fields
}

/** A pod without its shared parts. */
export interface PodLine {
  readonly pod: Fields
  readonly parts: Parts
}

/** Numbers of parts. */
interface Parts {
  /** Fields of the section, except those that the pod has itself. */
  readonly metadata?: number
  readonly spec?: number
  /** One for each entry of `status.conditions`. */
  readonly conditions?: readonly number[]
}

/** Fields that differ between pods of a workload. */
const ownFields = {
  metadata: new Set([
    'name',
    'uid',
    'creationTimestamp',
    'deletionTimestamp',
    'deletionGracePeriodSeconds',
    'resourceVersion',
    'generation',
  ]),
  spec: new Set(['nodeName', 'volumes', 'hostname']),
} as const
const sections = ['metadata', 'spec'] as const

export class PodWriter {
  readonly #byObject = new Map<object, number>()
  /** Numbers by JSON text, as equal parts may be different objects. */
  readonly #byText = new Map<string, number>()

  /** The lines of a pod: its new parts, then the pod. */
  lines(pod: KubeObject & { readonly status?: unknown }): readonly (PartLine | PodLine)[] {
    const newParts: PartLine[] = []
    const own: Record<string, unknown> = { ...pod }
    const parts: Partial<Record<keyof Parts, Parts[keyof Parts]>> = {}
    for (const section of sections) {
      const fields = own[section]
      if (!isRecord(fields)) continue
      const all = Object.entries(fields)
      own[section] = Object.fromEntries(all.filter(([name]) => ownFields[section].has(name)))
      const common = Object.fromEntries(all.filter(([name]) => !ownFields[section].has(name)))
      parts[section] = this.#number(common, newParts)
    }
    const { status } = pod
    if (isRecord(status)) {
      const { conditions, ...rest } = status
      if (Array.isArray(conditions) && conditions.every(isRecord)) {
        own['status'] = rest
        parts.conditions = conditions.map((each) => this.#known(each, newParts))
      }
    }
    return [...newParts, { pod: own, parts: parts as Parts }]
  }

  /** Returns the number of a shared part, and appends the part to `newParts` if it is new. */
  #known(value: Fields, newParts: PartLine[]): number {
    const number = this.#byObject.get(value) ?? this.#number(value, newParts)
    this.#byObject.set(value, number)
    return number
  }

  #number(value: Fields, newParts: PartLine[]): number {
    const text = JSON.stringify(value)
    const known = this.#byText.get(text)
    if (known !== undefined) return known
    const number = this.#byText.size
    this.#byText.set(text, number)
    newParts.push({ part: value })
    return number
  }
}

export class PodParts {
  readonly #parts: Fields[] = []

  add(part: Fields): void {
    this.#parts.push(part)
  }

  /** Assembles a pod; undefined if the line is not a pod or refers to missing parts. */
  whole(pod: unknown, parts: unknown): Fields | undefined {
    if (!isRecord(pod) || !isRecord(parts)) return undefined
    const { metadata, spec, conditions } = parts
    const whole: Record<string, unknown> = { ...pod }
    for (const [section, number] of [
      ['metadata', metadata],
      ['spec', spec],
    ] as const) {
      if (number === undefined) continue
      const [part, own] = [this.#at(number), pod[section]]
      if (part === undefined || !isRecord(own)) return undefined
      whole[section] = { ...part, ...own }
    }
    if (conditions === undefined) return whole
    const all = Array.isArray(conditions)
      ? conditions.map((number: unknown) => this.#at(number))
      : [undefined]
    const { status } = pod
    if (all.includes(undefined) || !isRecord(status)) return undefined
    whole['status'] = { ...status, conditions: all }
    return whole
  }

  #at(number: unknown): Fields | undefined {
    return typeof number === 'number' ? this.#parts[number] : undefined
  }
}
