import type { NodePool } from '@tenon/api'
import type { OperatorContext } from '../../context.ts'

/** The pool of that name if this provider serves its node class. */
export function managedPool(context: OperatorContext, name: string): NodePool | undefined {
  const pool = context.caches.nodePools.get({ name })
  const ref = pool?.spec.template.spec.nodeClassRef
  const isManaged = context.provider.nodeClasses.some(
    (type) => type.group === ref?.group && type.kind === ref.kind,
  )
  return isManaged ? pool : undefined
}
