/** Builds the core/v1 Event with its name and texts. */
import type { KubeObject } from '@tenon/api'
import { type Random, rfc3339, type TraceContext, traceparentOf } from '@tenon/runtime'
import type { EventInput } from '../contract.ts'

interface ObjectReference {
  readonly apiVersion: string
  readonly kind: string
  readonly namespace?: string
  readonly name: string
  readonly uid?: string
  readonly resourceVersion?: string
}

export interface EventObject extends KubeObject {
  readonly metadata: {
    readonly name: string
    readonly namespace: string
    readonly annotations?: Readonly<Record<string, string>>
  }
  readonly involvedObject: ObjectReference
  readonly reason: string
  readonly message: string
  readonly type: 'Normal' | 'Warning'
  readonly source: { readonly component: string }
  readonly reportingComponent: string
  readonly reportingInstance: string
  readonly firstTimestamp: string
  readonly lastTimestamp: string
  readonly count: number
}

/** Annotation of events and NodeClaims with the span that they belong to, as W3C Trace Context writes it. */
export const traceparentAnnotation = 'tenon.sh/traceparent'

/** None for traces that are not sent. */
export function traceAnnotations(
  trace: TraceContext | undefined,
): Readonly<Record<string, string>> | undefined {
  return trace?.isSampled === true ? { [traceparentAnnotation]: traceparentOf(trace) } : undefined
}

/** Limits of the API server. */
const messageLimit = 1024
const nameLimit = 253

/** An event for `count` occurrences of this message, the first at `firstAt` (Unix milliseconds). */
export function eventObject(
  event: Pick<EventInput, 'object' | 'type' | 'reason' | 'message'>,
  details: { component: string; nowMs: number; random: Random; trace?: TraceContext | undefined },
): EventObject {
  const { object, type, reason, message } = event
  const { component, nowMs, random, trace } = details
  const annotations = traceAnnotations(trace)
  const { name, namespace, uid, resourceVersion } = object.metadata
  const suffix = `.${nowMs.toString(16)}${random.uint32().toString(16).padStart(8, '0')}`
  const time = rfc3339(nowMs)
  return {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: {
      name: `${name.slice(0, nameLimit - suffix.length)}${suffix}`,
      namespace: namespace ?? 'default',
      ...(annotations && { annotations }),
    },
    involvedObject: {
      apiVersion: object.apiVersion,
      kind: object.kind,
      ...(namespace !== undefined && { namespace }),
      name,
      ...(uid !== undefined && { uid }),
      ...(resourceVersion !== undefined && { resourceVersion }),
    },
    reason,
    message: cut(message, messageLimit),
    type,
    source: { component },
    reportingComponent: component,
    reportingInstance: '',
    firstTimestamp: time,
    lastTimestamp: time,
    count: 1,
  }
}

/** At most `limit` bytes of UTF-8, without a partial character. */
export function cut(text: string, limit: number): string {
  const bytes = new TextEncoder().encode(text)
  if (bytes.length <= limit) return text
  return new TextDecoder().decode(bytes.subarray(0, limit)).replace(/\uFFFD+$/, '')
}
