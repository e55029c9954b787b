/** Which objects a controller serves where several share a cluster, each with its own `--node-pools`. */
import { matchesSelector, type NodeClaim, type NodePool, type ObjectMeta, ownValue } from '@tenon/api'
import type { NodePoolSelection } from '../../settings.ts'

/**
 * Names the controller that serves a NodePool or NodeClaim. A controller writes it before it acts, so that two that select
 * the same NodePool never launch or delete for it at the same time.
 */
export const controllerAnnotation = 'tenon.sh/controller'

/** Undefined if no controller has taken the object. */
export function controllerOf({ metadata }: { readonly metadata: ObjectMeta }): string | undefined {
  return ownValue(metadata.annotations, controllerAnnotation)
}

/**
 * Whether the controller of this selection serves the object. It leaves a NodePool as soon as the labels no longer match,
 * and NodeClaims once the next controller has written its name on them: their instances always belong to one.
 */
export function isServedBy(
  { controller, selector }: NodePoolSelection,
  object: NodeClaim | NodePool,
): boolean {
  if (controllerOf(object) !== controller) return false
  return !('template' in object.spec) || matchesSelector(selector, object.metadata.labels ?? {})
}
