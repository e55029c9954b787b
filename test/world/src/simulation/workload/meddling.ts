/** Users who roll out changes, and users who delete objects. */
import { isConditionTrue, karpenterKinds, kinds } from '@tenon/api'
import { namespace, workloadTypes } from './objects.ts'
import { abandonedAnnotation, type WorkloadContext } from './workload-context.ts'

/** Rolling updates of the long-running applications. */
export function templateUpgrades(context: WorkloadContext): void {
  const { dice } = context
  const count = Math.max(2, Math.min(20, Math.round(context.nodes / 4)))
  let release = 0
  context.every(10, 40, () => {
    const annotations = { 'world.tenon.sh/release': String(release++) }
    const name = `web-${dice.between(0, count - 1)}`
    const patch = { spec: { template: { metadata: { annotations } } } }
    context.patch(workloadTypes.deployment, name, patch, namespace)
  })
}

/** A user deletes a claim, a node or a pod. */
export function manualDeletions(context: WorkloadContext): void {
  const { dice, world } = context
  context.every(8, 30, () => {
    const what = dice.oneOf(['claim', 'node', 'pod', 'pod'])
    if (what === 'claim') {
      const name = dice.pick(world.claims())?.metadata.name
      if (name !== undefined) context.delete(karpenterKinds.nodeClaim, name)
    } else if (what === 'node') {
      const name = dice.pick(world.nodes())?.metadata.name
      if (name !== undefined) context.delete(kinds.node, name)
    } else {
      const name = dice.pick(world.pods())?.metadata.name
      if (name !== undefined) context.delete(kinds.pod, name, namespace)
    }
  })
}

/** A user removes the finalizers of a starting claim, which leaves its instance behind. */
export function abandonedClaims(context: WorkloadContext): void {
  const { dice, world } = context
  const abandon = (): void => {
    const starting = world.claims().filter((claim) => !isConditionTrue(claim, 'Registered'))
    const name = dice.pick(starting)?.metadata.name
    if (name === undefined) {
      context.later(0.5, abandon)
      return
    }
    const annotations = { [abandonedAnnotation]: 'true' }
    context.patch(karpenterKinds.nodeClaim, name, { metadata: { annotations, finalizers: null } })
    context.delete(karpenterKinds.nodeClaim, name)
  }
  context.every(10, 40, abandon)
}

/** A user protects a node while investigating it. */
export function protectedNodes(context: WorkloadContext): void {
  const { dice, world } = context
  const protect = (name: string, value: 'true' | null): void => {
    context.patch(kinds.node, name, { metadata: { annotations: { 'karpenter.sh/do-not-disrupt': value } } })
  }
  context.every(3, 15, () => {
    const name = dice.pick(world.nodes())?.metadata.name
    if (name === undefined) return
    protect(name, 'true')
    context.later(dice.between(15, 60), () => {
      protect(name, null)
    })
  })
}
