/**
 * Pods as lines of a snapshot. Pods of one workload are alike in almost everything: what they share is a line of its
 * own, written once before the first of them. A snapshot is then as large as its pods differ, and those who read it
 * get one object for what is the same, as the controller has it.
 */
import { isRecord, type KubeObject } from '@tenon/api'

type Fields = Readonly<Record<string, unknown>>

/** What several pods may have in common; the first one has number 0. */
export interface PartLine {
  readonly part: Fields
}

/** A pod without what its parts say. */
export interface PodLine {
  readonly pod: Fields
  readonly parts: Parts
}

/** Numbers of parts. */
interface Parts {
  /** Fields of the section beside those of the pod itself. */
  readonly metadata?: number
  readonly spec?: number
  /** Each of `status.conditions`. */
  readonly conditions?: readonly number[]
}

/** Fields in which pods of one workload differ. */
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
  /** By their JSON: what says the same may be of several objects. */
  readonly #byText = new Map<string, number>()

  /** Lines of one pod: parts that are new, then itself. */
  lines(pod: KubeObject & { readonly status?: unknown }): readonly (PartLine | PodLine)[] {
    const news: PartLine[] = []
    const own: Record<string, unknown> = { ...pod }
    const parts: Partial<Record<keyof Parts, Parts[keyof Parts]>> = {}
    for (const section of sections) {
      const fields = own[section]
      if (!isRecord(fields)) continue
      const all = Object.entries(fields)
      own[section] = Object.fromEntries(all.filter(([name]) => ownFields[section].has(name)))
      const common = Object.fromEntries(all.filter(([name]) => !ownFields[section].has(name)))
      parts[section] = this.#number(common, news)
    }
    const { status } = pod
    if (isRecord(status)) {
      const { conditions, ...rest } = status
      if (Array.isArray(conditions) && conditions.every(isRecord)) {
        own['status'] = rest
        parts.conditions = conditions.map((each) => this.#known(each, news))
      }
    }
    return [...news, { pod: own, parts: parts as Parts }]
  }

  /** Of an object that may come again. */
  #known(value: Fields, news: PartLine[]): number {
    const number = this.#byObject.get(value) ?? this.#number(value, news)
    this.#byObject.set(value, number)
    return number
  }

  #number(value: Fields, news: PartLine[]): number {
    const text = JSON.stringify(value)
    const known = this.#byText.get(text)
    if (known !== undefined) return known
    const number = this.#byText.size
    this.#byText.set(text, number)
    news.push({ part: value })
    return number
  }
}

export class PodParts {
  readonly #parts: Fields[] = []

  add(part: Fields): void {
    this.#parts.push(part)
  }

  /** The pod of a line; undefined when the line is not one of a pod, or names parts that are not there. */
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
