/** Says which objects cannot be read, once for each thing that is wrong with one. */
import type { KubeObject } from '@tenon/api'
import type { EventRecorder } from '@tenon/kube'
import type { Logger } from '@tenon/runtime'

interface Told {
  readonly object: KubeObject
  readonly problem: string
}

/** Remembers what cannot be read; events are left to the process that leads. */
export class UnreadableObjects {
  readonly #logger: Logger
  readonly #told = new Map<string, Told>()
  #events: EventRecorder | undefined

  constructor(logger: Logger) {
    this.#logger = logger
  }

  /** An object has come from the API server. */
  readonly note = (object: KubeObject, problem: string | undefined): void => {
    if (problem === undefined && this.#told.size === 0) return
    const { kind, metadata } = object
    const id = `${kind}/${metadata.namespace ?? ''}/${metadata.name}`
    if (this.#told.get(id)?.problem === problem) return
    const fields = { object: id, ...(problem !== undefined && { problem }) }
    if (problem === undefined) {
      this.#told.delete(id)
      this.#logger.info('an object is valid again', fields)
      return
    }
    const told = { object, problem }
    this.#told.set(id, told)
    this.#logger.warn('an object is invalid and is ignored until it is fixed', fields)
    this.#record(told)
  }

  /** From now on this process leads. */
  lead(events: EventRecorder): void {
    this.#events = events
    for (const told of this.#told.values()) this.#record(told)
  }

  #record({ object, problem }: Told): void {
    const { apiVersion, kind, metadata } = object
    const { name, namespace, uid } = metadata
    this.#events?.record({
      object: {
        apiVersion,
        kind,
        metadata: { name, ...(namespace !== undefined && { namespace }), ...(uid !== undefined && { uid }) },
      },
      type: 'Warning',
      reason: 'Unreadable',
      message: `The ${kind} is invalid and is ignored until it is fixed: ${problem}`,
      dedupe: [uid ?? name, problem],
    })
  }
}
