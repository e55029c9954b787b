/** Installs and uninstalls Cluster API's kinds. */
import type { KubeObject, ResourceType } from '@tenon/api'
import { isKubeError, type KubeClient, type ObjectKey } from '@tenon/kube'
import type { Clock } from '@tenon/runtime'
import { applyCrds } from '../scheduling-proof/autoscaler.ts'
import { proofKinds } from '../scheduling-proof/objects.ts'
import { infrastructureCrds } from './crds.ts'
import { capiKinds, kubeadmKinds, testKinds } from './kinds.ts'
import { type ManagerManifests, webhookKind } from './manifests.ts'

const { customResourceDefinition } = proofKinds
const clearedKinds: readonly ResourceType[] = [
  ...Object.values(testKinds),
  ...Object.values(kubeadmKinds),
  capiKinds.machine,
  capiKinds.machineSet,
  capiKinds.machineDeployment,
  capiKinds.machineHealthCheck,
  capiKinds.cluster,
  capiKinds.clusterClass,
]

/** Installs CRDs and webhooks; until the managers run, the API server rejects all objects of these kinds. */
export async function install(client: KubeClient, manifests: ManagerManifests, clock: Clock): Promise<void> {
  await applyCrds(client, clock, [...manifests.crds, ...infrastructureCrds])
  for (const configuration of manifests.webhooks)
    await client.create(webhookKind(configuration), configuration)
}

/**
 * Force-deletes everything; the managers must have been stopped. CRDs without a conversion webhook would block
 * the watches of Kubernetes' controllers.
 */
export async function uninstall(client: KubeClient, manifests: ManagerManifests): Promise<void> {
  for (const configuration of manifests.webhooks)
    await ignoringGone(client.delete(webhookKind(configuration), configuration.metadata))
  for (const { metadata } of manifests.crds) {
    const conversion = { strategy: 'None', webhook: null }
    await ignoringGone(client.patch(customResourceDefinition, metadata, { spec: { conversion } }))
  }
  for (const type of clearedKinds) await tearOut(client, type)
  for (const { metadata } of [...manifests.crds, ...infrastructureCrds])
    await ignoringGone(client.delete(customResourceDefinition, metadata))
}

/**
 * Force-deletes all objects of a kind; a kind that is not served has none.
 * @returns them, such as `Node n1`.
 */
export async function tearOut(client: KubeClient, type: ResourceType): Promise<readonly string[]> {
  const objects = await client.list(type).catch((error: unknown) => {
    // The response for a kind that is not served is plain text.
    if (!isKubeError(error) || error.status !== 404) throw error
    return [] as readonly KubeObject[]
  })
  for (const { metadata } of objects) {
    const key = keyOf(metadata)
    await ignoringGone(client.delete(type, key))
    await ignoringGone(client.patch(type, key, { metadata: { finalizers: null } }))
  }
  return objects.map(({ metadata }) => `${type.kind} ${metadata.name}`)
}

/** Name and namespace of an object. */
export function keyOf({ name, namespace }: KubeObject['metadata']): ObjectKey {
  return namespace === undefined ? { name } : { name, namespace }
}

export async function ignoringGone(work: Promise<unknown>): Promise<void> {
  await work.catch((error: unknown) => {
    if (!isKubeError(error, 'notFound')) throw error
  })
}

export async function ignoringPresent(work: Promise<unknown>): Promise<void> {
  await work.catch((error: unknown) => {
    if (!isKubeError(error, 'alreadyExists')) throw error
  })
}
