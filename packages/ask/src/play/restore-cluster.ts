/** Restores a cluster from a snapshot. */
import {
  apiVersionOf,
  kinds,
  type KubeObject,
  type Namespace,
  type Node,
  type NodeClaim,
  type NodeClass,
  labels,
  type ResourceType,
} from '@tenon/api'
import { type DevCluster, type RestoredObject, restoreObjects, type SimulatedCloud } from '@tenon/devcluster'
import type { CatalogueCloud } from './catalogue-cloud.ts'
import { type Catalogue, priceOfLabels, typesOf } from './catalogue.ts'
import {
  isLaunched,
  isReadyNode,
  missingOwners,
  type PlayedObjects,
  readyNodeClasses,
} from './played-objects.ts'

export interface RestoreInput {
  readonly objects: PlayedObjects
  readonly nodeClasses: readonly ResourceType<NodeClass>[]
  readonly catalogue: Catalogue
  /** RFC 3339. */
  readonly now: string
  readonly kubeletVersion: string
}

/**
 * Creates every object that the cluster serves, starts a kubelet for each Node, and gives the instances of
 * NodeClaims to the cloud.
 * @returns what is not served, as `KIND/NAME`.
 */
export function restoreCluster(
  cluster: DevCluster<SimulatedCloud>,
  cloud: CatalogueCloud,
  input: RestoreInput,
): { readonly leftOut: readonly string[] } {
  const { objects, nodeClasses, now } = input
  const classKinds = new Set(nodeClasses.map(({ kind }) => kind))
  const plain = [
    ...objects.others.filter(({ kind }) => !classKinds.has(kind)),
    ...missingOwners(objects),
    ...objects.pools,
    ...objects.claims,
    ...objects.nodes,
    ...objects.pods,
  ]
  const { served, leftOut } = bySupport(cluster, plain)
  restoreObjects(cluster.server, [
    ...missingNamespaces(cluster, plain, now),
    ...readyNodeClasses(objects, nodeClasses, now),
    ...served,
  ])
  const claimByProviderId = new Map(objects.claims.map((claim) => [claim.status?.providerID ?? '', claim]))
  for (const node of objects.nodes)
    standUp(cluster, cloud, { ...input, node, claim: claimByProviderId.get(node.spec?.providerID ?? '') })
  const present = new Set(objects.nodes.map((node) => node.spec?.providerID ?? ''))
  for (const claim of objects.claims)
    if (isLaunched(claim) && !present.has(claim.status?.providerID ?? '')) comeUp(cloud, claim, input)
  return { leftOut }
}

/** The elapsed boot time of an instance without a Node is unknown, so it boots from the start. */
function comeUp(cloud: CatalogueCloud, claim: NodeClaim, { catalogue }: RestoreInput): void {
  const { name, labels: claimLabels = {}, creationTimestamp } = claim.metadata
  const { providerID = '', capacity = {}, allocatable = {} } = claim.status ?? {}
  const standing = {
    providerID,
    nodeName: name,
    claimName: name,
    ...(creationTimestamp !== undefined && { createdAtMs: Date.parse(creationTimestamp) }),
    labels: claimLabels,
    capacity,
    allocatable,
    pricePerHour: priceOfLabels(typesOf(catalogue, claimLabels[labels.nodePool] ?? ''), claimLabels),
  }
  cloud.adopt(standing, claim)
}

function bySupport(
  cluster: DevCluster<SimulatedCloud>,
  objects: readonly KubeObject[],
): { readonly served: readonly RestoredObject[]; readonly leftOut: readonly string[] } {
  const types = new Map<string, ResourceType>(
    cluster.server.local
      .definitions()
      .map((definition) => [`${apiVersionOf(definition)}/${definition.kind}`, definition]),
  )
  const served: RestoredObject[] = []
  const leftOut: string[] = []
  for (const object of objects) {
    const type = types.get(`${object.apiVersion}/${object.kind}`)
    if (type === undefined) leftOut.push(`${object.kind}/${object.metadata.name}`)
    else served.push({ type, object })
  }
  return { served, leftOut }
}

function missingNamespaces(
  cluster: DevCluster<SimulatedCloud>,
  objects: readonly KubeObject[],
  now: string,
): readonly RestoredObject[] {
  const present = new Set(
    [...cluster.server.local.list<Namespace>(kinds.namespace), ...objects]
      .filter(({ kind }) => kind === 'Namespace')
      .map(({ metadata }) => metadata.name),
  )
  const needed = new Set(objects.flatMap(({ metadata }) => metadata.namespace ?? []))
  return [...needed]
    .filter((name) => !present.has(name))
    .map((name) => ({
      type: kinds.namespace,
      object: {
        apiVersion: 'v1',
        kind: 'Namespace',
        metadata: {
          name,
          uid: `namespace-${name}`,
          creationTimestamp: now,
          labels: { 'kubernetes.io/metadata.name': name },
        },
        spec: { finalizers: ['kubernetes'] },
        status: { phase: 'Active' },
      },
    }))
}

function standUp(
  cluster: DevCluster<SimulatedCloud>,
  cloud: CatalogueCloud,
  { node, claim, catalogue, kubeletVersion }: RestoreInput & { node: Node; claim: NodeClaim | undefined },
): void {
  const { name, labels: nodeLabels = {}, creationTimestamp } = node.metadata
  const providerID = node.spec?.providerID ?? ''
  const { capacity = {}, allocatable = {}, addresses = [], nodeInfo } = node.status ?? {}
  const isReady = isReadyNode(node)
  const kubelet = cluster.kubelets.start({
    nodeName: name,
    providerId: providerID,
    labels: nodeLabels,
    taints: [],
    capacity,
    allocatable,
    addresses,
    kubeletVersion: nodeInfo?.['kubeletVersion'] ?? kubeletVersion,
    systemUuid: nodeInfo?.['systemUUID'] ?? providerID,
    ...(isReady ? { wasReady: true } : { neverReady: true }),
  })
  if (claim === undefined) return
  const pool = nodeLabels[labels.nodePool] ?? ''
  cloud.adopt({
    providerID,
    nodeName: name,
    claimName: claim.metadata.name,
    ...(creationTimestamp !== undefined && { createdAtMs: Date.parse(creationTimestamp) }),
    labels: nodeLabels,
    capacity,
    allocatable,
    pricePerHour: priceOfLabels(typesOf(catalogue, pool), nodeLabels),
    kubelet,
  })
}
