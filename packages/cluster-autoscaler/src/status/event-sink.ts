/** Records events as Cluster Autoscaler limits them (cluster-autoscaler.md 7.2). */
import type { KubeObject } from '@tenon/api'
import type { EventInput, EventRecorder } from '@tenon/kube'
import type { Logger } from '@tenon/runtime'
import type { EventSink } from '../model.ts'

/** The same is told once in so long. */
const quietMs = 5 * 60_000

export interface EventSinkOptions {
  readonly recorder: EventRecorder
  /** What events about the whole refer to; undefined while no status is written. */
  readonly statusObject: () => KubeObject | undefined
  /** `--record-duplicated-events`. */
  readonly recordsDuplicates: boolean
}

/** One event per reason and object in five minutes; of those about the whole, one per text. */
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

/** For dry runs: logs what it would have recorded. */
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
