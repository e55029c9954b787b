/** Records log and events of the operator. */
import type { EventInput, EventRecorder } from '@tenon/kube'
import type { LogFields, Logger, SystemClock } from '@tenon/runtime'
import type { Timeline } from './timeline.ts'

/** Steps on the way to a node, by the operator's log messages. */
const steps: Readonly<Record<string, string>> = {
  'found provisionable pod(s)': 'decision',
  'computed new nodeclaim(s) to fit pod(s)': 'launch decided',
  'created nodeclaim': 'claim created',
  'launched nodeclaim': 'claim launched',
  'registered nodeclaim': 'claim registered',
  'initialized nodeclaim': 'claim initialized',
}

/** Records log and events of the operator. */
export class Notes implements Logger {
  /** The first NodeClaim that each pod was planned for, by pod UID. */
  readonly plan = new Map<string, string>()
  launches: number[] = []
  complaints: string[] = []
  lines: string[] = []
  /** The operator's event recorder; receives the events. */
  events: EventRecorder | undefined
  readonly #clock: SystemClock
  readonly #timeline: Timeline

  constructor(clock: SystemClock, timeline: Timeline) {
    this.#clock = clock
    this.#timeline = timeline
  }

  forget(): void {
    this.lines = []
    this.plan.clear()
    this.launches = []
    this.complaints = []
  }

  record(event: EventInput): void {
    this.events?.record(event)
    const { object, reason, message } = event
    const claim = reason === 'Nominated' ? /nodeclaim\/([^,\s]+)/.exec(message)?.[1] : undefined
    const uid = object.metadata.uid ?? ''
    if (claim !== undefined && !this.plan.has(uid)) this.plan.set(uid, claim)
  }

  debug(): void {
    // Debug lines are dropped.
  }

  info(message: string, fields?: LogFields): void {
    this.#line(message, fields)
    const step = steps[message]
    if (step !== undefined) this.#timeline.mark(step)
    if (message === 'computed new nodeclaim(s) to fit pod(s)')
      this.launches.push(Number(fields?.['nodeclaims'] ?? 0))
  }

  warn(message: string, fields?: LogFields): void {
    this.#line(message, fields)
    this.complaints.push(`${message}: ${textOf(fields)}`)
  }

  error(message: string, fields?: LogFields): void {
    this.#line(message, fields)
    this.complaints.push(`${message}: ${textOf(fields)}`)
  }

  with(): Logger {
    return this
  }

  #line(message: string, fields?: LogFields): void {
    this.lines.push(`${(this.#clock.monotonic() / 1000).toFixed(2)} ${message} ${textOf(fields)}`)
  }
}

const textOf = (fields: LogFields = {}) =>
  JSON.stringify(fields, (_, value: unknown) => (value instanceof Error ? value.message : value))
