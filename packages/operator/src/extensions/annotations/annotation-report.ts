/** `annotations`: records events about annotations of Tenon that cannot be read, but those of NodePools (wanted.md). */
import { controllerOf, type KubeObject } from '@tenon/api'
import { type Cache, done, type EventRecorder } from '@tenon/kube'
import type { ControllerSpec } from '../../controller.ts'
import type { Caches } from '../../state/caches.ts'
import type { PoolProblem } from '../../state/nodepools/pool-problems.ts'
import { windowsProblem } from '../../state/pods/disruption-windows.ts'
import { keyOf, windowsAnnotation } from '../../state/pods/pods.ts'
import { surgeAnnotationProblem } from '../../state/pods/surging-pods.ts'
import { scheduleAnnotation } from '../capacitybuffer/schedule.ts'

const dedupeTtlMs = 60 * 60_000

/** Objects of one kind, and what is wrong with their annotation. */
interface Annotated {
  readonly kind: string
  readonly cache: Pick<Cache<KubeObject>, 'get' | 'onChange'>
  readonly problemOf: (object: Pick<KubeObject, 'metadata'>) => PoolProblem | undefined
}

export function annotationReport(
  { buffers, deployments, namespaces, pods }: Caches,
  events: EventRecorder,
): ControllerSpec {
  const windows: Annotated['problemOf'] = ({ metadata }) => windowsProblem(metadata, windowsAnnotation)
  const schedule: Annotated['problemOf'] = ({ metadata }) => windowsProblem(metadata, scheduleAnnotation)
  const all: readonly Annotated[] = [
    { kind: 'Namespace', cache: namespaces, problemOf: windows },
    { kind: 'Pod', cache: pods, problemOf: windows },
    ...(buffers ? [{ kind: 'CapacityBuffer', cache: buffers.capacityBuffers, problemOf: schedule }] : []),
    ...(deployments ? [{ kind: 'Deployment', cache: deployments, problemOf: surgeAnnotationProblem }] : []),
  ]
  return {
    name: 'annotations',
    concurrency: { least: 1, most: 1 },
    watch(enqueue) {
      for (const { cache, kind, problemOf } of all)
        cache.onChange((change) => {
          if (change.kind === 'deleted') return
          const { metadata } = change.object
          const isSame = change.kind === 'updated' && metadata.annotations === change.old.metadata.annotations
          if (!isSame && problemOf(change.object)) enqueue(`${kind}/${keyOf(metadata)}`)
        })
    },
    reconcile(key) {
      const [kind, ...path] = key.split('/')
      const [name = '', namespace] = path.toReversed()
      const found = all.find((each) => each.kind === kind)
      const object = found?.cache.get({ name, ...(namespace !== undefined && { namespace }) })
      const problem = object && found?.problemOf(object)
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
