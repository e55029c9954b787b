import type { Controller, ReconcileResult } from '../contract.ts'
import { type ControllerDependencies, createController } from './controller.ts'

export interface SingletonOptions extends ControllerDependencies {
  readonly name: string
  /** One pass; its result says when the next one is due. After `done` there is none. */
  readonly run: (signal: AbortSignal) => Promise<ReconcileResult>
  /** Back-off after failed passes; default 1 s up to 1 min. */
  readonly backoff?: { readonly baseMs: number; readonly capMs: number }
}

/** A loop that can be started and stopped. */
export type Singleton = Pick<Controller, 'name' | 'start' | 'stop'> & {
  /** Requests a pass now, or after the one that is running. */
  trigger(): void
}

/** Periodic work: one pass at a time; errors are logged and retried as by a controller. */
export function createSingleton({ name, run, backoff, ...deps }: SingletonOptions): Singleton {
  const controller = createController(
    {
      name,
      concurrency: 1,
      backoff: backoff ?? { baseMs: 1000, capMs: 60_000 },
      reconcile: (_key, signal) => run(signal),
    },
    deps,
  )
  return {
    name,
    start() {
      controller.enqueue(name)
      controller.start()
    },
    stop: () => controller.stop(),
    trigger() {
      controller.enqueue(name)
    },
  }
}
