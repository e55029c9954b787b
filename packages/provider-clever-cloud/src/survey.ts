/** NodeGroups created by users, for `tenon init`. */
import { ownValue } from '@tenon/api'
import { isKubeError, isNotServed } from '@tenon/kube'
import type { ExistingGroup, Survey, SurveyDependencies, SurveyModule } from '@tenon/provider'
import { nodeGroupIn, platformLabels } from './names.ts'
import { cleverNodeClassKind } from './nodeclass/types.ts'
import { isManaged } from './nodegroup/ownership.ts'
import { flavorOf, nodeCountOf } from './nodegroup/spec.ts'
import { type NodeGroup, nodeGroupKind } from './nodegroup/types.ts'

async function survey({ kube }: SurveyDependencies, signal: AbortSignal): Promise<Survey> {
  try {
    const groups = await kube.list(nodeGroupKind, { signal })
    const foreign = groups.filter((group) => !isManaged(group)).map(groupOf)
    return {
      groups: foreign.filter((group) => typeof group !== 'string'),
      remarks: foreign.filter((group) => typeof group === 'string'),
    }
  } catch (error) {
    signal.throwIfAborted()
    if (!isKubeError(error)) throw error
    const why = isNotServed(error) ? 'the cluster does not serve them' : error.message
    return { groups: [], remarks: [`NodeGroups cannot be read: ${why}.`] }
  }
}

/**
 * Its node class may be empty, as labels of the group go to the NodePool.
 * @returns a remark if the group lacks a flavor or size.
 */
function groupOf(group: NodeGroup): ExistingGroup | string {
  const { metadata, spec } = group
  const [flavor, size] = [flavorOf(group), nodeCountOf(group)]
  if (flavor === '' || size === undefined)
    return `NodeGroup ${metadata.name} has no spec.${flavor === '' ? 'flavor' : 'nodeCount'} and is left out.`
  return {
    source: 'NodeGroup',
    name: metadata.name,
    otherNames: [],
    instanceType: flavor,
    size,
    labels: spec.labels ?? {},
    taints: spec.taints ?? [],
    nodeClassSpec: {},
    remarks: [],
  }
}

export const surveyModule: SurveyModule = {
  recognizes: ({ metadata, spec }) => {
    const isOurs =
      nodeGroupIn(spec?.providerID ?? '') !== undefined ||
      // The platform sets no provider ID on its nodes.
      ownValue(metadata.labels, platformLabels.flavor) !== undefined
    return isOurs ? 'instance' : 'none'
  },
  nodeClass: cleverNodeClassKind,
  nodeClassSpecOf: () => ({}),
  survey,
}
