/** Cluster API's kinds on an API server, and their removal. */
import type { KubeObject, ResourceType } from '@tenon/api'
import { isKubeError, type KubeClient, type ObjectKey } from '@tenon/kube'
import type { Clock } from '@tenon/runtime'
import { applyCrds } from '../scheduling-proof/autoscaler.ts'
import { proofKinds } from '../scheduling-proof/objects.ts'
import { infrastructureCrds } from './crds.ts'
import { capiKinds, testKinds } from './kinds.ts'
import { type CoreManifests, webhookKind } from './manifests.ts'

const { customResourceDefinition } = proofKinds
const clearedKinds: readonly ResourceType[] = [
  ...Object.values(testKinds),
  capiKinds.machine,
  capiKinds.machineSet,
  capiKinds.machineDeployment,
  capiKinds.cluster,
]

/** Serves the CRDs and names the webhooks to the API server; until the manager runs it takes no object. */
export async function install(client: KubeClient, manifests: CoreManifests, clock: Clock): Promise<void> {
  await applyCrds(client, clock, [...manifests.crds, ...infrastructureCrds])
  for (const configuration of manifests.webhooks)
    await client.create(webhookKind(configuration), configuration)
}

/**
 * Takes all of it off, by force; the manager has been stopped. CRDs whose conversion nobody answers would keep the
 * controllers of Kubernetes from following their objects.
 */
export async function uninstall(client: KubeClient, manifests: CoreManifests): Promise<void> {
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

/** Deletes all objects of a kind, by force; a kind that is not served has none. */
export async function tearOut(client: KubeClient, type: ResourceType): Promise<void> {
  const objects = await client.list(type).catch((error: unknown) => {
    // A kind that is not served at all is answered in plain text.
    if (!isKubeError(error) || error.status !== 404) throw error
    return [] as readonly KubeObject[]
  })
  for (const { metadata } of objects) {
    const key = keyOf(metadata)
    await ignoringGone(client.delete(type, key))
    await ignoringGone(client.patch(type, key, { metadata: { finalizers: null } }))
  }
}

/** An object's name, with its namespace where it has one. */
export function keyOf({ name, namespace }: KubeObject['metadata']): ObjectKey {
  return namespace === undefined ? { name } : { name, namespace }
}

export async function ignoringGone(work: Promise<unknown>): Promise<void> {
  await work.catch((error: unknown) => {
    if (!isKubeError(error, 'notFound')) throw error
  })
}
