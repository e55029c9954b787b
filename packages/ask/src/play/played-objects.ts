/** Selects the objects of a snapshot that a cluster needs to continue from there. */
import {
  apiVersionOf,
  controllerOf,
  crd,
  isConditionTrue,
  karpenterKinds,
  kinds,
  type KubeObject,
  type Node,
  type NodeClaim,
  type NodeClass,
  type NodeClassReference,
  type NodePool,
  type OwnerReference,
  type Pod,
  type ResourceType,
} from '@tenon/api'
import type { RestoredObject } from '@tenon/devcluster'

/** Kinds that a cluster creates itself. */
const ownKinds: ReadonlySet<string> = new Set(['Event', 'Lease', 'ComponentStatus'])

/** Kinds of owners that replace their pods. */
const replacingKinds: ReadonlySet<string> = new Set([
  'Job',
  'ReplicaSet',
  'ReplicationController',
  'StatefulSet',
])

/** The objects of a snapshot, by how they are restored. */
export interface PlayedObjects {
  readonly pools: readonly NodePool[]
  readonly claims: readonly NodeClaim[]
  readonly nodes: readonly Node[]
  readonly pods: readonly Pod[]
  /** Everything else, including node classes and NodeOverlays. */
  readonly others: readonly KubeObject[]
}

/** Sorts objects by kind and drops Leases and Events. */
export function playedObjects(objects: readonly KubeObject[]): PlayedObjects {
  const of = <T extends KubeObject>(type: ResourceType<T>): readonly T[] =>
    objects.filter((object): object is T => isOf(type, object))
  const taken: readonly ResourceType[] = [
    karpenterKinds.nodePool,
    karpenterKinds.nodeClaim,
    kinds.node,
    kinds.pod,
  ]
  return {
    pools: of(karpenterKinds.nodePool),
    claims: of(karpenterKinds.nodeClaim),
    nodes: of(kinds.node),
    pods: of(kinds.pod),
    others: objects.filter(
      (object) => !ownKinds.has(object.kind) && !taken.some((type) => isOf(type, object)),
    ),
  }
}

function isOf(type: ResourceType, object: KubeObject): boolean {
  return object.kind === type.kind && object.apiVersion === apiVersionOf(type)
}

/** Kinds of the node classes that NodePools and NodeClaims reference; the most used one first. */
export function nodeClassKinds({ pools, claims, others }: PlayedObjects): readonly ResourceType<NodeClass>[] {
  const refs = [
    ...pools.map(({ spec }) => spec.template.spec.nodeClassRef),
    ...claims.map(({ spec }) => spec.nodeClassRef),
  ]
  const types = new Map<string, ResourceType<NodeClass>>()
  for (const { group, kind } of refs) {
    const object = others.find((each) => each.kind === kind && each.apiVersion.startsWith(`${group}/`))
    const version = object?.apiVersion.split('/')[1] ?? 'v1'
    types.set(`${group}/${kind}`, {
      group,
      version,
      kind,
      plural: `${kind.toLowerCase()}es`,
      namespaced: false,
    })
  }
  return [...types.values()]
}

/** A CustomResourceDefinition of the kind that accepts any fields. */
export function nodeClassCrd({ group, version, kind, plural }: ResourceType): KubeObject {
  const anything = {
    type: 'object',
    description: 'Anything.',
    'x-kubernetes-preserve-unknown-fields': true,
  } as const
  const definition = crd({
    group,
    version,
    kind,
    plural,
    columns: [],
    description: 'A node class of a cluster that is played.',
    spec: anything,
    isSpecOptional: true,
    status: anything,
  })
  return crdObject(definition, `${plural}.${group}`)
}

