/** What log lines of a reconcile say of the object it is about (operations.md 8). */
import { autoscalingKinds, karpenterKinds, kinds, type ResourceType } from '@tenon/api'
import type { LogFields } from '@tenon/runtime'

/** Controllers whose keys are names, by how their own names begin. */
const kindsByName: readonly (readonly [begin: string, type: ResourceType])[] = [
  ['nodeclaim.', karpenterKinds.nodeClaim],
  ['state.nodeclaim', karpenterKinds.nodeClaim],
  ['operatorpkg.nodeclaim.', karpenterKinds.nodeClaim],
  ['nodepool.', karpenterKinds.nodePool],
  ['state.nodepool', karpenterKinds.nodePool],
  ['static.', karpenterKinds.nodePool],
  ['operatorpkg.nodepool.', karpenterKinds.nodePool],
  ['node.', kinds.node],
  ['operatorpkg.node.', kinds.node],
]

/** Undefined for controllers whose keys are no names. */
export function describedBy(controller: string): ((name: string) => LogFields) | undefined {
  if (controller === 'state.nodeclaimgc') return undefined
  if (controller === 'capacitybuffer') return described(autoscalingKinds.capacityBuffer)
  if (controller === 'provisioningrequest') return described(autoscalingKinds.provisioningRequest)
  const type = kindsByName.find(([begin]) => controller.startsWith(begin))?.[1]
  if (type === undefined) return undefined
  return (name) => ({
    controllerGroup: type.group,
    controllerKind: type.kind,
    [type.kind]: { name },
    namespace: '',
    name,
  })
}

function described({ group, kind }: ResourceType): (key: string) => LogFields {
  return (key) => {
    const [namespace = '', name = ''] = key.split('/')
    return { controllerGroup: group, controllerKind: kind, [kind]: { name, namespace }, namespace, name }
  }
}
