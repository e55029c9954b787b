/** Users who roll out changes, and users who delete objects. */
import { isConditionTrue, karpenterKinds, kinds } from '@tenon/api'
import { namespace, workloadTypes } from './objects.ts'
import { abandonedAnnotation, type Hands } from './workload-context.ts'

/** Rolling updates of the long-running applications. */
export function templateUpgrades(hands: Hands): void {
  const { dice } = hands
  const count = Math.max(2, Math.min(20, Math.round(hands.nodes / 4)))
  let release = 0
  hands.every(10, 40, () => {
    const annotations = { 'world.tenon.sh/release': String(release++) }
    const name = `web-${dice.between(0, count - 1)}`
    const patch = { spec: { template: { metadata: { annotations } } } }
    hands.patch(workloadTypes.deployment, name, patch, namespace)
  })
}

/** Somebody deletes a claim, a node or a pod. */
export function manualDeletions(hands: Hands): void {
  const { dice, world } = hands
  hands.every(8, 30, () => {
    const what = dice.oneOf(['claim', 'node', 'pod', 'pod'])
    if (what === 'claim') {
      const name = dice.pick(world.claims())?.metadata.name
      if (name !== undefined) hands.delete(karpenterKinds.nodeClaim, name)
    } else if (what === 'node') {
      const name = dice.pick(world.nodes())?.metadata.name
      if (name !== undefined) hands.delete(kinds.node, name)
    } else {
      const name = dice.pick(world.pods())?.metadata.name
      if (name !== undefined) hands.delete(kinds.pod, name, namespace)
    }
  })
}

/** Somebody does not want to wait for a claim that is starting: it goes at once, whatever becomes of its instance. */
export function abandonedClaims(hands: Hands): void {
  const { dice, world } = hands
  const abandon = (): void => {
    const starting = world.claims().filter((claim) => !isConditionTrue(claim, 'Registered'))
    const name = dice.pick(starting)?.metadata.name
    if (name === undefined) {
      hands.later(0.5, abandon)
      return
    }
    const annotations = { [abandonedAnnotation]: 'true' }
    hands.patch(karpenterKinds.nodeClaim, name, { metadata: { annotations, finalizers: null } })
    hands.delete(karpenterKinds.nodeClaim, name)
  }
  hands.every(10, 40, abandon)
}

/** Somebody looks into a node, which is to stay meanwhile. */
export function protectedNodes(hands: Hands): void {
  const { dice, world } = hands
  const protect = (name: string, value: 'true' | null): void => {
    hands.patch(kinds.node, name, { metadata: { annotations: { 'karpenter.sh/do-not-disrupt': value } } })
  }
  hands.every(3, 15, () => {
    const name = dice.pick(world.nodes())?.metadata.name
    if (name === undefined) return
    protect(name, 'true')
    hands.later(dice.between(15, 60), () => {
      protect(name, null)
    })
  })
}
