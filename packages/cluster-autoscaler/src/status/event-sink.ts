/** Records events with the limits of Cluster Autoscaler (cluster-autoscaler.md 7.2). */
import type { KubeObject } from '@tenon/api'
import type { EventInput, EventRecorder } from '@tenon/kube'
import type { Logger } from '@tenon/runtime'
import type { EventSink } from '../model.ts'

/** Minimum time between equal events. */
const quietMs = 5 * 60_000

export interface EventSinkOptions {
  readonly recorder: EventRecorder
  /** The object of events about the whole autoscaler; undefined if no status is written. */
  readonly statusObject: () => KubeObject | undefined
  /** `--record-duplicated-events`. */
  readonly recordsDuplicates: boolean
}

/**
 * At most one event per reason and object in five minutes; for events about the whole autoscaler, one per text.
 */
export function createEventSink({ recorder, statusObject, recordsDuplicates }: EventSinkOptions): EventSink {
  const record = (event: EventInput, sameness: readonly string[]) => {
    recorder.record(
      recordsDuplicates ? event : { ...event, dedupe: [event.reason, ...sameness], dedupeTtlMs: quietMs },
    )
  }
  return {
    status: (type, reason, message) => {
      const object = statusObject()
      if (object !== undefined) record({ object, type, reason, message }, [message])
    },
    object: (object, type, reason, message) => {
      const { namespace = '', name, uid = '' } = object.metadata
      record({ object, type, reason, message }, [object.kind, namespace, name, uid])
    },
  }
}

/** For dry runs: logs events instead. */
export function createLoggingEventSink(logger: Logger): EventSink {
  return {
    status: (type, reason, message) => {
      logger.info('dry run: would record event', { type, reason, text: message })
    },
    object: ({ kind, metadata: { namespace, name } }, type, reason, message) => {
      const object = [kind, namespace, name].filter((part) => part !== undefined).join('/')
      logger.info('dry run: would record event', { object, type, reason, text: message })
    },
  }
}
