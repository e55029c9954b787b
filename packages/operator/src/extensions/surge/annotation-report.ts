import type { Deployment } from '@tenon/api'
import { type Cache, done, type EventRecorder } from '@tenon/kube'
import type { ControllerSpec } from '../../controller.ts'
import { keyOf } from '../../state/pods/pods.ts'
import { surgeAnnotationProblem } from '../../state/pods/surging-pods.ts'

const dedupeTtlMs = 60 * 60_000

/** `surge.annotations`: records events about annotations of Deployments that cannot be read. Keys are `namespace/name`. */
export function surgeAnnotations(deployments: Cache<Deployment>, events: EventRecorder): ControllerSpec {
  return {
    name: 'surge.annotations',
    concurrency: { least: 1, most: 1 },
    watch(enqueue) {
      deployments.onChange(({ object }) => {
        if (surgeAnnotationProblem(object) !== undefined) enqueue(keyOf(object.metadata))
      })
    },
    reconcile(key) {
      const [namespace = '', name = ''] = key.split('/')
      const deployment = deployments.get({ namespace, name })
      const problem = deployment && surgeAnnotationProblem(deployment)
      if (deployment === undefined || problem === undefined) return Promise.resolve(done)
      const { field, fix, message } = problem
      events.record({
        object: deployment,
        type: 'Warning',
        reason: 'AnnotationIgnored',
        message: `${field}: ${message}; ${fix}`,
        dedupe: [deployment.metadata.uid ?? key, message],
        dedupeTtlMs,
      })
      return Promise.resolve(done)
    },
  }
}
