/** Builds the NodeGroup of a claim (clever-cloud.md 4, 9). */
import {
  apiVersionOf,
  karpenterKinds,
  labels,
  type NewObject,
  type NodeClaim,
  ownValue,
  unregisteredTaint,
} from '@tenon/api'
import { ownNames } from '../names.ts'
import { hashOf, hashVersion } from '../nodeclass/hash.ts'
import type { CleverNodeClass } from '../nodeclass/types.ts'
import { type NodeGroup, nodeGroupKind } from '../nodegroup/types.ts'
import { nodeLabels } from './node-labels.ts'

/** A NodeGroup with one node of a flavor. Its owner reference deletes it with the claim. */
export function newGroup(claim: NodeClaim, nodeClass: CleverNodeClass, flavor: string): NewObject<NodeGroup> {
  const { name, uid = '', labels: claimLabels = {} } = claim.metadata
  return {
    apiVersion: apiVersionOf(nodeGroupKind),
    kind: nodeGroupKind.kind,
    metadata: {
      name,
      labels: {
        [ownNames.managed]: 'true',
        [ownNames.nodeClaim]: name,
        [ownNames.nodePool]: ownValue(claimLabels, labels.nodePool) ?? '',
        [ownNames.nodeClass]: nodeClass.metadata.name,
      },
      annotations: {
        [ownNames.hash]: hashOf(nodeClass.spec),
        [ownNames.hashVersion]: hashVersion,
      },
      ownerReferences: [
        {
          apiVersion: apiVersionOf(karpenterKinds.nodeClaim),
          kind: karpenterKinds.nodeClaim.kind,
          name,
          uid,
        },
      ],
    },
    spec: {
      flavor,
      nodeCount: 1,
      labels: nodeLabels(nodeClass.spec?.labels ?? {}, claimLabels),
      taints: [unregisteredTaint],
    },
  }
}
