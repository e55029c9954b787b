/** Cells that several tables have. */
import { age, type KubeObject, labels, ownValue, parseResource, priceText } from '@tenon/api'
import type { Column } from '../../kubectl/output/table.ts'
import type { Facts } from './facts.ts'

export const none = '<none>'
export const unknown = '<unknown>'

/** A table of objects of one kind. */
export type TableOf<T extends KubeObject> = (facts: Facts) => readonly Column<T>[]

export function labelOf({ metadata }: KubeObject, key: string): string {
  return ownValue(metadata.labels, key) ?? none
}

/** `NAME` first, `AGE` last. */
export function framed<T extends KubeObject>(
  { nowMs }: Facts,
  columns: readonly Column<T>[],
): readonly Column<T>[] {
  return [
    { title: 'NAME', value: ({ metadata }) => metadata.name },
    ...columns,
    { title: 'AGE', value: ({ metadata }) => age(metadata.creationTimestamp, nowMs) },
  ]
}

/** The currency is told in the title. */
export function priceColumn<T extends KubeObject>(facts: Facts): Column<T> {
  return {
    title: `${facts.currency ?? 'PRICE'}/HOUR`,
    value: (object) => priceText(facts.priceOf(object), unknown),
  }
}

export function whyColumn<T extends KubeObject>(facts: Facts): Column<T> {
  return { title: 'WHY-KEPT', value: (object) => facts.decisionOn(object)?.cause ?? none }
}

/** The whole sentence, only when there is room for it. */
export function whyTextColumn<T extends KubeObject>(facts: Facts): Column<T> {
  return { title: 'REASON', value: (object) => facts.decisionOn(object)?.message ?? none, isWide: true }
}

export const typeColumns: readonly Column<KubeObject>[] = [
  { title: 'TYPE', value: (object) => labelOf(object, labels.instanceType) },
  { title: 'CAPACITY', value: (object) => labelOf(object, labels.capacityType) },
  { title: 'ZONE', value: (object) => labelOf(object, labels.zone) },
]

const mebibyte = 1024 ** 2

/** `1.5/4` cores. */
export function cores(requested: number | undefined, allocatable: number): string {
  const text = (millis: number) => String(Math.round(millis / 10) / 100)
  return `${requested === undefined ? '?' : text(requested)}/${text(allocatable)}`
}

/** `512Mi/3912Mi`. */
export function mebibytes(requested: number | undefined, allocatable: number): string {
  const text = (bytes: number) => `${Math.round(bytes / mebibyte)}Mi`
  return `${requested === undefined ? '?' : text(requested)}/${text(allocatable)}`
}

/** Of a list of resources, in canonical units; 0 without it. */
export function amountOf(list: Readonly<Record<string, string>> | undefined, name: string): number {
  return parseResource(name, ownValue(list, name) ?? '0')
}

/** Status of a condition; `Unknown` while nobody has set it. */
export function conditionStatus(
  object: { readonly status?: { readonly conditions?: readonly { type: string; status: string }[] } },
  type: string,
): string {
  return object.status?.conditions?.find((condition) => condition.type === type)?.status ?? 'Unknown'
}
