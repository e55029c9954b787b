/** `windows.annotations`: records events about windows in annotations that cannot be read (wanted.md 5). */
import { controllerOf, type KubeObject } from '@tenon/api'
import { type Cache, done, type EventRecorder } from '@tenon/kube'
import type { ControllerSpec } from '../../controller.ts'
import type { Caches } from '../../state/caches.ts'
import { windowsProblem } from '../../state/pods/disruption-windows.ts'
import { scheduleAnnotation } from '../capacitybuffer/schedule.ts'
import { keyOf, windowsAnnotation } from '../../state/pods/pods.ts'

const dedupeTtlMs = 60 * 60_000

/** Objects of one kind, and the annotation that may have windows. */
interface Annotated {
  readonly kind: string
  readonly cache: Pick<Cache<KubeObject>, 'get' | 'onChange'>
  readonly annotation: string
}

export function windowAnnotations(
  { buffers, namespaces, pods }: Pick<Caches, 'buffers' | 'namespaces' | 'pods'>,
  events: EventRecorder,
): ControllerSpec {
  const all: readonly Annotated[] = [
    { kind: 'Namespace', cache: namespaces, annotation: windowsAnnotation },
    { kind: 'Pod', cache: pods, annotation: windowsAnnotation },
    ...(buffers
      ? [{ kind: 'CapacityBuffer', cache: buffers.capacityBuffers, annotation: scheduleAnnotation }]
      : []),
  ]
  return {
    name: 'windows.annotations',
    concurrency: { least: 1, most: 1 },
    watch(enqueue) {
      for (const { annotation, cache, kind } of all)
        cache.onChange((change) => {
          if (change.kind === 'deleted') return
          const { metadata } = change.object
          const isSame = change.kind === 'updated' && metadata.annotations === change.old.metadata.annotations
          if (!isSame && windowsProblem(metadata, annotation)) enqueue(`${kind}/${keyOf(metadata)}`)
        })
    },
    reconcile(key) {
      const [kind, ...path] = key.split('/')
      const [name = '', namespace] = path.toReversed()
      const found = all.find((each) => each.kind === kind)
      const object = found?.cache.get({ name, ...(namespace !== undefined && { namespace }) })
      const problem = found && object && windowsProblem(object.metadata, found.annotation)
      if (object === undefined || problem === undefined) return Promise.resolve(done)
      const { field, fix = '', message } = problem
      // The pods of a workload have the same annotation.
      const owner = controllerOf(object)?.uid ?? object.metadata.uid ?? key
      events.record({
        object,
        type: 'Warning',
        reason: 'AnnotationIgnored',
        message: `${field}: ${message}; ${fix}`,
        dedupe: [owner, field, message],
        dedupeTtlMs,
      })
      return Promise.resolve(done)
    },
  }
}
