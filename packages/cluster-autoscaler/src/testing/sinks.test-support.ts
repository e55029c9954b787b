/** Sinks that keep what they are told, for tests. */
import type { KubeObject } from '@tenon/api'
import type {
  CounterName,
  EventSink,
  EventType,
  GaugeName,
  HistogramName,
  MetricLabels,
  MetricSink,
} from '../model.ts'

export class KeptEvents implements EventSink {
  /** `reason about: message`, in order. */
  readonly told: string[] = []

  status(_type: EventType, reason: string, message: string): void {
    this.told.push(`${reason} status: ${message}`)
  }

  object({ kind, metadata }: KubeObject, _type: EventType, reason: string, message: string): void {
    this.told.push(`${reason} ${kind}/${metadata.name}: ${message}`)
  }

  /** Those of one reason. */
  of(reason: string): readonly string[] {
    return this.told.filter((text) => text.startsWith(`${reason} `))
  }
}

export class KeptMetrics implements MetricSink {
  readonly #values = new Map<string, number>()

  set(name: GaugeName, value: number, labels?: MetricLabels): void {
    this.#values.set(keyOf(name, labels), value)
  }

  clear(name: GaugeName): void {
    for (const key of this.#values.keys()) if (key.startsWith(`${name}{`)) this.#values.delete(key)
  }

  add(name: CounterName, by: number, labels?: MetricLabels): void {
    const key = keyOf(name, labels)
    this.#values.set(key, (this.#values.get(key) ?? 0) + by)
  }

  observe(name: HistogramName, _value: number, labels?: MetricLabels): void {
    const key = keyOf(name, labels)
    this.#values.set(key, (this.#values.get(key) ?? 0) + 1)
  }

  /** Of the series with these labels, whatever others it has; undefined when there is none. */
  of(name: GaugeName | CounterName | HistogramName, labels: MetricLabels = {}): number | undefined {
    for (const [key, value] of this.#values) {
      const has = Object.entries(labels).every(([label, each]) => key.includes(`${label}="${each}"`))
      if (key.startsWith(`${name}{`) && has) return value
    }
    return undefined
  }
}

function keyOf(name: string, labels: MetricLabels = {}): string {
  return `${name}{${Object.entries(labels)
    .map(([label, value]) => `${label}="${value}"`)
    .join()}}`
}
