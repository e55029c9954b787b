import type { EventRecorder, KubeClient } from '@tenon/kube'
import type { Caches } from './state/caches.ts'

/** The Kubernetes API as a controller has it that reads these caches, writes and tells of objects. */
export interface Kubernetes<Read extends keyof Caches = keyof Caches> {
  /** Writes, and reads what must not be old. */
  readonly client: KubeClient
  /** What is watched, as it was a moment ago. */
  readonly caches: Pick<Caches, Read>
  readonly events: EventRecorder
}
