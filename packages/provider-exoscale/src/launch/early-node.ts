/** The Node object of an instance that is still booting. */
import { kinds, type NewObject, type Node, unregisteredTaint } from '@tenon/api'
import { isKubeError, type KubeClient } from '@tenon/kube'
import type { ProviderInstance } from '@tenon/provider'
import { type Clock, rfc3339 } from '@tenon/runtime'
import type { ExoscaleInstance } from '../api/types.ts'
import { isUuid, parseProviderId } from '../identifiers.ts'

/**
 * Whether the kubelet of the Node's own instance has written its status. Only the kubelet knows its version.
 */
export function hasKubeletReported(node: Node): boolean {
  return (node.status?.nodeInfo?.kubeletVersion ?? '') !== '' && !isOfAnotherInstance(node)
}

/**
 * Whether another instance of the same name reported last, for example if the cloud created two for one claim. The
 * system UUID is that of the instance; only the groups that firmware never swaps are compared.
 */
export function isOfAnotherInstance({ spec, status }: Node): boolean {
  const own = parseProviderId(spec?.providerID ?? '')
  const system: unknown = status?.nodeInfo?.['systemUUID']
  if (own.kind !== 'instance' || typeof system !== 'string' || !isUuid(system.toLowerCase())) return false
  return unswapped(system) !== unswapped(own.instanceId)
}

const unswapped = (uuid: string): string => uuid.slice(-17).toLowerCase()

/**
 * Ensures that the instance's Node exists: creates it, completes one that a kubelet created first, and replaces one of
 * a former instance.
 */
export async function ensureEarlyNode(
  deps: {
    readonly kube: Pick<KubeClient, 'create' | 'delete' | 'get' | 'patch'>
    readonly clock: Clock
    readonly isAlive: (providerID: string) => Promise<boolean>
  },
  nodeName: string,
  instance: ExoscaleInstance,
  described: ProviderInstance,
): Promise<void> {
  const { kube, clock, isAlive } = deps
  const wanted = earlyNode(nodeName, instance, described, clock.now())
  const existing = await kube.get(kinds.node, { name: nodeName })
  const owner = existing?.spec?.providerID ?? ''
  if (existing !== undefined && owner === described.providerID) return
  if (existing !== undefined && owner === '') {
    await kube.patch(kinds.node, { name: nodeName }, { spec: { providerID: described.providerID } })
    return
  }
  if (existing !== undefined) {
    if (await isAlive(owner)) throw new Error(`Node ${nodeName} belongs to another instance, ${owner}`)
    await removeNode(kube, existing)
  }
  try {
    await kube.create(kinds.node, wanted)
  } catch (error) {
    if (!isKubeError(error, 'alreadyExists')) throw error
    const other = await kube.get(kinds.node, { name: nodeName })
    if (other?.spec?.providerID !== described.providerID) throw error
  }
}

async function removeNode(kube: Pick<KubeClient, 'delete' | 'patch'>, node: Node): Promise<void> {
  const key = { name: node.metadata.name }
  const { uid } = node.metadata
  if ((node.metadata.finalizers ?? []).length > 0)
    await kube.patch(kinds.node, key, { metadata: { finalizers: null } })
  await kube
    .delete(kinds.node, key, uid === undefined ? {} : { preconditionUid: uid })
    .catch((error: unknown) => {
      if (!isKubeError(error, 'notFound')) throw error
    })
}

function earlyNode(
  name: string,
  instance: ExoscaleInstance,
  described: ProviderInstance,
  nowMs: number,
): NewObject<Node> {
  const address = instance['public-ip']
  const time = rfc3339(nowMs)
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name },
    spec: { providerID: described.providerID, taints: [unregisteredTaint] },
    status: {
      capacity: described.capacity,
      allocatable: described.allocatable,
      phase: 'Pending',
      conditions: [
        {
          type: 'Ready',
          status: 'Unknown',
          reason: 'Initialization',
          message: 'The instance is booting',
          lastHeartbeatTime: time,
          lastTransitionTime: time,
        },
      ],
      nodeInfo: {
        machineID: '',
        systemUUID: instance.id,
        bootID: '',
        kernelVersion: '',
        osImage: '',
        containerRuntimeVersion: '',
        kubeletVersion: '',
        kubeProxyVersion: '',
        operatingSystem: 'linux',
        architecture: 'amd64',
      },
      addresses: [
        { type: 'Hostname', address: name },
        ...(address === undefined
          ? []
          : [
              { type: 'ExternalIP', address },
              { type: 'InternalIP', address },
            ]),
      ],
    },
  }
}
