import type { EventRecorder, KubeClient } from '@tenon/kube'
import type { Caches } from './state/caches.ts'

/** The Kubernetes API of a controller: a client, the caches that it reads, and events. */
export interface Kubernetes<Read extends keyof Caches = keyof Caches> {
  /** Writes, and reads what must not be old. */
  readonly client: KubeClient
  /** What is watched, as it was a moment ago. */
  readonly caches: Pick<Caches, Read>
  readonly events: EventRecorder
}