/** A definition as an object to create. */
export function crdObject(definition: Readonly<Record<string, unknown>>, name: string): KubeObject {
  const { apiVersion, kind } = { apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' }
  return { ...definition, apiVersion, kind, metadata: { name } }
}

/** Every referenced node class, with the condition Ready. */
export function readyNodeClasses(
  objects: PlayedObjects,
  types: readonly ResourceType<NodeClass>[],
  now: string,
): readonly RestoredObject[] {
  const refs = new Map<string, NodeClassReference>()
  for (const { spec } of objects.pools) {
    const ref = spec.template.spec.nodeClassRef
    refs.set(`${ref.group}/${ref.kind}/${ref.name}`, ref)
  }
  for (const { spec } of objects.claims) {
    const ref = spec.nodeClassRef
    refs.set(`${ref.group}/${ref.kind}/${ref.name}`, ref)
  }
  return [...refs.values()].flatMap((ref) => {
    const type = types.find(({ group, kind }) => group === ref.group && kind === ref.kind)
    if (type === undefined) return []
    const known = objects.others.find(
      (each) =>
        each.kind === ref.kind && each.apiVersion === apiVersionOf(type) && each.metadata.name === ref.name,
    )
    const { metadata, ...rest } = known ?? { metadata: { name: ref.name } }
    return [
      {
        type,
        object: {
          ...rest,
          apiVersion: apiVersionOf(type),
          kind: type.kind,
          metadata: { uid: `nodeclass-${ref.name}`, generation: 1, creationTimestamp: now, ...metadata },
          status: {
            conditions: [
              {
                type: 'Ready',
                status: 'True',
                reason: 'Ready',
                message: '',
                lastTransitionTime: now,
                observedGeneration: metadata.generation ?? 1,
              },
            ],
          },
        },
      },
    ]
  })
}

/** Whether and how a deleted pod is replaced: not at all, under a new name, or under its own. */
export function replacementOf(pod: Pod): 'none' | 'renamed' | 'sameName' {
  const owner = controllerOf(pod)
  if (owner === undefined || owner.kind === 'DaemonSet' || owner.kind === 'Node') return 'none'
  return owner.kind === 'StatefulSet' ? 'sameName' : 'renamed'
}

/** Controllers that pods refer to but that the snapshot lacks, with as many replicas as they have pods. */
export function missingOwners({ pods, others }: PlayedObjects): readonly KubeObject[] {
  const known = new Set(others.map(({ metadata }) => metadata.uid))
  const owners = new Map<string, { owner: OwnerReference; namespace: string; replicas: number; pod: Pod }>()
  for (const pod of pods) {
    const owner = controllerOf(pod)
    if (owner === undefined || known.has(owner.uid) || !replacingKinds.has(owner.kind)) continue
    const entry = owners.get(owner.uid) ?? {
      owner,
      namespace: pod.metadata.namespace ?? 'default',
      replicas: 0,
      pod,
    }
    owners.set(owner.uid, { ...entry, replicas: entry.replicas + 1 })
  }
  return [...owners.values()].map(({ owner, ...of }) => ownerObject(owner, of))
}

/** A controller, reduced to what other components read. */
export function ownerObject(
  { apiVersion, kind, name, uid }: OwnerReference,
  { namespace, replicas, pod }: { readonly namespace: string; readonly replicas: number; readonly pod: Pod },
): KubeObject {
  const podLabels = pod.metadata.labels ?? {}
  const { creationTimestamp } = pod.metadata
  const spec = {
    replicas,
    selector: kind === 'ReplicationController' ? podLabels : { matchLabels: podLabels },
    template: { metadata: { labels: podLabels }, spec: pod.spec },
  }
  const metadata = {
    name,
    namespace,
    uid,
    generation: 1,
    ...(creationTimestamp !== undefined && { creationTimestamp }),
  }
  const object = { apiVersion, kind, metadata, spec }
  return object
}

/** Whether the kubelet reports Ready. */
export function isReadyNode({ status }: Node): boolean {
  return status?.conditions?.some((each) => each.type === 'Ready' && each.status === 'True') ?? false
}

export function isLaunched(claim: NodeClaim): boolean {
  return (claim.status?.providerID ?? '') !== '' && isConditionTrue(claim, 'Launched')
}
