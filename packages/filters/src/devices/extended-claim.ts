/** The ResourceClaim for extended resources of a pod that devices serve (devices.md 3.22). */
import {
  extendedResourceClaimAnnotation,
  extendedResourceRequests,
  type ExtendedResourceRequests,
  ownValue,
  parseResource,
  type ResourceClaim,
} from '@tenon/api'
import type { NodeEntry } from '../cluster/node-entry.ts'
import type { PodFacts } from '../pods/pod-facts.ts'
import type { DeviceIndex } from './device-index.ts'

/** A claim that is created once the pod has its node. */
export interface ExtendedClaim {
  /** Its name stands for the one that the API server generates. */
  readonly claim: ResourceClaim
  readonly mappings: ExtendedResourceRequests['mappings']
}

/** Extended resources that a pod requests and that have a DeviceClass. */
export function servedResources({ pod: { spec } }: PodFacts, index: DeviceIndex): readonly string[] {
  if (!index.servesResources) return []
  const names = [...(spec.initContainers ?? []), ...spec.containers].flatMap(({ resources }) =>
    Object.keys(resources?.requests ?? {}),
  )
  return [...new Set(names)].filter((name) => index.classOf(name) !== undefined)
}

/** The claim for those of the resources that the node does not have; undefined if it has all of them. */
export function extendedClaimOn(
  { pod, namespace, name: podName, uid }: PodFacts,
  resources: readonly string[],
  { node }: NodeEntry,
  index: DeviceIndex,
): ExtendedClaim | undefined {
  const { allocatable } = node?.status ?? {}
  const missing = resources.filter((name) => parseResource(name, ownValue(allocatable, name) ?? '0') === 0)
  const classes = new Map(missing.map((name) => [name, index.classOf(name) ?? '']))
  const { requests, mappings } = extendedResourceRequests(pod.spec, classes)
  if (requests.length === 0) return undefined
  const owner = { apiVersion: 'v1', kind: 'Pod', name: podName, uid }
  return {
    claim: {
      apiVersion: 'resource.k8s.io/v1',
      kind: 'ResourceClaim',
      metadata: {
        name: `${podName}-extended-resources-`,
        namespace,
        annotations: { [extendedResourceClaimAnnotation]: 'true' },
        ownerReferences: [{ ...owner, controller: true, blockOwnerDeletion: true }],
      },
      spec: { devices: { requests } },
    },
    mappings,
  }
}
